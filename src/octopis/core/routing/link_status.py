"""An output queue as it will be, while a broker plans the copies of a batch.

Nothing leaves a queue while a broker decides, so counting its own copies is enough to know each
queue's length "now", and all copies for a link can be handed over at once.

The Link Status Table: how full each output queue is, and whether it is congested (Eq. 3).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from octopis.core.model import BrokerId
from octopis.core.routing.messages import Message, Reason


@dataclass(slots=True)
class LinkStatus:
    """One output queue. `q_in` and `q_out` are counts of the last finished window."""

    queue_length: int = 0
    q_in: int = 0
    q_out: int = 0
    entering: int = 0
    leaving: int = 0

    @property
    def congestion_element(self) -> float:
        """Above 1 the queue grew in the last window, below 1 it shrank."""
        return (1 + self.q_in) / (1 + self.q_out)


class LinkStatusTable:
    """The status of every link of a broker, counted from what the broker is told.

    A queue is congested, and its link overloaded, when
    queue_length * congestion_element > congestion_threshold (tau).
    """

    def __init__(self, links: Iterable[BrokerId], congestion_threshold: float) -> None:
        self.congestion_threshold = congestion_threshold
        self.statuses = {link: LinkStatus() for link in links}

    def __getitem__(self, link: BrokerId) -> LinkStatus:
        return self.statuses[link]

    def is_overloaded(self, link: BrokerId) -> bool:
        """Tell whether the link's output queue is congested now."""
        return self.statuses[link].queue_length > self.longest_uncongested(link)

    def longest_uncongested(self, link: BrokerId) -> float:
        """Return how long the link's queue may be, as this window stands, without congestion."""
        status = self.statuses[link]
        return longest_uncongested(self.congestion_threshold, status.q_in, status.q_out)

    def entered(self, link: BrokerId, count: int = 1) -> None:
        """Count messages that were put on the link's queue."""
        status = self.statuses[link]
        status.queue_length += count
        status.entering += count

    def left(self, link: BrokerId, count: int = 1) -> None:
        """Count messages that left the link's queue."""
        status = self.statuses[link]
        assert status.queue_length >= count, f"more messages left {link} than entered"
        status.queue_length -= count
        status.leaving += count

    def dropped(self, link: BrokerId, count: int) -> None:
        """Count messages that a full queue has lost: they did not go over the link."""
        status = self.statuses[link]
        assert status.queue_length >= count, f"more messages of {link} were dropped than entered"
        status.queue_length -= count

    def window_elapsed(self) -> None:
        """Make the running counts those of the last finished window."""
        for status in self.statuses.values():
            status.q_in, status.q_out = status.entering, status.leaving
            status.entering = status.leaving = 0

    def reset(self, link: BrokerId) -> None:
        """Forget a link whose queue was thrown away, because the link went down."""
        self.statuses[link] = LinkStatus()


def longest_uncongested(congestion_threshold: float, q_in: int, q_out: int) -> float:
    """Return how long a queue may be without congestion, after a window with these counts."""
    # Floor division is exact, so this is Eq. 3 for whole messages, to the last one.
    longest = congestion_threshold * (1 + q_out) // (1 + q_in)
    return longest if longest == longest else inf  # noqa: PLR0124 - no threshold, no congestion


class PlannedQueue:
    """The output queue of a link, with the copies planned so far."""

    __slots__ = ("length", "link", "longest_uncongested", "messages", "reasons")

    def __init__(self, link: BrokerId, length: int, longest_uncongested: float) -> None:
        self.link = link
        self.length = length
        self.longest_uncongested = longest_uncongested
        self.messages: list[Message] = []
        self.reasons: list[Reason] = []

    def add(self, message: Message, reason: Reason) -> None:
        """Plan a copy."""
        self.length += 1
        self.messages.append(message)
        self.reasons.append(reason)

    def is_congested(self) -> bool:
        """Tell whether the queue is congested with what is planned."""
        return self.length > self.longest_uncongested


def least_loaded(queues: Iterable[PlannedQueue]) -> PlannedQueue:
    """Return the shortest queue; of equals that of the lowest cluster, then region: runs repeat."""
    return min(queues, key=_load)


def _load(queue: PlannedQueue) -> tuple[int, int, str]:
    return queue.length, queue.link.cluster, queue.link.region
