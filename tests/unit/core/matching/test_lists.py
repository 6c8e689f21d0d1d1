import pytest

from octopis.core.filters import parse_filter
from octopis.core.matching import BitsetIndex, lists
from octopis.core.matching import layer as layer_module
from octopis.core.matching.lists import Member, RareLists


def member(number: int, text: str, destination: int = 0) -> Member:
    return Member(number, destination, parse_filter(text))


def wide(number: int) -> str:
    return " OR ".join(f"f{number}x{k} = 1" for k in range(60))


def test_rare_ones_are_found_by_their_attributes_alone():
    rare = RareLists()
    assert rare.take([member(1, "a = 1 AND b = 2"), member(2, "c = 1 OR d = 1", 3)]) == []
    assert [*rare.matches({"a": 1, "b": 2})] == [1]
    assert [*rare.matches({"a": 1, "b": 3})] == []
    assert [*rare.matches({"c": 1, "d": 1})] == [2, 2]
    assert rare.reached({"c": 1}, 0b1) == 0b1001
    assert [*rare.under({"e": 1})] == []


def test_what_requires_nothing_or_nothing_rare_is_not_taken():
    rare = RareLists()
    others = [member(n, text) for n, text in enumerate(("TRUE", "FALSE", "a IS NULL", "NOT a = 1"))]
    found = rare.take(others)
    assert [each.number for each in found] == [0, 1, 2]
    assert len(rare) == 1


def test_attribute_that_many_ask_for_is_rare_no_more():
    rare = RareLists()
    few = [member(n, f"a = {n} OR only{n} = 1") for n in range(lists._FEW)]
    assert rare.take(few) == []
    one_more = member(99, "a = 99")
    assert sorted(each.number for each in rare.take([one_more])) == [*range(lists._FEW), 99]
    assert len(rare) == 0
    assert rare._lists == {}  # with all that stood under other attributes
    assert rare.take([one_more]) == [one_more]
    assert rare.take([member(100, "a = 1 AND b = 1")]) == []  # b is rare


def test_removed_ones_leave_nothing_behind():
    rare = RareLists()
    rare.take([member(1, wide(1)), member(2, "f1x0 = 1")])
    rare.remove(1)
    assert [*rare.matches({"f1x0": 1})] == [2]
    rare.remove(2)
    assert (rare._lists, rare._names, rare._members) == ({}, {}, {})


def test_filters_of_many_names_are_indexed_once_and_nothing_is_built(
    monkeypatch: pytest.MonkeyPatch,
):
    built: list[int] = []
    init = layer_module.Layer.__init__

    def counted(self: layer_module.Layer, members: list[Member]) -> None:
        built.append(len(members))
        init(self, members)

    monkeypatch.setattr(layer_module.Layer, "__init__", counted)
    index: BitsetIndex[int, str] = BitsetIndex()
    for number in range(200):
        index.add(number, parse_filter(wide(number)), "link")
        index.tidy()
        assert index._pending_terms <= 512 + 60
    assert index.matches([{"f150x7": 1}, {"g": 1}]) == [[150], []]
    assert index.destinations([{"f3x59": 1}, {"g": 1}]) == [("link",), ()]
    for number in range(150):
        index.remove(number)
        index.tidy()
    assert index.matches([{"f150x7": 1}, {"f3x59": 1}]) == [[150], []]
    assert built == []


def test_few_subscriptions_to_a_few_attributes_stand_in_one_block():
    """Evaluated one by one, they would take several times as long."""
    index: BitsetIndex[int, str] = BitsetIndex()
    for number in range(50):
        one, other = f"a{number % 5}", f"b{number % 4}"
        index.add(number, parse_filter(f"{one} > {number} AND {other} < {number + 9}"), "link")
    batch = [{"a0": 100, "b0": 8, "a1": 3}] * 256
    assert index.matches(batch) == [[0, 20, 40]] * 256
    (layer,) = index._layers
    assert not layer.has_lists
    assert index._rare.reached(batch[0], 0) == 0
