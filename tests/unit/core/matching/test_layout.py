import numpy as np
import pytest

from octopis.core.filters import parse_filter
from octopis.core.filters.tree import text_of
from octopis.core.filters.values import Kind
from octopis.core.matching.alternatives import alternatives
from octopis.core.matching.column import Presence
from octopis.core.matching.layout import BlockLayout, Entry, Segment, packed, slots_of

FAR = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(7))


def layout(*entries: tuple[int, str]) -> BlockLayout:
    """Lay out subscriptions given as destination and filter, numbered from 0."""
    return BlockLayout(
        [
            Entry(number, destination, *each)
            for number, (destination, text) in enumerate(entries)
            for each in alternatives(parse_filter(text).tree)
        ],
        {"a", "b", "c", "d", "x"},
    )


def residual(found: BlockLayout) -> dict[int, list[str]]:
    return {slot: [text_of(node) for node in nodes] for slot, nodes in found.residual.items()}


def test_each_conjunction_has_a_slot():
    found = layout((0, "a = 1"), (0, "a = 1 AND x = 1 OR b = 1"), (0, "FALSE"), (0, "TRUE"))
    assert found.owners.tolist()[:4] == [0, 1, 1, 3]
    assert set(found.owners.tolist()[4:]) == {-1}
    assert found.shares_owners
    assert not layout((0, "a = 1"), (0, "b = 1")).shares_owners


def test_large_destinations_stand_on_words_of_their_own_and_small_ones_share():
    found = layout(*[(7, "a = 1")] * 70, *[(n % 3, "a = 1") for n in range(9)], *[(9, "b")] * 64)
    assert found.segments == [Segment(0, 2, 7), Segment(2, 3, 9), Segment(3, 4, None)]
    assert found.words == 4
    for segment in found.segments:
        inside = found.destinations[64 * segment.first : 64 * segment.last]
        places = set(inside[inside >= 0].tolist())
        assert places == ({0, 1, 2} if segment.destination is None else {segment.destination})


def test_block_of_filters_that_never_match_has_no_segment():
    found = layout((0, "FALSE"), (1, "a IS NULL AND a IS NOT NULL"))
    assert found.segments == []
    assert found.words == 1


def test_sets_and_presence_are_asked_of_columns():
    found = layout((0, "a > 1 AND b = 'x' AND c IS NULL AND d"))
    assert set(found.drafts) == {
        ("a", Kind.NUMBER),
        ("b", Kind.TEXT),
        ("c", Presence.PRESENCE),
        ("d", Kind.BOOLEAN),
    }
    assert found.residual == {}


@pytest.mark.parametrize(
    ("text", "evaluated", "columns"),
    [
        ("a LIKE 'x_' AND b = 1", ["a LIKE 'x_'"], {("a", Kind.TEXT), ("b", Kind.NUMBER)}),
        ("a NOT LIKE 'x_'", ["a NOT LIKE 'x_'"], {("a", Kind.TEXT)}),
        (
            "a > b AND c = 1",
            ["b < a"],
            {("c", Kind.NUMBER), ("a", Presence.PRESENCE), ("b", Presence.PRESENCE)},
        ),
        ("a > b AND a = 1", ["b < a"], {("a", Kind.NUMBER), ("b", Presence.PRESENCE)}),
        ("a > y AND z = 1", ["y < a", "z = 1"], {("a", Presence.PRESENCE)}),
        (FAR, [f"a{n} = 1 OR b{n} = 1" for n in range(7)], set()),
        (f"a = 1 AND {FAR}", [f"a{n} = 1 OR b{n} = 1" for n in range(7)], {("a", Kind.NUMBER)}),
    ],
)
def test_the_rest_is_evaluated_on_candidates(
    text: str, evaluated: list[str], columns: set[tuple[str, Kind | Presence]]
):
    found = layout((0, text))
    assert residual(found) == {0: evaluated}
    assert set(found.drafts) == columns


def test_absence_of_an_attribute_without_a_column_is_kept_by_name():
    found = layout((0, "a = 1 AND y IS NULL"), (0, "a = 2 AND x IS NULL"), (0, "y IS NULL"))
    assert found.shut_by == {"y": [0, 2]}
    assert found.residual == {}
    assert set(found.drafts) == {("a", Kind.NUMBER), ("x", Presence.PRESENCE)}


def test_comparison_with_what_must_be_absent_asks_its_column_only_once():
    found = layout((0, "a > b AND b IS NULL"))
    assert found.drafts["b", Presence.PRESENCE].begins == [False]


def test_like_asks_its_column_for_the_prefix():
    draft = layout((0, "a LIKE 'ab%c' AND a > 'abb'")).drafts["a", Kind.TEXT]
    assert (draft.begins, draft.cuts) == ([False], [("abb\0", 0), ("ac", 0)])


def test_bits_are_packed_lowest_first_and_found_again():
    flags = np.zeros(192, np.bool_)
    flags[[0, 1, 63, 64, 130, 191]] = True
    words = packed(flags)
    assert words.tolist() == [1 | 2 | 1 << 63, 1, 1 << 2 | 1 << 63]
    rows, slots = slots_of(np.array([words, words * 0, words]))
    assert rows.tolist() == [0] * 6 + [2] * 6
    assert slots.tolist() == [0, 1, 63, 64, 130, 191] * 2


def test_as_many_like_terms_as_a_filter_may_have_are_laid_out():
    patterns = " AND ".join(f"a LIKE '%{n}_'" for n in range(200))
    found = layout((0, f"{patterns}"))
    assert list(found.drafts) == [("a", Kind.TEXT)]
    assert found.drafts["a", Kind.TEXT].slots == [0]
