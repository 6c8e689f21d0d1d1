"""What the explainer is asked: subscribers, one notification, and the state of the links."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from octopis.core.filters import Filter
from octopis.core.model import BrokerId, Notification
from octopis.core.topology import SCOT
from octopis.errors import InvalidConfiguration, InvalidSubscription

Direction = tuple[BrokerId, BrokerId]
"""A link in one direction: the broker that sends, the broker that receives."""


QUEUE_LENGTH_MAX = 1_000_000_000


class AskedSubscriber(NamedTuple):
    """A client with one subscription, which goes by the client's name."""

    name: str
    broker: BrokerId
    filter: Filter


@dataclass(frozen=True)
class Question:
    """Where a notification goes, when these links are overloaded and these queues so long.

    `queue_lengths` says how many messages wait for a link, so that one is the least loaded; the
    queues of all other links are empty, but for those of overloaded links.

    Raises InvalidSubscription where two subscribers have one name, InvalidTopology where no such
    link is there, InvalidConfiguration where a queue cannot be as it is said to be.
    """

    scot: SCOT
    publisher: BrokerId
    notification: Notification
    subscribers: tuple[AskedSubscriber, ...] = ()
    overloaded: frozenset[Direction] = frozenset()
    queue_lengths: Mapping[Direction, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen = set()
        for name, _, _ in self.subscribers:
            if name in seen:
                raise InvalidSubscription(f"two subscribers are called {name!r}: rename one", name)
            seen.add(name)
        for source, target in (*sorted(self.overloaded), *self.queue_lengths):
            self.scot.link_kind(source, target)
        for direction, length in self.queue_lengths.items():
            self._check_queue(direction, length)

    def queue_of(self, direction: Direction, congestion_threshold: float) -> tuple[int, int, int]:
        """Return (queue_length, q_in, q_out) of a queue that is congested, or is not, as asked."""
        if direction not in self.overloaded:
            length = self.queue_lengths.get(direction, 0)
            return length, 0, max(0, ceil(length / congestion_threshold) - 1)
        length = self.queue_lengths.get(direction, int(congestion_threshold) + 1)
        return length, int(congestion_threshold / length), 0

    def _check_queue(self, direction: Direction, length: int) -> None:
        link = f"the link from {direction[0]} to {direction[1]}"
        if not 0 <= length <= QUEUE_LENGTH_MAX:
            raise InvalidConfiguration(
                f"the queue of {link} has 0 to {QUEUE_LENGTH_MAX:,} messages, not {length:,}"
            )
        if length == 0 and direction in self.overloaded:
            raise InvalidConfiguration(
                f"{link} cannot be overloaded with an empty queue: let at least 1 message wait"
            )
