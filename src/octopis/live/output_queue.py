"""The queue between a broker's decisions and a socket: bounded, counted, in order.

Only notifications can be dropped. Changes of tables always fit, as both ends of a link must agree:
a broker takes no requests for more of them while one of its queues is full.
"""

from collections import deque
from collections.abc import Callable, Sequence

from octopis.live.configuration import QueueBounds
from octopis.wire.frames import Kind
from octopis.wire.link import Encoded

_DROPPABLE = frozenset((Kind.ROUTED, Kind.HEADED, Kind.DELIVER))


class OutputQueue:
    """Messages that wait to go out, each encoded already."""

    def __init__(self, bounds: QueueBounds) -> None:
        self._bounds = bounds
        self._messages: deque[Encoded] = deque()
        self._bytes = 0
        self._droppable = 0
        self.is_congested = False
        """Past the high-water mark, and since then not below half of it."""

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def bytes(self) -> int:
        """How many bytes wait."""
        return self._bytes

    @property
    def notifications(self) -> int:
        """How many of the messages are notifications."""
        return self._droppable

    @property
    def is_full(self) -> bool:
        """Whether there is no room for anything more."""
        return self._is_too_much(len(self._messages) + 1)

    @property
    def is_over_bound(self) -> bool:
        """Whether something has to be dropped."""
        return self._droppable > 0 and self._is_too_much(len(self._messages))

    def put(self, messages: Sequence[Encoded]) -> None:
        """Append messages; the caller then has to look at `is_over_bound`."""
        self._messages += messages
        self._bytes += sum([len(item) for _, item in messages])
        self._droppable += sum([kind in _DROPPABLE for kind, _ in messages])
        bounds = self._bounds
        if len(self._messages) > bounds.high_water or self._bytes > bounds.high_water_bytes:
            self.is_congested = True

    def take(self, bytes_max: float, count_max: float = float("inf")) -> list[Encoded]:
        """Remove and return messages of at most so many bytes in all, but at least one."""
        messages = self._messages
        taken: list[Encoded] = []
        size = 0
        while messages and len(taken) < count_max:
            size += len(messages[0][1])
            if size > bytes_max and taken:
                size -= len(messages[0][1])
                break
            taken.append(messages.popleft())
        self._bytes -= size
        self._droppable -= sum(kind in _DROPPABLE for kind, _ in taken)
        self._settle()
        return taken

    def drop_oldest(self) -> int:
        """Drop notifications from the front until the queue is within its bound; say how many."""
        dropped, kept = self._drop(self._messages.popleft)
        self._messages.extendleft(reversed(kept))
        self._settle()
        return dropped

    def drop_newest(self) -> int:
        """Drop notifications from the end until the queue is within its bound; say how many."""
        dropped, kept = self._drop(self._messages.pop)
        self._messages.extend(reversed(kept))
        self._settle()
        return dropped

    def clear(self) -> int:
        """Throw everything away, and return how many notifications that were."""
        lost = self._droppable
        self._messages.clear()
        self._bytes = self._droppable = 0
        self.is_congested = False
        return lost

    def _drop(self, pop: Callable[[], Encoded]) -> tuple[int, list[Encoded]]:
        """Pop and forget notifications; return how many, and what else was in their way."""
        kept: list[Encoded] = []
        dropped = 0
        while self._droppable and self._is_too_much(len(self._messages) + len(kept)):
            kind, item = message = pop()
            if kind in _DROPPABLE:
                self._bytes -= len(item)
                self._droppable -= 1
                dropped += 1
            else:
                kept.append(message)
        return dropped, kept

    def _is_too_much(self, length: int) -> bool:
        return length > self._bounds.capacity or self._bytes > self._bounds.capacity_bytes

    def _settle(self) -> None:
        bounds = self._bounds
        if (
            self.is_congested
            and len(self._messages) <= bounds.high_water // 2
            and self._bytes <= bounds.high_water_bytes // 2
        ):
            self.is_congested = False
