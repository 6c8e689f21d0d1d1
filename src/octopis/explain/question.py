"""What the explainer is asked: subscribers, one notification, and the state of the overlay."""

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
    queues of all other links are empty, but for those of overloaded links. Brokers that are `dead`
    and links that are `cut`, in both directions, were there when subscriptions were made; all
    who are beside them know that they are gone.

    Raises InvalidSubscription where two subscribers have one name, InvalidTopology where no such
    link is there, InvalidConfiguration where a queue or the publisher cannot be as is said.
    """

    scot: SCOT
    publisher: BrokerId
    notification: Notification
    subscribers: tuple[AskedSubscriber, ...] = ()
    overloaded: frozenset[Direction] = frozenset()
    queue_lengths: Mapping[Direction, int] = field(default_factory=dict)
    dead: frozenset[BrokerId] = frozenset()
    cut: frozenset[Direction] = frozenset()

    def __post_init__(self) -> None:
        seen = set()
        for name, _, _ in self.subscribers:
            if name in seen:
                raise InvalidSubscription(f"two subscribers are called {name!r}: rename one", name)
            seen.add(name)
        if self.publisher in self.dead:
            raise InvalidConfiguration(f"{self.publisher} is dead: nobody can publish there")
        for source, target in (*sorted(self.overloaded), *self.queue_lengths, *sorted(self.cut)):
            self.scot.link_kind(source, target)
        for source, target in (*sorted(self.overloaded), *self.queue_lengths):
            if self.is_down(source, target):
                raise InvalidConfiguration(
                    f"the link from {source} to {target} is down: nothing can wait for it"
                )
        for direction, length in self.queue_lengths.items():
            self._check_queue(direction, length)

    def is_down(self, one: BrokerId, other: BrokerId) -> bool:
        """Tell whether the link of two neighbours is cut, or leads to a dead broker."""
        is_cut = (one, other) in self.cut or (other, one) in self.cut
        return is_cut or one in self.dead or other in self.dead

    @property
    def down(self) -> list[Direction]:
        """All links that are down, each once."""
        return [
            (source, target)
            for source, target, _ in (*self.scot.acols, *self.scot.icols)
            if self.is_down(source, target)
        ]

    @property
    def interested(self) -> list[AskedSubscriber]:
        """The subscribers whom the notification is for."""
        attributes = self.notification.attributes
        return [each for each in self.subscribers if each.filter.matches(attributes)]

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
