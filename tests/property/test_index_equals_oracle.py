"""The fast index gives the answers of the obvious one, on many random sets of filters.

A case is one set of filters with one notification. Filters and notifications come from pools, so
that each filter is parsed once, and evaluated once on each notification; `Remembered` hands the
oracle what `Filter.matches` said.
"""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from octopis.core.filters import Filter, parse_filter
from octopis.core.matching import BitsetIndex, LinearIndex, bitset, block, layer, layers, lists
from octopis.core.matching.block import Block
from octopis.core.matching.layer import Layer
from octopis.core.matching.layers import Layers
from octopis.core.matching.lists import RareLists
from support.author import COMPARATORS, Attributes, Author


class Pooled(dict[str, Any]):
    """The attributes of a notification of the pool, which is a key by its identity."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class Remembered(dict[Pooled, bool]):
    """A filter for the oracle that evaluates each notification of the pool only once."""

    def __init__(self, wanted: Filter) -> None:
        self.filter = wanted
        self.matches = self.__getitem__

    def __missing__(self, attributes: Pooled) -> bool:
        answer = self[attributes] = self.filter.matches(attributes)
        return answer


class Pair:
    """Both indexes with the same subscriptions."""

    def __init__(self) -> None:
        self.fast: BitsetIndex[int, str] = BitsetIndex()
        self.oracle: LinearIndex[int, str] = LinearIndex()
        self.place = "nowhere"
        """The destination behind which matches are asked for: that of the newest."""

    def add(self, number: int, wanted: Filter | Remembered, destination: str) -> None:
        plain = wanted.filter if isinstance(wanted, Remembered) else wanted
        self.place = destination
        self.fast.add(number, plain, destination)
        self.oracle.add(number, wanted, destination)  # type: ignore[arg-type]

    def remove(self, number: int) -> None:
        self.fast.remove(number)
        self.oracle.remove(number)

    def check(self, batch: list[Attributes]) -> int:
        """Compare both answers and return how many cases that were."""
        assert len(self.fast) == len(self.oracle)
        assert self.fast.destinations(batch) == self.oracle.destinations(batch)
        bits, behind = self.fast.reached_and_matches(batch, self.place)
        wanted_bits, wanted = self.oracle.reached_and_matches(batch, self.place)
        assert bits == wanted_bits
        assert list(map(sorted, behind)) == list(map(sorted, wanted))
        found = self.fast.matches(batch)
        assert list(map(sorted, found)) == list(map(sorted, self.oracle.matches(batch)))
        return len(batch)


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what the tests drive the fast index through."""
    counts: Counter[str] = Counter()
    init, build, init_layer = Block.__init__, Layers.build, Layer.__init__

    def counted_init(self: Block, entries: Any, named: Any) -> None:
        init(self, entries, named)
        counts["blocks"] += 1
        counts["blocks with attributes that must be absent"] += bool(self._shut_by)
        counts["blocks with residual slots"] += bool(self.residual)
        counts["blocks with gaps"] += bool(len(self._gap_slots))
        counts["blocks of one filter with several slots"] += self.shares_owners
        counts["segments of one destination"] += sum(
            s.destination is not None for s in self.segments
        )
        counts["segments of several destinations"] += sum(
            s.destination is None for s in self.segments
        )

    def counted_init_layer(self: Layer, members: Any) -> None:
        init_layer(self, members)
        counts["layers"] += 1
        counts["main blocks"] += None in self._blocks
        counts["blocks of one attribute"] += len(self._blocks.keys() - {None})
        counts["lists"] += len(self._lists)
        listed = [each for entries in self._lists.values() for each in entries]
        counts["entries in several lists"] += any(each.is_shared for each in listed)

    def counted_build(self: Layers, members: Any) -> None:
        before, added = len(self._layers), len(members)
        build(self, members)
        counts["joins of all layers"] += not added
        counts["joins of small layers"] += bool(added) and len(self._layers) <= before

    take, hand_back = RareLists.take, RareLists._hand_back

    def counted_take(self: RareLists, members: Any) -> Any:
        before = len(self)
        others = take(self, members)
        counts["taken as rare"] += max(0, len(self) - before)
        return others

    def counted_hand_back(self: RareLists, name: str) -> Any:
        counts["rare no more"] += 1
        return hand_back(self, name)

    monkeypatch.setattr(RareLists, "take", counted_take)
    monkeypatch.setattr(RareLists, "_hand_back", counted_hand_back)
    monkeypatch.setattr(Block, "__init__", counted_init)
    monkeypatch.setattr(Layer, "__init__", counted_init_layer)
    monkeypatch.setattr(Layers, "build", counted_build)
    return counts


