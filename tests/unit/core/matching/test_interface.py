"""What every matching index does; each test runs on both."""

from typing import Any

import pytest

from octopis.core.filters import parse_filter
from octopis.core.matching import BitsetIndex, LinearIndex, MatchingIndex

Index = MatchingIndex[str, str]
CROWD = 100
"""So many subscriptions that never match make the fast index build a block."""


@pytest.fixture(params=["linear", "bitset", "bitset with a block"])
def index(request: pytest.FixtureRequest) -> Index:
    made: Index = LinearIndex() if request.param == "linear" else BitsetIndex()
    if request.param == "bitset with a block":
        made.add_many(
            (f"crowd {n}", parse_filter("a < 0 AND a > 0"), "nowhere") for n in range(CROWD)
        )
        made.destinations([{}])
    return made


def test_destinations_have_any_match_behind_them(index: Index):
    index.add("one", parse_filter("a > 1"), "left")
    index.add("two", parse_filter("a > 2"), "left")
    index.add("three", parse_filter("a > 2"), "right")
    assert index.destinations([{"a": 1}, {"a": 2}, {"a": 3}, {}]) == [
        (),
        ("left",),
        ("left", "right"),
        (),
    ]


def test_destinations_come_in_the_order_in_which_they_were_heard_of(index: Index):
    for name in ("z", "m", "a"):
        index.add(name, parse_filter("TRUE"), name)
    index.remove("z")
    index.add("again", parse_filter("TRUE"), "z")
    assert index.destinations([{}]) == [("z", "m", "a")]


def test_all_matches_are_listed_once(index: Index):
    index.add("both", parse_filter("a > 1 OR b = 'x' AND c IS NULL"), "left")
    index.add("other", parse_filter("b LIKE '_'"), "right")
    found = index.matches([{"a": 2, "b": "x"}, {"a": 1}, {"b": "y"}])
    assert [sorted(ids) for ids in found] == [["both", "other"], [], ["other"]]


def test_removed_subscription_matches_no_more(index: Index):
    index.add("one", parse_filter("TRUE"), "left")
    index.matches([{}])
    index.remove("one")
    assert index.matches([{}]) == [[]]
    assert index.destinations([{}]) == [()]


def test_id_may_come_again_with_another_filter_and_destination(index: Index):
    index.add("one", parse_filter("a = 1"), "left")
    index.remove("one")
    index.add("one", parse_filter("a = 2"), "right")
    assert index.destinations([{"a": 1}, {"a": 2}]) == [(), ("right",)]
    assert index.matches([{"a": 2}]) == [["one"]]


def test_knows_what_is_in_it(index: Index):
    before = len(index)
    index.add_many([("one", parse_filter("TRUE"), "x"), ("two", parse_filter("FALSE"), "x")])
    assert len(index) == before + 2
    assert "two" in index
    index.remove("two")
    assert "two" not in index
    assert len(index) == before + 1


def test_same_id_twice_is_a_programmers_fault(index: Index):
    index.add("one", parse_filter("TRUE"), "x")
    with pytest.raises(AssertionError, match="'one' is there already"):
        index.add("one", parse_filter("FALSE"), "y")


def test_removing_what_is_not_there_is_a_programmers_fault(index: Index):
    with pytest.raises(KeyError):
        index.remove("nobody")


def test_empty_batch_has_no_answers(index: Index):
    index.add("one", parse_filter("a IS NULL"), "x")
    assert index.destinations([]) == []
    assert index.matches([]) == []


def test_matches_come_in_an_order_that_repeats(index: Index):
    index.add_many((f"s{n}", parse_filter(f"a > {n % 7}"), "x") for n in range(200))
    batch = [{"a": 5}, {"a": 2}]
    assert index.matches(batch) == index.matches(batch)
    assert len(index.matches(batch)[0]) > len(index.matches(batch)[1]) > 0


@pytest.mark.parametrize("size", [1, 2])
def test_attribute_that_is_none_is_absent(index: Index, size: int):
    asked = (
        "a IS NULL",
        "a IS NOT NULL",
        "a > 0",
        "NOT a > 0",
        "a LIKE '%x'",
        "a + 1 > 0",
        "a = b",
    )
    for text in asked:
        index.add(text, parse_filter(text), text)
    batch: list[dict[str, Any]] = [{"a": None, "b": 1}] * size
    wanted = [text for text in asked if parse_filter(text).matches(batch[0])]
    assert wanted == ["a IS NULL"]
    assert index.matches(batch) == [wanted] * size
    assert index.destinations(batch) == [tuple(wanted)] * size


def test_destinations_come_as_bits_in_the_order_in_which_they_were_heard_of(index: Index):
    known = 1 if len(index) else 0  # where the crowd's comes first
    index.hear_of(["left", "far", "right"])
    index.add("one", parse_filter("a > 1"), "right")
    index.add("two", parse_filter("a > 2"), "left")
    index.add("three", parse_filter("a > 2"), "new")
    bits = [0b000, 0b0100, 0b1101, 0]
    assert index.reached([{"a": 1}, {"a": 2}, {"a": 3}, {}]) == [each << known for each in bits]
    assert index.destinations([{"a": 3}]) == [("left", "right", "new")]


def test_many_destinations_come_as_bits_too(index: Index):
    known = 1 if len(index) else 0
    index.hear_of(f"d{n}" for n in range(150))
    index.add_many((f"s{n}", parse_filter(f"a = {n % 7}"), f"d{n}") for n in range(0, 150, 3))
    found = index.reached([{"a": 3}] * 5)
    assert found == [sum(1 << n + known for n in range(0, 150, 3) if n % 7 == 3)] * 5
