"""The status of one output queue in virtual time: the counts of a Link Status Table, kept lazily.

The kernel knows when the message with the slot will leave; the departure is counted when the
queue is next looked at, in the window in which it happened.
"""

from octopis.core.routing.link_status import longest_uncongested

NEVER = 1 << 62


class QueueStatus:
    """`queue_length` now, and `q_in`, `q_out` of the last finished window (Eq. 3)."""

    __slots__ = (
        "_congestion_threshold",
        "_window",
        "_window_ns",
        "entering",
        "leaves_at",
        "leaving",
        "q_in",
        "q_out",
        "queue_length",
    )

    def __init__(self, congestion_threshold: float, window_ns: int) -> None:
        self._congestion_threshold = congestion_threshold
        self._window_ns = window_ns
        self._window = 0
        self.queue_length = self.q_in = self.q_out = self.entering = self.leaving = 0
        self.leaves_at = NEVER
        """When the message that has a slot leaves the queue."""

    def settle(self, now: int) -> None:
        """Count everything that has happened until now."""
        if self.leaves_at <= now:
            self._roll(self.leaves_at)
            self.queue_length -= 1
            self.leaving += 1
            self.leaves_at = NEVER
        self._roll(now)

    def entered(self, now: int) -> None:
        """Count a message that is put on the queue."""
        self.settle(now)
        self.queue_length += 1
        self.entering += 1

    def dropped(self, now: int) -> None:
        """Count a message that is taken off the queue and goes nowhere."""
        self.settle(now)
        self.queue_length -= 1
        self.leaving += 1

    def reset(self) -> None:
        """Forget a queue that was thrown away, because its link went down."""
        self.queue_length = self.q_in = self.q_out = self.entering = self.leaving = 0
        self.leaves_at = NEVER

    def longest_uncongested(self) -> float:
        """Return how long the queue may be, as this window stands, without congestion."""
        return longest_uncongested(self._congestion_threshold, self.q_in, self.q_out)

    def _roll(self, now: int) -> None:
        window = now // self._window_ns
        if window != self._window:
            follows = window == self._window + 1
            self.q_in = self.entering if follows else 0
            self.q_out = self.leaving if follows else 0
            self.entering = self.leaving = 0
            self._window = window