def pool(seed: int, filters: int, notifications: int) -> tuple[list[Remembered], list[Attributes]]:
    author = Author(seed)
    return (
        [Remembered(parse_filter(author.condition())) for _ in range(filters)],
        [Pooled(author.notification()) for _ in range(notifications)],
    )


CASES_MIN = 100_000


def test_index_equals_oracle_in_100_000_cases(
    monkeypatch: pytest.MonkeyPatch, reached: Counter[str]
):
    wanted, notifications = pool(seed=1, filters=2_000, notifications=500)
    chosen = random.Random(2)  # noqa: S311 - repeatable on purpose
    cases = sets = 0
    while cases < CASES_MIN:
        sets += 1
        # Few cells make gaps common; 1024, the usual number, makes them rare.
        monkeypatch.setattr(block, "_CELLS_MAX", chosen.choice((3, 3, 1024)))
        pair = Pair()
        size = chosen.choice((1, 5, 70, 90))
        destinations = chosen.choice((1, 2, 7, 40))
        for number in range(size):
            place = f"link {chosen.randrange(destinations)}"
            pair.add(number, chosen.choice(wanted), place)
        for _ in range(4):
            cases += pair.check(chosen.sample(notifications, chosen.choice((1, 40, 64))))
    assert cases >= CASES_MIN
    assert sets >= 500
    assert (
        min(
            reached[name]
            for name in (
                "blocks with gaps",
                "blocks with residual slots",
                "blocks of one filter with several slots",
                "segments of one destination",
                "segments of several destinations",
            )
        )
        >= 50
    )


@pytest.mark.parametrize("destinations", [3, 400])
def test_columns_of_thousands_of_boundaries_have_gaps_and_equal_the_oracle(
    reached: Counter[str], destinations: int
):
    chosen = random.Random(destinations)  # noqa: S311 - repeatable on purpose
    pair = Pair()
    for number in range(1_500):
        low, text = chosen.random() * 1000, f"{chosen.randrange(10**6):06}"
        condition = chosen.choice(
            (
                f"x BETWEEN {low} AND {low + chosen.random() * 50}",
                f"x > {low} AND t < '{text}'",
                f"t LIKE '{text[:3]}%' OR x NOT BETWEEN {low} AND {low + 900}",
                f"x IN ({low}, {2**53 + number}, {-number})",
            )
        )
        pair.add(number, parse_filter(condition), f"link {chosen.randrange(destinations)}")
    numbers = [chosen.random() * 1000 for _ in range(30)]
    numbers += [2**53 + n for n in range(5)] + [-5, -5.0, 0, 1e300]
    batch = [{"x": x, "t": f"{chosen.randrange(10**6):06}"} for x in numbers]
    batch += [{"x": "text"}, {"t": 5}, {}]
    pair.check(batch)
    for attributes in batch[:10]:
        pair.check([attributes])
    (layer,) = pair.fast._layers
    (main,) = layer._blocks.values()
    columns = main._columns
    assert max(column._positions.count for column in columns) > 1024
    assert reached["blocks with gaps"] == 1


