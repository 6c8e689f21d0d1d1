"""Brokers joined in memory: a driver without sockets and time, for explanations and tests.

It owns what a driver owns (queues, links that break, restarts) and nothing that brokers decide.
Which message arrives next is the caller's choice; by default all links are equally fast.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from octopis.core.filters import Filter, parse_filter
from octopis.core.model import BrokerId, Notification
from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.broker import Broker
from octopis.core.routing.messages import Deliver, Effect, Enqueue, Message, Reason
from octopis.core.topology import SCOT

Direction = tuple[BrokerId, BrokerId]
"""One direction of a link: from broker, to broker."""


class Sent(NamedTuple):
    """A message as it was put on a queue; `cause` is the number of the one that led to it."""

    source: BrokerId
    target: BrokerId
    message: Message
    reason: Reason
    cause: int | None = None


class Delivered(NamedTuple):
    """A notification as a client got it; `cause` is the number of the message that brought it."""

    broker: BrokerId
    client: str
    notification: Notification
    subscriptions: tuple[str, ...]
    cause: int | None = None


class InMemoryOverlay:
    """All brokers of an overlay, joined by queues that are first-in first-out."""

    def __init__(
        self,
        scot: SCOT,
        algorithm: Algorithm,
        make: Callable[..., Broker] = Broker,
        **options: object,
    ) -> None:
        """Make the brokers, each by `make` with these options."""
        self.scot = scot
        self.algorithm = algorithm
        self._make = make
        self._options = options
        self.brokers = {broker: make(broker, scot, algorithm, **options) for broker in scot.brokers}
        self.queues: dict[Direction, deque[int]] = {}
        """For each direction with something on its way, the numbers of the messages in `sent`."""
        self.down: set[Direction] = set()
        self.sent: list[Sent] = []
        self.delivered: list[Delivered] = []
        self._lives = 0
        self._oldest = 0
        """No message before this one is on its way."""

    def subscribe(
        self,
        broker: BrokerId,
        client: str,
        subscription: str,
        filter_: Filter | str,
        epoch: int | None = None,
    ) -> None:
        """Let a client subscribe. Raises InvalidFilter, InvalidSubscription."""
        parsed = parse_filter(filter_) if isinstance(filter_, str) else filter_
        effects = self.brokers[broker].client_subscribes(client, subscription, parsed, epoch)
        self.carry_out(broker, effects)

    def unsubscribe(self, broker: BrokerId, client: str, subscription: str) -> None:
        """Let a client end its subscription. Raises InvalidSubscription."""
        self.carry_out(broker, self.brokers[broker].client_unsubscribes(client, subscription))

    def publish(self, broker: BrokerId, *notifications: Notification) -> None:
        """Let a client publish."""
        self.carry_out(broker, self.brokers[broker].client_publishes(notifications))

    def leave(self, broker: BrokerId, client: str) -> None:
        """Let a client go."""
        self.carry_out(broker, self.brokers[broker].client_leaves(client))

    def messages(self, direction: Direction) -> list[Message]:
        """Return what is on its way in one direction of a link."""
        return [self.sent[number].message for number in self.queues.get(direction, ())]

    def step(self, direction: Direction, count: int = 1) -> list[Effect]:
        """Let the next messages of a direction arrive together; return what the broker did."""
        source, target = direction
        queue = self.queues[direction]
        numbers = [queue.popleft() for _ in range(min(count, len(queue)))]
        if not queue:
            del self.queues[direction]
        self.brokers[source].messages_left(target, len(numbers))
        arrived = [self.sent[number].message for number in numbers]
        effects = self.brokers[target].messages_arrived(source, arrived)
        self.carry_out(target, effects, numbers[0])
        return effects

    def settle(
        self,
        choose: Callable[[list[Direction]], tuple[Direction, int]] | None = None,
        steps_max: int = 1_000_000,
    ) -> None:
        """Let everything arrive: over links that are equally fast, or as `choose` says.

        `choose` is given the directions with something on its way, and returns one of them and
        how many messages of it arrive together.
        """
        for _ in range(steps_max):
            if not self.queues:
                return
            if choose is None:
                self.step(self._with_oldest())
            else:
                self.step(*choose(list(self.queues)))
        raise AssertionError("messages keep travelling: there is a loop")

    def _with_oldest(self) -> Direction:
        """Return the direction in which the oldest message goes that is on its way."""
        while True:
            source, target = self.sent[self._oldest][:2]
            queue = self.queues.get((source, target))
            if queue and queue[0] == self._oldest:
                return source, target
            self._oldest += 1

    def cut(self, one: BrokerId, other: BrokerId, *, unsent: bool = False) -> None:
        """Break a link in both directions; what is on its way is gone, or `unsent`."""
        directions = (one, other), (other, one)
        self.down.update(directions)
        queues = [self.queues.pop(direction, deque()) for direction in directions]
        for (source, target), queue in zip(directions, queues, strict=True):
            left = [self.sent[number].message for number in queue] if unsent else []
            effects = self.brokers[source].link_down(target, left)
            self.carry_out(source, effects, queue[0] if queue else None)

    def compare(self) -> None:
        """Let every broker compare with its neighbours what it has heard."""
        for broker in self.scot.brokers:
            self.carry_out(broker, self.brokers[broker].compare())

    def restore(self, one: BrokerId, other: BrokerId) -> None:
        """Bring a link back."""
        for source, target in ((one, other), (other, one)):
            self.down.discard((source, target))
            self.carry_out(source, self.brokers[source].link_up(target))

    def restart(self, broker: BrokerId) -> None:
        """Take a broker away with all it knows, and start it again without any link."""
        for neighbour in self.scot.neighbours(broker):
            if (broker, neighbour) not in self.down:
                self.cut(broker, neighbour)
        self._lives += 1
        self.brokers[broker] = self._make(
            broker, self.scot, self.algorithm, links_up=False, life=self._lives, **self._options
        )

    def links_used(self, kind: type | None = None) -> Counter[Direction]:
        """Count the messages (of one kind) put on each direction of a link."""
        return Counter(
            (sent.source, sent.target)
            for sent in self.sent
            if kind is None or isinstance(sent.message, kind)
        )

    def carry_out(
        self, broker: BrokerId, effects: Iterable[Effect], cause: int | None = None
    ) -> None:
        """Do what a broker asks for."""
        for effect in effects:
            if isinstance(effect, Enqueue):
                direction = broker, effect.link
                assert direction not in self.down, "enqueued on a link that is down"
                queue = self.queues.setdefault(direction, deque())
                for message, reason in zip(effect.messages, effect.reasons, strict=True):
                    queue.append(len(self.sent))
                    self.sent.append(Sent(*direction, message, reason, cause))
            elif isinstance(effect, Deliver):
                found = tuple(effect.subscriptions)
                client, notification = effect.client, effect.notification
                self.delivered.append(Delivered(broker, client, notification, found, cause))
