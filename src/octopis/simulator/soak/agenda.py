"""Virtual time: what happens next, and when. What was planned first happens first."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

_Action = Callable[..., None]


class Agenda:
    """A heap of (time, sequence, action): ties are settled, so runs repeat."""

    def __init__(self) -> None:
        self.now = 0
        self.actions = 0
        self._sequence = 0
        self._heap: list[tuple[int, int, _Action, tuple[Any, ...]]] = []

    def at(self, time_ns: int, action: _Action, *arguments: Any) -> None:
        """Have `action` called at a time, or at once where that is over."""
        self._sequence += 1
        heappush(self._heap, (max(time_ns, self.now), self._sequence, action, arguments))

    def after(self, delay_ns: int, action: _Action, *arguments: Any) -> None:
        """Have `action` called after a while."""
        self.at(self.now + delay_ns, action, *arguments)

    def run_until(self, time_ns: int) -> None:
        """Do all that happens before a time."""
        heap = self._heap
        while heap and heap[0][0] < time_ns:
            self.now, _, action, arguments = heappop(heap)
            self.actions += 1
            action(*arguments)
        self.now = time_ns
