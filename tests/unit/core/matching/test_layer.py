"""Which home each alternative of a filter finds, and what a notification looks at."""

from collections import Counter

import pytest

from octopis.core.filters import parse_filter
from octopis.core.filters.terms import LikeTerm
from octopis.core.matching import BitsetIndex
from octopis.core.matching import layer as module
from octopis.core.matching.layer import Layer, Member
from octopis.core.model import Value

MANY_ORS = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(7))


def layer(*texts: str) -> Layer:
    return Layer([Member(number, 0, parse_filter(text)) for number, text in enumerate(texts)])


def listed(made: Layer) -> dict[str, list[int]]:
    return {name: [each.number for each in found] for name, found in made._lists.items()}


def block_owners(made: Layer) -> dict[str | None, int]:
    return {name: int((block.owners >= 0).sum()) for name, block in made._blocks.items()}


def test_entries_of_common_attributes_share_a_block_and_others_stand_under_their_rarest():
    common = [f"a > {n} AND b < {n}" for n in range(20)]
    made = layer(*common, "a = 1 AND x = 1", "x = 2 AND y = 1", "x = 3", "TRUE", "q IS NULL")
    assert block_owners(made) == {None: 22}
    assert set(made._blocks[None]._attributes) == {"a", "b"}
    assert listed(made) == {"x": [20, 22], "y": [21]}


def test_more_entries_under_one_attribute_than_are_worth_evaluating_become_a_block(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "_COMMON_MAX", 1)
    texts = [f"a = {n}" for n in range(100)] + [f"x = {n} AND y{n} = 1" for n in range(30)]
    texts += [f"z > {n}" for n in range(65)]
    made = layer(*texts)
    assert block_owners(made) == {None: 100, "z": 65}
    assert listed(made) == {f"y{n}": [100 + n] for n in range(30)}


def test_ors_that_are_only_evaluated_stand_under_each_attribute_of_which_one_must_be_there():
    made = layer(MANY_ORS, f"x = 1 AND {MANY_ORS}")
    assert listed(made) == {"a0": [0], "b0": [0], "x": [1]}
    truly = {f"a{n}": 1 for n in range(7)} | {"b0": 1, "x": 1}
    assert list(made.listed_matches(truly)) == [0, 1]  # 0 once, although under two names
    assert list(made.listed_matches({"b1": 1})) == []


def test_most_frequent_attributes_have_the_columns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_COMMON_MAX", 2)
    texts = [
        f"{name} = {n}" for name, count in (("a", 17), ("b", 30), ("c", 20)) for n in range(count)
    ]
    made = layer(*texts)
    assert set(made._blocks[None]._attributes) == {"b", "c"}
    assert list(listed(made)) == ["a"]


def test_attribute_of_a_small_share_of_many_entries_has_no_column(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_COMMON_SHARE", 4)
    made = layer(*(f"a = {n}" for n in range(100)), *(f"b = {n}" for n in range(20)))
    assert set(made._blocks[None]._attributes) == {"a"}
    assert listed(made) == {"b": list(range(100, 120))}


def test_removed_subscription_is_found_in_none_of_its_homes():
    common = [f"a = {n % 3}" for n in range(40)]
    made = layer(*common, f"a = 1 OR x = 1 OR y = 1 AND z = 1 OR {MANY_ORS}", "x = 1")
    batch: list[dict[str, Value]] = [{"a": 1, "x": 1}]
    (main, _), *others = made.blocks_for(batch)
    assert others == []
    assert 40 in main.matches(batch)[1].tolist()
    made.remove(40)
    made.remove(1)
    assert made.size == 40
    assert not {1, 40} & set(main.matches(batch)[1].tolist())
    assert list(made.listed_matches({"a0": 1, "x": 1, "y": 1, "z": 1})) == [41]


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the LIKE terms that are looked at."""
    counts: Counter[str] = Counter()
    truth = LikeTerm.truth

    def counted(self: LikeTerm, attributes: dict[str, Value]) -> bool | None:
        counts[self.attribute] += 1
        return truth(self, attributes)

    monkeypatch.setattr(LikeTerm, "truth", counted)
    return counts


@pytest.mark.parametrize("size", [1, 3])
def test_wide_ors_cost_nothing_where_their_attributes_are_absent(
    evaluated: Counter[str], size: int
):
    index: BitsetIndex[int, int] = BitsetIndex()
    for number in range(70):
        text = " OR ".join(f"t{number}x{n % 3} LIKE '%{n}'" for n in range(150))
        index.add(number, parse_filter(text), number)
    index.add(70, parse_filter("u = 1"), 70)
    assert index.destinations([{"u": 1, "v": "text"}] * size) == [(70,)] * size
    assert index.matches([{"u": 1, "v": "text"}] * size) == [[70]] * size
    assert not evaluated
    assert index.matches([{"t5x0": "149", "t5x1": "149"}] * size) == [[5]] * size
    assert set(evaluated) == {"t5x0", "t5x1"}
    assert evaluated.total() <= 100 * size
