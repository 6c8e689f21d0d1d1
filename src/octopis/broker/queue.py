"""Between a broker's decisions and a socket: the queue of a link or client, and what slows it.

A queue of notifications is bounded, counted and in order. Past its high-water mark there is
backpressure, until it is half empty; past its bound, some are dropped. (Changes of tables cannot be
dropped: they wait elsewhere, in `changes`.)

A shaper makes a link as slow as its settings say: a token bucket, then a delay. It stands between
queue and socket, so that a slow link really fills its queue. Time comes in as an argument.
"""

from collections import deque
from collections.abc import Callable, Sequence
from operator import itemgetter

from octopis.broker.settings import QueueBounds, Shape
from octopis.core.wire.link import Encoded

_item: Callable[[Encoded], bytes] = itemgetter(1)


class OutputQueue:
    """Messages that wait to go out, each encoded already.

    `changed` is called with True when backpressure begins, and with False when it ends.
    """

    def __init__(
        self, bounds: QueueBounds, changed: Callable[[bool], None] = lambda _: None
    ) -> None:
        self._bounds = bounds
        self.changed = changed
        self.messages: deque[Encoded] = deque()
        """What waits; only to be looked at."""

        self.bytes = 0
        """How many bytes wait."""

        self.has_backpressure = False
        """Past the high-water mark, and since then not below half of it."""

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def is_over_bound(self) -> bool:
        """Whether something has to be dropped."""
        return bool(self.messages) and self._is_too_much()

    def put(self, messages: Sequence[Encoded]) -> None:
        """Append messages. Past its high-water mark, it may also be over its bound: then drop."""
        self.messages += messages
        self.bytes += sum(map(len, map(_item, messages)))
        bounds = self._bounds
        if not self.has_backpressure and (
            len(self.messages) > bounds.high_water or self.bytes > bounds.high_water_bytes
        ):
            self.has_backpressure = True
            self.changed(True)

    def take(self, bytes_max: float, count_max: float = float("inf")) -> list[Encoded]:
        """Remove and return messages of at most so many bytes in all, but at least one."""
        messages = self.messages
        taken: list[Encoded] = []
        size = 0
        while messages and len(taken) < count_max:
            size += len(messages[0][1])
            if size > bytes_max and taken:
                size -= len(messages[0][1])
                break
            taken.append(messages.popleft())
        self.bytes -= size
        if self.has_backpressure:
            self._relax()
        return taken

    def drop_oldest(self) -> int:
        """Drop from the front until the queue is within its bound; say how many."""
        return self._drop(self.messages.popleft)

    def drop_newest(self) -> int:
        """Drop from the end until the queue is within its bound; say how many."""
        return self._drop(self.messages.pop)

    def clear(self) -> int:
        """Throw everything away, and return how many that were."""
        lost = len(self.messages)
        self.messages.clear()
        self.bytes = 0
        self._relax()
        return lost

    def _drop(self, pop: Callable[[], Encoded]) -> int:
        dropped = 0
        while self.messages and self._is_too_much():
            self.bytes -= len(pop()[1])
            dropped += 1
        self._relax()
        return dropped

    def _is_too_much(self) -> bool:
        return (
            len(self.messages) > self._bounds.capacity or self.bytes > self._bounds.capacity_bytes
        )

    def _relax(self) -> None:
        """End backpressure where the queue is down to half its high-water mark."""
        bounds = self._bounds
        if (
            self.has_backpressure
            and len(self.messages) <= bounds.high_water // 2
            and self.bytes <= bounds.high_water_bytes // 2
        ):
            self.has_backpressure = False
            self.changed(False)


BURST_S = 0.01
"""The bucket holds what the link carries in this time."""

DELAYED_BYTES_MAX = 8 * 2**20
"""What may be under way on a link with latency alone; the rest stays in the queue."""


class Shaper:
    """One direction of a link."""

    def __init__(self, shape: Shape, now: float) -> None:
        self._bandwidth = shape.bandwidth_bytes_per_s
        self._latency_s = shape.latency_ms / 1000
        self._tokens = 0.0
        self._filled_at = now
        self._delayed: deque[tuple[float, bytes]] = deque()
        self._delayed_bytes = 0

    def budget(self, now: float) -> float:
        """Return how many bytes may be taken from the queue now; none where it is not above 0."""
        if self._delayed_bytes >= DELAYED_BYTES_MAX:
            return 0.0
        if self._bandwidth is None:
            return DELAYED_BYTES_MAX - self._delayed_bytes
        earned = (now - self._filled_at) * self._bandwidth
        self._tokens = min(self._tokens + earned, max(1.0, self._bandwidth * BURST_S))
        self._filled_at = now
        return self._tokens

    def send(self, data: bytes, now: float) -> None:
        """Take bytes from the queue onto the link. They may cost more than the budget."""
        self._tokens -= len(data)
        self._delayed.append((now + self._latency_s, data))
        self._delayed_bytes += len(data)

    def arrived(self, now: float) -> list[bytes]:
        """Remove and return what has been under way for long enough."""
        arrived = []
        while self._delayed and self._delayed[0][0] <= now:
            data = self._delayed.popleft()[1]
            self._delayed_bytes -= len(data)
            arrived.append(data)
        return arrived

    def next_event(self, now: float, *, waiting: bool) -> float | None:
        """Return when to look again: something arrives, or (if any is waiting) may be taken."""
        times = []
        if self._delayed:
            times.append(self._delayed[0][0])
        if waiting and self._bandwidth is not None and self._tokens <= 0:
            times.append(now + (1.0 - self._tokens) / self._bandwidth)
        return min(times, default=None)

    @property
    def is_carrying(self) -> bool:
        """Whether anything is under way."""
        return bool(self._delayed)

    def clear(self) -> None:
        """Forget what is under way: the link is down."""
        self._delayed.clear()
        self._delayed_bytes = 0
