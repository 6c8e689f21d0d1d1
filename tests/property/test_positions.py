"""Where the notifications of a durable subscription are: as a plain table would say it."""

import random
from array import array
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.delivery.lasting.positions import NOWHERE, Positions

FAR = 2**53
GAPS = st.one_of(st.integers(0, 5), st.integers(0, FAR // 100))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 40)),
        st.tuples(st.just("lack"), GAPS),
        st.tuples(st.just("release"), st.floats(0, 1)),
        st.tuples(st.just("moved"), st.floats(0, 1)),
        st.tuples(st.just("restart"), st.randoms(use_true_random=False)),
    ),
    max_size=40,
)


class Table:
    """The positions in a dictionary, beside what is tested."""

    def __init__(self) -> None:
        self.tested = Positions(1)
        self.first = self.next = 1
        self.there: dict[int, tuple[int, int]] = {}
        self.where = 0

    def _new(self) -> tuple[int, int]:
        self.where += 1
        return self.where, self.where * 7 % 50

    def add(self, count: int) -> None:
        for _ in range(count):
            self.there[self.next] = where, size = self._new()
            self.tested.add(where, size)
            self.next += 1

    def lack(self, gap: int) -> None:
        self.tested.lack_up_to(self.next - 1 + gap)
        self.next += gap

    def _some(self, share: float) -> int:
        """Return a position, more often than not near one that has a place."""
        known = sorted(self.there) or [self.first]
        return known[min(len(known) - 1, int(share * len(known)))]

    def release(self, share: float) -> None:
        upto = self._some(share) + round(share * 3) - 1
        gone = {each: about for each, about in self.there.items() if each <= upto}
        assert self.tested.release(upto) == [where for where, _ in gone.values()]
        for each in gone:
            del self.there[each]
        self.first = max(self.first, min(upto + 1, self.next))

    def moved(self, share: float) -> None:
        position, (where, _) = self._some(share), self._new()
        self.tested.moved(position, where)
        if position in self.there:
            self.there[position] = where, self.there[position][1]

    def restart(self, chance: random.Random) -> None:
        """Be recovered from records in any order, some of which were written again since."""
        self.tested = Positions(self.first)
        again = dict.fromkeys(chance.sample(sorted(self.there), len(self.there) // 3), (0, 1))
        records = [*{**self.there, **again}.items()]
        chance.shuffle(records)
        records += [(each, self.there[each]) for each in again]
        for position, about in records:
            self.tested.found(position, *about)
        self.tested.recovered()
        self.tested.lack_up_to(self.next - 1)

    def is_right(self) -> None:
        tested = self.tested
        assert (tested.first, tested.next) == (self.first, self.next)
        assert (tested.kept, tested.bytes) == (
            len(self.there),
            sum(size for _, size in self.there.values()),
        )
        for position, (where, _) in self.there.items():
            assert tested.where(position) == where
            for near in (position - 1, position + 1):
                assert tested.where(near) == self.there.get(near, (NOWHERE, 0))[0]
        known = sorted(self.there)
        for number in range(0, len(known), 7):
            assert tested.counted(number + 1) == known[number]
            self._reads(known[number] - 1 - number % 3, number + 3, 20 * number)
        self._reads(self.first - 1, 10_000, 10**9)

    def _reads(self, after: int, count: int, size: int) -> None:
        upto = max(after, (after + self.next) // 2 if count % 2 else self.next)
        due = [each for each in sorted(self.there) if after < each <= upto][:count]
        total, fitting = 0, 0
        for each in due:
            total += self.there[each][1]
            fitting += total <= size
        due = due[: max(fitting, min(1, len(due)))]
        positions, where = self.tested.within(after, upto, count, size)
        assert list(positions) == due
        assert where == [self.there[each][0] for each in due]


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_whatever_comes_and_goes_all_is_where_a_table_says(steps: list[tuple[str, Any]]):
    table = Table()
    for what, about in steps:
        getattr(table, what)(about)
        table.is_right()


def test_what_is_released_is_given_back_also_between_many_gaps():
    table = Table()
    for _ in range(6_000):
        table.add(1)
        table.lack(3)
    for _ in range(9):
        table.release(0.5)
    held = [each for each in vars(table.tested).values() if isinstance(each, array)]
    assert len(held) == 4
    assert all(len(each) < 2_000 for each in held)
    table.is_right()


def test_what_is_not_there_takes_no_room():
    tested = Positions(1)
    for position in range(10**6, FAR, FAR // 1_000):
        tested.lack_up_to(position)
        tested.add(position, 10)
    held = [each for each in vars(tested).values() if isinstance(each, array)]
    assert sum(each.itemsize * len(each) for each in held) <= 28 * 1_000
