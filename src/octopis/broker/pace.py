"""How much of its time a process gives to changes of tables, and in how small pieces.

Reading filters and putting them into the index takes long, and one client can make every broker do
much of it. So whatever does this does it in steps, here, for all brokers of a process together: a
slice of steps, one of each work after the other, then a rest for everything else that waits. While
there is more to do than fits, changes are late; notifications are not.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

SLICE_S = 0.002
"""Changes are taken in for so long at a time, and one step longer."""

SHARE_MIN, SHARE_MAX = 0.3, 0.8
"""Of all time, changes take so much at most: little where others are busy, much where none is."""

LATE_S = 0.0015
"""A rest that lasts so much longer than it was to last shows that others were busy."""

_LESS, _MORE = 0.7, 1.1


class Work(Protocol):
    """Something that takes long, in steps that do not."""

    def step(self) -> bool:
        """Do a little, and tell whether there is more that may be done now."""

    def rest(self) -> None:
        """End a slice in which a step was done."""


class Pace:
    """Lets works take steps, on the running event loop. `clock` and `call_later` are for tests."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._clock = clock
        self._call_later = call_later or asyncio.get_running_loop().call_later
        self._works: OrderedDict[Work, None] = OrderedDict()
        self._rests_until = clock()
        self._share = SHARE_MAX
        self._is_scheduled = False

    def add(self, work: Work) -> None:
        """Let a work take steps until it says that there is no more."""
        self._works.setdefault(work)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_later(max(0.0, self._rests_until - self._clock()), self._slice)

    def _slice(self) -> None:
        begin = self._clock()
        if begin > self._rests_until + LATE_S:
            self._share = max(SHARE_MIN, self._share * _LESS)
        else:
            self._share = min(SHARE_MAX, self._share * _MORE)
        stepped: OrderedDict[Work, None] = OrderedDict()
        while self._works and self._clock() < begin + SLICE_S:
            work, _ = self._works.popitem(last=False)
            stepped[work] = None
            if work.step():
                self._works[work] = None
        for work in stepped:
            work.rest()
        end = self._clock()
        self._rests_until = end + (end - begin) * (1 / self._share - 1)
        self._is_scheduled = False
        if self._works:
            self._schedule()
