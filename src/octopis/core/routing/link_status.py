"""The Link Status Table: how full each output queue is, and whether it is congested (Eq. 3).

A queue is congested, and its link overloaded, when

    queue_length * (1 + Q_in) / (1 + Q_out) > tau

where Q_in and Q_out count what entered and left the queue in the last finished window of t_w. What
a full queue drops did not go over the link: it shortens the queue and is no part of Q_out.

Nothing has to happen when a window ends. A status is rolled forward by the time of whatever is said
or asked next; after a window in which nothing happened, both counts are zero. A driver in virtual
time knows in advance when the next message leaves, and may say so (`leaves_at`): it is counted
when its time has come.
"""

from collections.abc import Iterable
from math import inf

from octopis.core.model import BrokerId

CONGESTION_THRESHOLD = 10.0
WINDOW_MS = 50

NEVER = 1 << 62


class LinkStatus:
    """One link and its output queue: all that a routing rule may know of it."""

    __slots__ = (
        "_window_end_ns",
        "_window_ns",
        "around_fault",
        "around_overload",
        "congestion_threshold",
        "entering",
        "is_icol",
        "is_up",
        "leaves_at",
        "leaving",
        "link",
        "longest_uncongested",
        "q_in",
        "q_out",
        "queue_length",
    )

    def __init__(
        self,
        link: BrokerId,
        *,
        is_icol: bool,
        congestion_threshold: float = CONGESTION_THRESHOLD,
        window_ns: int = WINDOW_MS * 1_000_000,
        is_up: bool = True,
    ) -> None:
        self.link = link
        self.is_icol = is_icol
        self.is_up = is_up
        self.congestion_threshold = congestion_threshold
        self._window_ns = window_ns
        self._window_end_ns = window_ns
        self.leaves_at = NEVER
        self.queue_length = self.entering = self.leaving = 0
        self.around_overload = self.around_fault = 0
        """Copies of notifications that were put on this link to go around others."""

        self.finish_window(0, 0)

    @property
    def congestion_element(self) -> float:
        """Above 1 the queue grew in the last finished window, below 1 it shrank."""
        return (1 + self.q_in) / (1 + self.q_out)

    @property
    def is_overloaded(self) -> bool:
        """Whether the queue is congested, as far as the status was rolled.

        What goes onto a link that is down is lost at once, so its queue never fills.
        """
        return self.is_up and self.queue_length > self.longest_uncongested

    def roll(self, now_ns: int) -> None:
        """Count all that has happened until now. Time never goes back."""
        if self.leaves_at <= now_ns:
            if self.leaves_at >= self._window_end_ns:
                self._begin_window(self.leaves_at)
            self.leaves_at = NEVER
            self.queue_length -= 1
            self.leaving += 1
        if now_ns >= self._window_end_ns:
            self._begin_window(now_ns)

    def _begin_window(self, now_ns: int) -> None:
        """Begin the window that `now_ns` is in, which is not the one that runs."""
        if now_ns < self._window_end_ns + self._window_ns:
            self.finish_window(self.entering, self.leaving)
        else:
            self.finish_window(0, 0)
        self.entering = self.leaving = 0
        self._window_end_ns = (now_ns // self._window_ns + 1) * self._window_ns

    def finish_window(self, q_in: int, q_out: int) -> None:
        """Take these as the counts of the last finished window."""
        self.q_in = q_in
        self.q_out = q_out
        # Floor division is exact, so this is Eq. 3 for whole messages, to the last one.
        longest = self.congestion_threshold * (1 + q_out) // (1 + q_in)
        # Infinity // anything is no number: without a threshold nothing is congested.
        self.longest_uncongested = longest if longest == longest else inf  # noqa: PLR0124

    def entered(self, now_ns: int, count: int = 1) -> None:
        """Count messages that were put on the queue."""
        self.roll(now_ns)
        self.queue_length += count
        self.entering += count

    def left(self, now_ns: int, count: int = 1) -> None:
        """Count messages that went from the queue over the link."""
        self.roll(now_ns)
        assert self.queue_length >= count, f"more messages left towards {self.link} than entered"
        self.queue_length -= count
        self.leaving += count

    def dropped(self, now_ns: int, count: int = 1) -> None:
        """Count messages that a full queue has lost: they did not go over the link."""
        self.roll(now_ns)
        assert self.queue_length >= count, f"more towards {self.link} was dropped than entered"
        self.queue_length -= count

    def go_down(self) -> None:
        """The link is down, and its queue was thrown away."""
        self.is_up = False
        self.leaves_at = NEVER
        self.queue_length = self.entering = self.leaving = 0
        self.finish_window(0, 0)


class LinkStatusTable(dict[BrokerId, LinkStatus]):
    """The status of every link of a broker, by the neighbour at its other end."""

    def roll(self, now_ns: int) -> None:
        """Bring every status up to date."""
        for status in self.values():
            status.roll(now_ns)

    @property
    def up(self) -> set[BrokerId]:
        """The neighbours whose links are up."""
        return {link for link, status in self.items() if status.is_up}


def least_loaded(links: Iterable[LinkStatus]) -> LinkStatus:
    """Return the shortest queue; of equals that of the lowest cluster, then region: runs repeat."""
    return min(links, key=_load)


def _load(status: LinkStatus) -> tuple[int, int, str]:
    return status.queue_length, status.link.cluster, status.link.region
