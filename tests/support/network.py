"""A driver for brokers in tests: queues in memory, any interleaving, faults on request.

It owns what a real driver owns (queues, links, restarts) and nothing that the core decides.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from octopis.errors import OctopisError
from octopis.filters import Filter
from octopis.matching import LinearIndex
from octopis.model import BrokerId, Notification
from octopis.routing import Algorithm, Answer, Broker, Deliver, Effect, Enqueue, Message, Reason
from octopis.topology import SCOT

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


class Network:
    """All brokers of an overlay, joined by first-in first-out queues."""

    def __init__(
        self,
        scot: SCOT,
        algorithm: Algorithm,
        make: Callable[..., Broker] = Broker,
        **options: object,
    ) -> None:
        self.scot = scot
        self.algorithm = algorithm
        self._make = make
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

    def subscribe(self, broker: BrokerId, client: str, identity: str, wanted: Filter | str) -> None:
        self._do(broker, self.brokers[broker].client_subscribes(client, 0, identity, wanted))

    def unsubscribe(self, broker: BrokerId, client: str, identity: str) -> None:
        self._do(broker, self.brokers[broker].client_unsubscribes(client, 0, identity))

    def publish(self, broker: BrokerId, *notifications: Notification) -> None:
        effects = self.brokers[broker].client_publishes("publisher", 0, notifications)
        self.steps.append(Step(broker, None, [], effects))
        self._do(broker, effects)

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
        self.brokers[source].messages_left(target, len(messages))
        effects = self.brokers[target].messages_arrived(source, messages)
        self.steps.append(Step(target, source, messages, effects))
        self._do(target, effects)

    def settle(self, random: Random | None = None, steps_max: int = 1_000_000) -> None:
        """Let everything arrive, in random order of links if `random` is given."""
        for _ in range(steps_max):
            links = self.busy()
            if not links:
                return
            self.step(random.choice(links) if random else links[0])
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
