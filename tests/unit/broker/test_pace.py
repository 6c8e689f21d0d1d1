from collections.abc import Callable

import pytest

from octopis.broker.pace import SHARE_MAX, SHARE_MIN, SLICE_S, Pace

STEP_S = 0.0005


class Machine:
    """A clock and an event loop in virtual time, on which others may be busy."""

    def __init__(self, others_s: float = 0.0) -> None:
        self.now = 100.0
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.turns: list[float] = []
        """How long changes took without a turn of anybody else."""

        self._others_s = others_s
        self.pace = Pace(lambda: self.now, self._call_later)

    def _call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.due.append((self.now + delay_s, call))

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.due and self.now < until:
            at, call = self.due.pop(0)
            self.now = max(self.now, at) + self._others_s
            begin = self.now
            call()
            self.turns.append(self.now - begin)


class Steps:
    """A work that has so many steps to do, all of the same length."""

    def __init__(self, machine: Machine, steps: int, step_s: float = STEP_S) -> None:
        self._machine = machine
        self._step_s = step_s
        self.left = steps
        self.done: list[float] = []
        self.rests = 0

    def step(self) -> bool:
        self._machine.now += self._step_s
        self.left -= 1
        self.done.append(self._machine.now)
        return self.left > 0

    def rest(self) -> None:
        self.rests += 1


def test_little_is_done_at_once_and_its_slice_is_ended():
    machine = Machine()
    work = Steps(machine, 2)
    machine.pace.add(work)
    machine.run(1)
    assert work.left == 0
    assert machine.now == pytest.approx(100 + 2 * STEP_S)
    assert work.rests == 1
    assert machine.due == []


def test_others_have_their_turn_after_every_slice():
    machine = Machine()
    work = Steps(machine, 1_000)
    machine.pace.add(work)
    machine.run(10)
    assert work.left == 0
    assert max(machine.turns) <= SLICE_S + STEP_S
    assert len(machine.turns) == work.rests >= 1_000 * STEP_S / (SLICE_S + STEP_S)


@pytest.mark.parametrize(
    ("others_s", "share"), [(0.0, SHARE_MAX), (0.002, SHARE_MIN), (0.02, SHARE_MIN)]
)
def test_changes_take_a_bounded_share_which_is_small_where_others_are_busy(
    others_s: float, share: float
):
    machine = Machine(others_s)
    works = [Steps(machine, 10_000) for _ in range(9)]  # as of nine brokers
    for work in works:
        machine.pace.add(work)
    machine.run(0.5)
    begun, done = machine.now, sum(len(work.done) for work in works)
    machine.run(2)
    taken = STEP_S * (sum(len(work.done) for work in works) - done) / (machine.now - begun)
    assert 0 < taken <= share + 0.01


def test_no_step_however_long_takes_a_larger_share():
    machine = Machine()
    machine.pace.add(Steps(machine, 1_000, step_s=0.01))
    machine.run(5)
    assert sum(machine.turns) / (machine.now - 100) <= SHARE_MAX + 0.01


def test_share_grows_again_once_others_are_no_longer_busy():
    machine = Machine(others_s=0.01)
    work = Steps(machine, 100_000)
    machine.pace.add(work)
    machine.run(1)
    machine._others_s = 0.0
    machine.run(1)
    begun, done = machine.now, len(work.done)
    machine.run(2)
    assert STEP_S * (len(work.done) - done) / (machine.now - begun) > SHARE_MAX - 0.05


def test_works_take_turns_step_by_step():
    machine = Machine()
    long, short = Steps(machine, 1_000), Steps(machine, 3)
    machine.pace.add(long)
    machine.pace.add(short)
    machine.run(1)
    assert short.left == 0
    assert sum(each < short.done[-1] for each in long.done) == 3


def test_work_that_comes_during_a_rest_waits_for_its_end():
    machine = Machine()
    machine.pace.add(Steps(machine, 1, step_s=0.01))
    machine.run(1)
    ended, late = machine.now, Steps(machine, 1)
    machine.pace.add(late)
    machine.pace.add(late)  # once is enough
    machine.run(1)
    rest_s = 0.01 * (1 / SHARE_MAX - 1)
    assert late.done == [pytest.approx(ended + rest_s + STEP_S)]