def test_long_life_of_adds_and_removes_equals_the_oracle(reached: Counter[str]):
    wanted, notifications = pool(seed=3, filters=600, notifications=120)
    chosen = random.Random(4)  # noqa: S311 - repeatable on purpose
    pair = Pair()
    present: list[int] = []
    following = 0
    for step in range(200):
        for _ in range(chosen.choice((2, 20, 90))):
            pair.add(following, chosen.choice(wanted), f"link {following % 5}")
            present.append(following)
            following += 1
        for _ in range(chosen.choice((0, 5, 60))):
            if present:
                pair.remove(present.pop(chosen.randrange(len(present))))
        if step % 40 == 39:  # all but a few go at once
            for number in present[3:]:
                pair.remove(number)
            del present[3:]
        for _ in range(chosen.choice((1, 1, 20))):
            pair.check(chosen.sample(notifications, 5))
    assert reached["joins of small layers"] > 3
    assert reached["joins of all layers"] > 3


def test_many_names_and_wide_ors_equal_the_oracle(
    monkeypatch: pytest.MonkeyPatch, reached: Counter[str]
):
    author = Author(7, [f"n{number}" for number in range(100)])
    wanted = [Remembered(parse_filter(author.condition())) for _ in range(400)]
    wanted += [Remembered(parse_filter(author.wide_or())) for _ in range(30)]
    notifications: list[Attributes] = [Pooled(author.notification()) for _ in range(120)]
    chosen = random.Random(8)  # noqa: S311 - repeatable on purpose
    for _ in range(12):
        monkeypatch.setattr(layer, "_COMMON_MIN", chosen.choice((2, 16, 30)))
        monkeypatch.setattr(layer, "_COMMON_MAX", chosen.choice((2, 20, 256)))
        monkeypatch.setattr(layer, "_LISTED_MAX", chosen.choice((0, 3, 64)))
        monkeypatch.setattr(lists, "_FEW", chosen.choice((0, 0, 3, 8)))
        pair = Pair()
        size = chosen.choice((70, 150, 250))
        for number in range(size):
            pair.add(number, chosen.choice(wanted), f"link {number % 75}")
        pair.check(chosen.sample(notifications, 40))
        for left in (size // 2, size // 6, 1):  # below a quarter, what is left is built anew
            present = list(pair.oracle._entries)
            for number in chosen.sample(present, len(present) - left):
                pair.remove(number)
            pair.check(chosen.sample(notifications, 15))
        assert sum(len(each.members) for each in pair.fast._layers) <= 4
    assert reached["main blocks"] >= 10
    for name in ("blocks of one attribute", "lists", "blocks with attributes that must be absent"):
        assert reached[name] >= 50
    assert reached["entries in several lists"] >= 10
    assert reached["taken as rare"] >= 50
    assert reached["rare no more"] >= 50


def test_empty_index_and_empty_batch_have_empty_answers():
    pair = Pair()
    pair.check([])
    assert pair.fast.destinations([{}, {"a": 1}]) == [(), ()]
    assert pair.fast.matches([{}, {"a": 1}]) == [[], []]
    for number in range(100):
        pair.add(number, parse_filter("a IS NULL AND b > 3 OR c = 'x'"), "link")
    pair.check([{}])
    assert pair.fast._layers
    assert pair.fast.destinations([]) == []
    assert pair.fast.matches([]) == []


@pytest.mark.parametrize(
    "text", ["TRUE", "FALSE", "a IS NULL AND a IS NOT NULL", "a > 1 AND a < 1"]
)
def test_block_of_one_condition_without_choice_equals_the_oracle(text: str):
    pair = Pair()
    for number in range(70):
        pair.add(number, parse_filter(text), f"link {number % 3}")
    pair.check([{}, {"a": 1}, {"a": "x"}])
    pair.remove(69)
    pair.check([{"a": 1}])
    assert pair.fast._layers


# Small examples that shrink

REMEMBERED, DRAWN = pool(seed=5, filters=300, notifications=200)
CHOICES = [(each.filter, destination) for each in REMEMBERED for destination in "xyz"]
# By number: Hypothesis would print the whole list, again and again, where it samples from one.
NOTIFICATION = st.integers(0, len(DRAWN) - 1).map(lambda number: DRAWN[number])
ENTRY = st.integers(0, len(CHOICES) - 1).map(lambda number: CHOICES[number])
ENTRIES = st.lists(ENTRY, max_size=12)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make blocks of few subscriptions, with few cells, and join layers soon."""
    monkeypatch.setattr(bitset, "_PENDING_MAX", 2)
    monkeypatch.setattr(layers, "_GROWTH", 1)
    monkeypatch.setattr(layers, "_READ_MEMBERS", 5)
    monkeypatch.setattr(block, "_CELLS_MAX", 3)
    monkeypatch.setattr(layer, "_COMMON_MIN", 2)
    monkeypatch.setattr(layer, "_COMMON_MAX", 3)
    monkeypatch.setattr(layer, "_LISTED_MAX", 1)
    monkeypatch.setattr(lists, "_FEW", 0)


@pytest.mark.usefixtures("eager")
def test_small_sets_equal_the_oracle(reached: Counter[str]):
    @settings(max_examples=300, deadline=None)
    @given(ENTRIES, st.lists(NOTIFICATION, max_size=5))
    def check(entries: list[tuple[Filter, str]], batch: list[Attributes]) -> None:
        pair = Pair()
        for number, (wanted, destination) in enumerate(entries):
            pair.add(number, wanted, destination)
        pair.check(batch)

    check()
    assert reached["blocks with residual slots"] > 20
    assert reached["blocks of one attribute"] > 20
    assert reached["lists"] > 20


class Lives(RuleBasedStateMachine):
    """Adds, removes, adds again under the same id, and matches, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()

    @rule(number=st.integers(0, 9), entry=ENTRY)
    def add_or_put_in_place_of(self, number: int, entry: tuple[Filter, str]) -> None:
        if number in self.pair.fast:
            self.pair.remove(number)
        self.pair.add(number, *entry)

    @rule(first=st.integers(0, 40), entries=ENTRIES)
    def add_many(self, first: int, entries: list[tuple[Filter, str]]) -> None:
        new = [
            (number, wanted, destination)
            for number, (wanted, destination) in enumerate(entries, first)
            if number not in self.pair.oracle
        ]
        self.pair.fast.add_many(new)
        self.pair.oracle.add_many(iter(new))

    @rule(number=st.integers(0, 50))
    def remove_if_there(self, number: int) -> None:
        assert (number in self.pair.fast) is (number in self.pair.oracle)
        if number in self.pair.fast:
            self.pair.remove(number)

    @rule(first=st.integers(0, 40), entries=ENTRIES, batch=st.lists(NOTIFICATION, max_size=4))
    def add_many_and_match(
        self, first: int, entries: list[tuple[Filter, str]], batch: list[Attributes]
    ) -> None:
        self.add_many(first, entries)
        self.pair.check(batch)

    @rule(batch=st.lists(NOTIFICATION, max_size=4))
    def match(self, batch: list[Attributes]) -> None:
        self.pair.check(batch)


@pytest.mark.usefixtures("eager")
def test_interleaved_adds_removes_and_matches_equal_the_oracle(reached: Counter[str]):
    run_state_machine_as_test(
        Lives, settings=settings(max_examples=150, stateful_step_count=30, deadline=None)
    )
    assert reached["main blocks"] > 50
    assert reached["blocks of one attribute"] > 50
    assert reached["lists"] > 50
    assert reached["joins of all layers"] > 10
    assert reached["joins of small layers"] > 10


def generated_operators() -> Iterator[str]:
    author = Author(6)
    for _ in range(3_000):
        yield author.condition()


def test_random_filters_have_every_operator():
    texts = "\n".join(generated_operators())
    wanted = (*COMPARATORS, "NOT BETWEEN", "NOT IN", "NOT LIKE", "IS NULL", "IS NOT NULL", "ESCAPE")
    wanted += ("+", "-", "*", "/", " % ", "TRUE", "FALSE", " OR ", "NOT (", "\0", "\U0010ffff")
    assert [word for word in wanted if word not in texts] == []
