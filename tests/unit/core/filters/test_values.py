import pytest

from octopis.core.filters import values
from octopis.core.filters.values import Kind, ValueSet, cut_after, cut_before
from octopis.core.model import Value

LAST = "\U0010ffff"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, Kind.NUMBER),
        (1.0, Kind.NUMBER),
        ("1", Kind.TEXT),
        (True, Kind.BOOLEAN),
    ],
)
def test_integers_and_floats_are_one_kind_and_booleans_are_another(value: Value, kind: Kind):
    assert values.kind_of(value) is kind


@pytest.mark.parametrize(
    ("made", "inside", "outside"),
    [
        (values.below(5), [4, 4.9, -(2**63)], [5, 5.0, 6]),
        (values.at_most(5), [5, 5.0, 4], [5.1, 6]),
        (values.only(2**53 + 1), [2**53 + 1], [2**53, 2.0**53, 2**53 + 2]),
        (values.any_of([1, 3]), [1, 3], [0, 2, 4]),
        (values.only(True), [True], [False]),
        (values.only(False), [False], [True]),
        (values.only(""), [""], ["\0", "a"]),
        (values.only("ab"), ["ab"], ["a", "ab\0", "abc", "b"]),
        (values.below("b"), ["", "a", "az" + LAST], ["b", "ba"]),
        (values.with_prefix("ab"), ["ab", "ab\0", "ab" + LAST], ["a", "aa", "ac", "b"]),
        (values.with_prefix(""), ["", "\0", LAST], []),
        (values.with_prefix("a" + LAST), ["a" + LAST, "a" + LAST + "x"], ["a", "az", "b"]),
        (values.with_prefix(LAST), [LAST, LAST + "x"], ["", "z"]),
        (values.with_prefix("\ud7ff"), ["\ud7ff", "\ud7ffx"], ["\ue000", "\ud7fe"]),
    ],
)
def test_set_holds_what_it_should_and_its_complement_the_rest(
    made: ValueSet, inside: list[Value], outside: list[Value]
):
    assert all(value in made for value in inside)
    assert not any(value in made for value in outside)
    assert not any(value in made.complement() for value in inside)
    assert all(value in made.complement() for value in outside)


def test_equal_sets_have_equal_forms_however_they_are_made():
    assert values.below("a\0") == values.at_most("a")
    assert values.union([values.below(1), values.only(1)]) == values.at_most(1)
    assert values.only(True).complement() == values.only(False)
    assert values.below("\0") == values.only("")
    assert values.union([values.only("a"), values.only("a\0")]) == values.between(
        ("a", 0), ("a\0\0", 0), Kind.TEXT
    )


@pytest.mark.parametrize(
    "empty",
    [
        values.below(""),
        values.intersection([values.below(1), values.below(1).complement()]),
        values.intersection([values.only(True), values.only(False)]),
        values.between(cut_before("b"), cut_before("a"), Kind.TEXT),
        values.between(cut_after(1), cut_before(1), Kind.NUMBER),
        values.with_prefix("").complement(),
    ],
)
def test_empty_set_is_known_as_empty(empty: ValueSet):
    assert empty.is_empty()
    assert empty.complement().complement() == empty


def test_subset_compares_sets_of_one_kind_only():
    assert values.only(3).is_subset(values.below(4))
    assert not values.below(4).is_subset(values.only(3))
    assert values.below(4).is_subset(values.below(4))
    assert not values.only("3").is_subset(values.below(4))
    assert values.with_prefix("ab").is_subset(values.with_prefix("a"))


def test_intervals_go_from_cut_to_cut():
    made = values.union([values.below(1), values.only(5), values.at_most(9).complement()])
    assert made.intervals() == [(None, (1, 0)), ((5, 0), (5, 1)), ((9, 1), None)]


@pytest.mark.parametrize(
    ("made", "points"),
    [
        (values.any_of([3, 1]), [1, 3]),
        (values.any_of(["", "a"]), ["", "a"]),
        (values.only(True), [True]),
        (values.only(True).complement(), [False]),
        (values.below(""), []),
        (values.below(3), None),
        (values.between((1, 0), (2, 0), Kind.NUMBER), None),
        (values.only(1).complement(), None),
        (values.only("").complement(), None),
    ],
)
def test_points_are_listed_where_they_are_finitely_many(made: ValueSet, points: list[Value] | None):
    assert made.points() == points


@pytest.mark.parametrize(
    ("prefix", "end"),
    [("a", "b"), ("a" + LAST, "b"), (LAST, ""), ("", ""), ("\ud7ff", "\ue000"), ("\0", "\x01")],
)
def test_prefix_ends_before_the_first_text_after_all_that_have_it(prefix: str, end: str):
    assert values.prefix_end(prefix) == end
