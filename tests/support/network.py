"""A driver for brokers in tests: queues in memory, any interleaving, faults on request.

It owns what a real driver owns (queues, links, restarts) and nothing that the core decides.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from octopis.core.filters import Filter
from octopis.core.matching import LinearIndex
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import (
    Algorithm,
    Answer,
    Broker,
    Deliver,
    Effect,
    Enqueue,
    Message,
    Reason,
)
from octopis.core.topology import SCOT
from octopis.errors import OctopisError

Link = tuple[BrokerId, BrokerId]
"""A direction of a link: from broker, to broker."""


class Sent(NamedTuple):
    """A message as it was put on a queue."""

    source: BrokerId
    target: BrokerId
    message: Message
    reason: Reason


class Delivered(NamedTuple):
    """A notification as a client got it."""

    broker: BrokerId
    client: str
    notification: Notification
    subscriptions: tuple[str, ...]


@dataclass
class Step:
    """What arrived where, and what the broker did about it."""

    broker: BrokerId
    sender: BrokerId | None
    messages: list[Message]
    effects: list[Effect]
    queue_lengths: dict[BrokerId, int] = field(default_factory=dict)
    overloaded: set[BrokerId] = field(default_factory=set)
    """The broker's links as it saw them: noted only where there is weather."""


class Network:
    """All brokers of an overlay, joined by first-in first-out queues.

    `weather` is called before a broker is told anything, and may change its link status.
    """

    def __init__(
        self,
        scot: SCOT,
        algorithm: Algorithm,
        make: Callable[..., Broker] = Broker,
        weather: Callable[["Network", BrokerId], None] | None = None,
        **options: object,
    ) -> None:
        self.scot = scot
        self.algorithm = algorithm
        self._make = make
        self._weather = weather
        self._options = {"index": LinearIndex} | options
        self.brokers = {
            broker: make(broker, scot, algorithm, **self._options) for broker in scot.brokers
        }
        self.queues: dict[Link, deque[Message]] = {}
        self.down: set[Link] = set()
        self.sent: list[Sent] = []
        self.delivered: list[Delivered] = []
        self.errors: list[OctopisError] = []
        self.steps: list[Step] = []

    def subscribe(
        self,
        broker: BrokerId,
        client: str,
        identity: str,
        wanted: Filter | str,
        epoch: int | None = None,
    ) -> None:
        self._do(broker, self.brokers[broker].client_subscribes(client, 0, identity, wanted, epoch))

    def unsubscribe(self, broker: BrokerId, client: str, identity: str) -> None:
        self._do(broker, self.brokers[broker].client_unsubscribes(client, 0, identity))

    def publish(self, broker: BrokerId, *notifications: Notification) -> None:
        step = self._begin(broker, None, [])
        step.effects = self.brokers[broker].client_publishes("publisher", 0, notifications)
        self._do(broker, step.effects)

    def leave(self, broker: BrokerId, client: str) -> None:
        self._do(broker, self.brokers[broker].client_leaves(client))

    def busy(self) -> list[Link]:
        """Return the links with something on the way, in an order that repeats."""
        return sorted(link for link, queue in self.queues.items() if queue)

    def step(self, link: Link, count: int = 1) -> None:
        """Let the next messages of a link arrive together."""
        source, target = link
        queue = self.queues[link]
        messages = [queue.popleft() for _ in range(min(count, len(queue)))]
        if not queue:
            del self.queues[link]
        if self._weather is not None:
            self.brokers[source].link_status[target].queue_length = len(queue) + len(messages)
        self.brokers[source].messages_left(target, len(messages))
        step = self._begin(target, source, messages)
        step.effects = self.brokers[target].messages_arrived(source, messages)
        self._do(target, step.effects)

    def settle(
        self, random: Random | None = None, steps_max: int = 1_000_000, batch_max: int = 1
    ) -> None:
        """Let everything arrive, in random order and batches if `random` is given."""
        for _ in range(steps_max):
            if not self.queues:
                return
            if random is None:
                self.step(self.busy()[0])
            else:
                self.step(random.choice(list(self.queues)), random.randint(1, batch_max))
        raise AssertionError("messages keep travelling: there is a loop")

    def cut(self, one: BrokerId, other: BrokerId) -> None:
        """Break a link in both directions; what is on the way is gone."""
        for source, target in ((one, other), (other, one)):
            self.queues.pop((source, target), None)
            self.down.add((source, target))
            self._do(source, self.brokers[source].link_down(target))

    def restore(self, one: BrokerId, other: BrokerId) -> None:
        """Bring a link back."""
        for source, target in ((one, other), (other, one)):
            self.down.discard((source, target))
            self._do(source, self.brokers[source].link_up(target))

    def restart(self, broker: BrokerId) -> None:
        """Take a broker away with all it knows, and start it again without any link."""
        neighbours = self.scot.neighbours(broker)
        for neighbour in neighbours:
            if (broker, neighbour) not in self.down:
                self.cut(broker, neighbour)
        self.brokers[broker] = self._make(
            broker, self.scot, self.algorithm, links_up=False, **self._options
        )

    def links_used(self, kind: type | None = None) -> Counter[Link]:
        """Count the messages (of one kind) put on each link."""
        return Counter(
            (sent.source, sent.target)
            for sent in self.sent
            if kind is None or isinstance(sent.message, kind)
        )

    def _begin(self, broker: BrokerId, sender: BrokerId | None, messages: list[Message]) -> Step:
        step = Step(broker, sender, messages, [])
        self.steps.append(step)
        if self._weather is not None:
            self._weather(self, broker)
            status = self.brokers[broker].link_status
            for link in self.scot.neighbours(broker):
                step.queue_lengths[link] = status[link].queue_length
                if status.is_overloaded(link):
                    step.overloaded.add(link)
        return step

    def _do(self, broker: BrokerId, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Enqueue):
                assert (broker, effect.link) not in self.down, "enqueued on a link that is down"
                queue = self.queues.setdefault((broker, effect.link), deque())
                queue.extend(effect.messages)
                self.sent += [
                    Sent(broker, effect.link, message, reason)
                    for message, reason in zip(effect.messages, effect.reasons, strict=True)
                ]
            elif isinstance(effect, Deliver):
                found = tuple(effect.subscriptions)
                self.delivered.append(Delivered(broker, effect.client, effect.notification, found))
            elif isinstance(effect, Answer) and effect.error is not None:
                self.errors.append(effect.error)
