"""When the fast index builds, joins and drops layers, and what its numbers mean."""

from collections.abc import Callable
from concurrent.futures import Future

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.filters import parse_filter
from octopis.core.filters.like import LikePattern
from octopis.core.matching import BitsetIndex, bitset, layers
from octopis.core.matching.layer import Layer

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
    monkeypatch.setattr(layers, "_READ_MEMBERS", 0)  # reading never joins
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
    for _ in range(1_100 // layers._READ_MEMBERS):
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


class Later:
    """Builds what it is asked for when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Layer], Callable[[], Layer]]] = []

    def submit(self, build: Callable[[], Layer]) -> "Future[Layer]":
        self.waiting.append((Future(), build))
        return self.waiting[-1][0]

    def build(self) -> None:
        while self.waiting:
            result, build = self.waiting.pop()
            result.set_result(build())


def test_large_layers_are_joined_meanwhile_and_small_ones_are_read_until_then():
    later = Later()
    index: BitsetIndex[int, str] = BitsetIndex(later.submit)
    for start in (0, 700, 1_400):
        index.add_many((number, ANY, "link") for number in range(start, start + 700))
        index.tidy()
    assert sizes(index) == [700, 700, 700]
    assert len(later.waiting) == 1
    index.remove(7)
    index.add(9_999, ANY, "link")
    wanted = sorted({*range(2_100), 9_999} - {7})
    assert sorted(index.matches([{"a": 1}])[0]) == wanted
    later.build()
    assert sorted(index.matches([{"a": 1}])[0]) == wanted
    assert 1_399 in sizes(index)
    index.remove(8)
    index.remove(9_999)
    assert sorted(index.matches([{"a": 1}])[0]) == [0, *range(1, 7), *range(9, 2_100)]


def test_many_that_go_while_their_layers_are_joined_go_at_once(monkeypatch: pytest.MonkeyPatch):
    later = Later()
    index: BitsetIndex[int, str] = BitsetIndex(later.submit)
    index.add_many((number, ANY, "link") for number in range(1_500))
    index.tidy()
    for number in range(0, 1_500, 2):
        index.remove(number)
    later.build()
    one_by_one: list[int] = []
    monkeypatch.setattr(Layer, "remove", lambda _, number: one_by_one.append(number))
    index.tidy()
    assert one_by_one == []
    assert sizes(index) == [750]
    assert sorted(index.matches([{"a": 1}])[0]) == [*range(1, 1_500, 2)]


def test_all_that_go_while_their_layers_are_joined_leave_nothing_behind():
    later = Later()
    index: BitsetIndex[int, str] = BitsetIndex(later.submit)
    index.add_many((number, ANY, "link") for number in range(1_500))
    index.tidy()
    for number in range(1_500):
        index.remove(number)
    later.build()
    index.add_many((number, parse_filter("b > 0"), "link") for number in range(2_000, 2_100))
    assert index.matches([{"a": 1}]) == [[]]
    assert sizes(index) == [100]
    assert sorted(index.matches([{"b": 1}])[0]) == [*range(2_000, 2_100)]


def test_layers_that_are_large_enough_are_joined_no_more():
    later = Later()
    index: BitsetIndex[int, str] = BitsetIndex(later.submit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "_JOINED_MAX", 3_000)
        for start in range(0, 10_000, 500):
            index.add_many((number, ANY, "link") for number in range(start, start + 500))
            index.tidy()
            later.build()
        for _ in range(300):
            index.destinations([{"a": 1}])
        later.build()
        index.tidy()
        assert max(sizes(index)) <= 3_000
        assert len(index.matches([{"a": 1}])[0]) == 10_000


def test_much_that_is_added_at_once_is_cut_so_that_nobody_waits_long():
    later = Later()
    index: BitsetIndex[int, str] = BitsetIndex(later.submit)
    index.add_many((number, ANY, "link") for number in range(2_500))
    index.tidy()
    assert sizes(index) == [500, 1_000, 1_000]
    later.build()
    index.tidy()
    assert sizes(index) == [2_500]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("+-mbt"), st.integers(0, 40)), max_size=60))
def test_whenever_layers_are_built_the_answers_are_the_same(steps: list[tuple[str, int]]):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "_AT_ONCE_MAX", 5)
        patch.setattr(bitset, "_PENDING_MAX", 3)
        later, there = Later(), set()
        index: BitsetIndex[int, str] = BitsetIndex(later.submit)
        for step, number in [*steps, ("m", 0), ("b", 0), ("m", 0)]:
            if step == "+" and number not in there:
                index.add(number, parse_filter(f"a > {number}"), f"link {number % 3}")
                there.add(number)
            elif step == "-" and number in there:
                index.remove(number)
                there.remove(number)
            elif step == "b":
                later.build()
            elif step == "t":
                index.tidy()
            elif step == "m":
                wanted = {each for each in there if each < 20}
                assert sorted(index.matches([{"a": 20}])[0]) == sorted(wanted)
                links = {f"link {each % 3}" for each in wanted}
                assert set(index.destinations([{"a": 20}])[0]) == links


def test_what_stands_behind_the_asked_destination_is_evaluated_once(monkeypatch):
    searched = []
    matches = LikePattern.matches

    def noted(pattern: LikePattern, text: str) -> bool:
        searched.append(pattern)
        return matches(pattern, text)

    monkeypatch.setattr(LikePattern, "matches", noted)
    index: BitsetIndex[str, str] = BitsetIndex()
    for name, destination in (("ab", "here"), ("cd", "here"), ("ab", "there"), ("xy", "there")):
        index.add(f"{name} {destination}", parse_filter(f"t LIKE '%{name}%'"), destination)
    for text, reached in (("xab", {"here", "there"}), ("xcd", {"here"}), ("xy", {"there"})):
        searched.clear()
        bits, [behind] = index.reached_and_matches([{"t": text}], "here")
        assert set(index._destinations_in(bits[0])) == reached
        assert bool(behind) == ("here" in reached)
        assert len(searched) <= 4
