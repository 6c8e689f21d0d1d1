"""Makes a link as slow as its configuration says: a token bucket, then a delay.

It stands between queue and socket, so that a slow link really fills its queue. Time comes in as
an argument.
"""

from collections import deque

from octopis.live.configuration import Shape

BURST_S = 0.01
"""The bucket holds what the link carries in this time."""

DELAYED_BYTES_MAX = 8 * 2**20
"""What may be under way on a link with latency alone; the rest stays in the queue."""


class Shaper:
    """One direction of a link."""

    def __init__(self, shape: Shape, now: float) -> None:
        self._bandwidth = shape.bandwidth
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
