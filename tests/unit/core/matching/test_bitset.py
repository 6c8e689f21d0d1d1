"""When the fast index builds, joins and drops layers, and what its numbers mean."""

import pytest

from octopis.core.filters import parse_filter
from octopis.core.matching import BitsetIndex, bitset

ANY = parse_filter("a > 0")


def filled(count: int, destination: str = "link") -> BitsetIndex[int, str]:
    index: BitsetIndex[int, str] = BitsetIndex()
    index.add_many((number, ANY, destination) for number in range(count))
    return index


def sizes(index: BitsetIndex[int, str]) -> list[int]:
    return sorted(layer.size for layer in index._layers)


def test_few_subscriptions_wait_and_many_become_a_layer():
    few, many = filled(64), filled(65)
    for index in (few, many):
        assert len(index.matches([{"a": 1}])[0]) == len(index)
    assert (sizes(few), len(few._pending)) == ([], 64)
    assert (sizes(many), len(many._pending)) == ([65], 0)


def test_waiting_ones_become_a_layer_once_they_have_cost_as_much():
    index = filled(10)
    for _ in range(10):
        index.destinations([{"a": 1}] * 40)
    assert sizes(index) == []
    index.destinations([{"a": 1}] * 40)
    assert sizes(index) == [10]


def test_new_layer_takes_in_those_not_much_larger_and_leaves_large_ones(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(bitset, "_READ_MEMBERS", 0)  # reading never joins
    index = filled(1_000)
    index.destinations([{}])
    for start in (1_000, 1_100, 1_200):
        index.add_many((number, ANY, "link") for number in range(start, start + 100))
        index.destinations([{}])
    assert sizes(index) == [300, 1_000]


def test_layers_are_joined_once_reading_them_has_cost_as_much():
    index = filled(1_000)
    index.destinations([{}])
    index.add_many((number, ANY, "link") for number in range(1_000, 1_100))
    index.destinations([{}])
    assert sizes(index) == [100, 1_000]
    for _ in range(1_100 // bitset._READ_MEMBERS):
        index.destinations([{}])
    assert sizes(index) == [1_100]
    assert index.matches([{"a": 1}]) == [list(range(1_100))]


def test_removed_ones_are_left_out_when_layers_are_joined_and_empty_layers_go():
    index = filled(100)
    index.matches([{}])
    for number in range(0, 100, 2):
        index.remove(number)
    index.add_many((number, ANY, "link") for number in range(100, 170))
    assert index.matches([{"a": 1}])[0] == sorted(
        [*range(1, 100, 2), *range(100, 170)], key=index._numbers.__getitem__
    )
    assert sizes(index) == [120]
    for number in [*range(1, 100, 2), *range(100, 170)]:
        index.remove(number)
    index.add(500, ANY, "link")
    assert index.matches([{"a": 1}]) == [[500]]
    assert sizes(index) == []


def test_number_of_a_removed_subscription_is_used_again_without_mixing_them_up():
    index = filled(70)
    index.destinations([{}])
    index.remove(3)
    index.add(700, parse_filter("b = 1"), "other")
    assert index._numbers[700] == 3
    for _ in range(2):  # waiting, then in a layer
        assert index.matches([{"b": 1}, {"a": 1}])[0] == [700]
        assert 700 not in index.matches([{"a": 1}])[0]
        assert index.destinations([{"b": 1}]) == [("other",)]
        index.add_many(
            (number, ANY, "link") for number in range(800 + len(index), 870 + len(index))
        )
    index.remove(700)
    assert index.matches([{"b": 1}]) == [[]]


def test_numbers_of_matches_come_in_ascending_order_and_once():
    index: BitsetIndex[str, int] = BitsetIndex()
    wanted = parse_filter("a = 1 AND x IS NULL OR b = 1 OR c LIKE '%z'")
    index.add_many((f"s{number}", wanted, number % 3) for number in range(80))
    rows, numbers = index.match_numbers([{"a": 1, "b": 1, "c": "z"}, {}, {"b": 1}])
    assert rows.tolist() == [0] * 80 + [2] * 80
    assert numbers.tolist() == [*range(80), *range(80)]


def test_answers_are_remembered_within_bounds():
    index: BitsetIndex[int, int] = BitsetIndex()
    index.add_many((n, parse_filter(f"a{n} = 1"), n) for n in range(14))
    for subset in range(2**14):
        chosen = tuple(n for n in range(14) if subset >> n & 1)
        if subset % 3 == 0:
            assert index.destinations([{f"a{n}": 1 for n in chosen}]) == [chosen]
    assert len(index._known_answers) <= 4096


def test_answer_stays_right_when_destinations_come_later():
    index = filled(70, "first")
    assert index.destinations([{"a": 1}]) == [("first",)]
    index.add_many((number, ANY, f"link {number}") for number in range(100, 120))
    assert index.destinations([{"a": 1}])[0][:2] == ("first", "link 100")
    assert len(index.destinations([{"a": 1}])[0]) == 21
