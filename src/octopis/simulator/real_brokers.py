"""Real brokers in virtual time: `routing.Broker` decides, the kernel owns queues and time.

The guard of the faster traffic in notifying.py and subscribing.py: both give the same trace to the
byte. Where links are cut these run alone, because tables have to be brought up to date.

Brokers keep their own tables and their own link status, which the kernel's outputs share. Which
subscriptions match a notification is the one thing that they do not find out themselves: their
index answers from the audience, so that a run takes minutes and not hours.
"""

from collections.abc import Iterable
from typing import Any

from octopis.core.filters import Filter
from octopis.core.matching.interface import Batch
from octopis.core.model import Notification
from octopis.core.model.notification import Value
from octopis.core.routing import (
    Algorithm,
    Broker,
    Deliver,
    Effect,
    Enqueue,
    Message,
    NotificationMessage,
    Reason,
    Stored,
    Subscribe,
)
from octopis.core.routing.messages import Flooded, HostChange, HostState, HostTable, TableSnapshot
from octopis.errors import OperationFailed
from octopis.scenario.folder import Scenario
from octopis.simulator.audience import Broadcast, Copy, Flight
from octopis.simulator.kernel import Kernel
from octopis.simulator.laws import Laws
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station
from octopis.simulator.notifying import Notifying
from octopis.simulator.subscribing import EarlyChanges, Subscribing


class FlightAttributes(dict[str, Value]):
    """The attributes of a notification that know its flight, and what subscriptions match it.

    Brokers pass them on untouched.
    """

    __slots__ = ("flight", "matching")

    def __init__(self, flight: Flight) -> None:
        super().__init__(flight.audience.attributes[flight.row])
        self.flight = flight
        self.matching = flight.audience.matching(flight.row)


class AudienceIndex:
    """A matching index that knows what it holds, and asks the audience what of it matches."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._held: dict[int, tuple[str, Any]] = {}
        self._bits: dict[Any, int] = {}

    def add(self, subscription: str, filter_: Filter, destination: Any) -> None:  # noqa: ARG002
        """Add a subscription; what it asks for is known to the audience."""
        self.hear_of([destination])
        self._held[self._numbers[subscription]] = subscription, destination

    def hear_of(self, destinations: Iterable[Any]) -> None:
        """Take these in as the next destinations."""
        for destination in destinations:
            self._bits.setdefault(destination, 1 << len(self._bits))

    def tidy(self) -> None:
        """All is where it belongs."""

    def add_many(self, entries: Iterable[tuple[str, Filter, Any]]) -> None:
        """Add many subscriptions at once."""
        for entry in entries:
            self.add(*entry)

    def remove(self, subscription: str) -> None:
        """Remove a subscription, which must be there."""
        del self._held[self._numbers[subscription]]

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, subscription: str) -> bool:
        return self._numbers.get(subscription) in self._held

    def destinations(self, batch: Batch) -> list[tuple[Any, ...]]:
        """Return for each notification the destinations with any match behind them."""
        return [
            tuple(dict.fromkeys(destination for _, destination in self._found(each)))
            for each in batch
        ]

    def reached(self, batch: Batch) -> list[int]:
        """Return the same as bits, in the order in which destinations were heard of."""
        return [sum(map(self._bits.__getitem__, found)) for found in self.destinations(batch)]

    def matches(self, batch: Batch) -> list[list[str]]:
        """Return for each notification the subscriptions that match, in the order of numbers."""
        return [[subscription for subscription, _ in self._found(each)] for each in batch]

    def reached_and_matches(
        self, batch: Batch, destination: Any
    ) -> tuple[list[int], list[list[str]]]:
        """Return what `reached` does, and the matches behind one destination."""
        behind = [
            [subscription for subscription, place in self._found(each) if place == destination]
            for each in batch
        ]
        return self.reached(batch), behind

    def _found(self, attributes: object) -> list[tuple[str, Any]]:
        assert isinstance(attributes, FlightAttributes), "brokers pass notifications on untouched"
        held = self._held
        return [held[number] for number in attributes.matching if number in held]


class RealBrokers:
    """The traffic of an overlay whose stations are `routing.Broker`s."""

    make: type[Broker] = Broker

    def __init__(
        self,
        scenario: Scenario,
        kernel: Kernel,
        ledger: Ledger,
        laws: Laws,
        priced: tuple[Subscribing, Notifying],
    ) -> None:
        """Make the brokers; `priced` says what messages cost under the algorithm."""
        self._kernel = kernel
        self._ledger = ledger
        self._laws = laws
        self._priced_subscriptions, self._priced = priced
        self._subscribers = scenario.subscribers
        self._numbers = {each.subscription: n for n, each in enumerate(scenario.subscribers)}
        self._broadcasts: dict[str, Broadcast] = {}
        self._early = EarlyChanges()
        options = scenario.document.routing
        self._carries_brokers = options.algorithm in {Algorithm.BID, Algorithm.TNR}
        self.brokers = [
            self.make(
                station.broker,
                scenario.topology.scot,
                options.algorithm,
                congestion_threshold=options.congestion_threshold,
                window_ms=options.window_ms,
                index=lambda: AudienceIndex(self._numbers),
            )
            for station in kernel.network.stations
        ]
        for output in kernel.network.outputs:
            status = self.brokers[output.source.index].link_status[output.target.broker]
            output.status = status

    # What the kernel asks

    def service_ns(self, station: Station, copy: Copy) -> int:
        """Return how long the station's server works on a message."""
        if isinstance(copy.subject, Flight):
            return self._priced.service_ns(station, copy)
        return self._priced_subscriptions.service_ns(station, copy) * _entries(copy.message)

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Let the broker act on a message, and carry out what it says."""
        if isinstance(copy.subject, Flight):
            self._serve_notification(station, output, copy, now)
        else:
            self._serve_subscription(station, output, copy, now)

    def lost(self, output: Output, copy: Copy, now: int) -> None:
        """Account for a copy that will never arrive."""
        if isinstance(copy.subject, Flight):
            self._priced.lost(output, copy, now)
        elif isinstance(copy.subject, Broadcast):
            raise OperationFailed(
                f"a subscription was lost between {output.source.broker} and "
                f"{output.target.broker}: let faults begin after the subscriptions have settled, "
                f"and give queues room for them"
            )

    # Notifications

    def _serve_notification(
        self, station: Station, output: Output | None, copy: Copy, now: int
    ) -> None:
        flight: Flight = copy.subject
        broker = self.brokers[station.index]
        if output is None:
            flight.accepted_ns = now
            effects = broker.client_publishes([Notification(FlightAttributes(flight))], now)
        else:
            effects = broker.messages_arrived(output.source.broker, [copy.message], now)
        flight.completed_ns = max(flight.completed_ns, now)
        flight.matching_ns += self._priced.matching_ns(station, copy)
        self._deliver(station, effects, flight, copy.hops, now)
        self._excuse(station, output, copy)
        made = _count(effects)
        flight.copies += made
        flight.outstanding += made  # before any is sent: a full queue may lose one at once
        self._enqueue(station, effects, copy.hops + 1, now)
        flight.outstanding -= 1
        if not flight.outstanding:
            self._ledger.completed(flight, now)

    def _deliver(
        self, station: Station, effects: list[Effect], flight: Flight, hops: int, now: int
    ) -> None:
        delivered = [
            self._numbers[subscription]
            for effect in effects
            if isinstance(effect, Deliver)
            for subscription in effect.subscriptions
        ]
        if delivered:
            self._laws.matched(flight, station, delivered, now)
            flight.audience.reach(flight.row, station.index, now, hops)

    def _excuse(self, station: Station, output: Output | None, copy: Copy) -> None:
        """Excuse the targets that a link which is down keeps from a notification."""
        flight: Flight = copy.subject
        down = [way for way in station.outputs if not way.up]
        for way in down:
            if (
                self._carries_brokers
            ):  # the way of each identification is the broker's secret: excuse all
                flight.excused |= copy.mask if copy.hops else flight.targets
            elif output is None or not way.is_icol or copy.mask >> way.target.broker.cluster & 1:
                flight.excused |= way.behind

    # Subscriptions

    def _serve_subscription(
        self, station: Station, output: Output | None, copy: Copy, now: int
    ) -> None:
        broker = self.brokers[station.index]
        broadcast: Broadcast | None = copy.subject
        duplicates = broker.counters.duplicates
        if output is None:
            assert broadcast is not None, "clients only subscribe and publish"
            client, identity, filter_ = self._asked(broadcast)
            self._broadcasts[identity] = broadcast
            effects = broker.client_subscribes(client, identity, filter_, now_ns=now)
        else:
            effects = broker.messages_arrived(output.source.broker, [copy.message], now)
        followers = []
        if broadcast is not None:
            duplicates = broker.counters.duplicates - duplicates
            broadcast.duplicates += duplicates
            if not duplicates:
                followers = self._store(station, broadcast, effects, copy, now)
        self._enqueue(station, effects, copy.hops + 1, now)
        if broadcast is not None:
            broadcast.copies += _count(effects)
            broadcast.outstanding += _count(effects)
        for each in (broadcast, *followers):
            if each is not None:
                each.completed_ns = max(each.completed_ns, now)
                each.outstanding -= 1
                if not each.outstanding:
                    self._ledger.settled(each, now)

    def _store(
        self, station: Station, broadcast: Broadcast, effects: list[Effect], copy: Copy, now: int
    ) -> list[Broadcast]:
        """Note what a broker has stored; return what had come before, and waited for this one."""
        if isinstance(copy.message, HostChange):
            broadcast.sequence = copy.message.sequence
        stored = [
            self._broadcasts[effect.subscription]
            for effect in effects
            if isinstance(effect, Stored)
        ]
        for each in stored:
            hops = copy.hops
            if each is not broadcast:
                waited = self._early.take(station, each.host, each.sequence)
                assert waited is not None, "what is stored later has come before"
                hops = waited[1]
            self._ledger.stored(each, station, now, hops)
        if not stored and isinstance(copy.message, HostChange):
            self._early.wait(station, broadcast, copy.hops)
        return stored[1:]

    def _asked(self, broadcast: Broadcast) -> tuple[str, str, Filter]:
        subscriber = self._subscribers[broadcast.number]
        return subscriber.client, subscriber.subscription, subscriber.filter

    # Effects

    def _enqueue(self, station: Station, effects: list[Effect], hops: int, now: int) -> None:
        """Put a broker's messages on their queues, output by output."""
        by_link = {effect.link: effect for effect in effects if isinstance(effect, Enqueue)}
        for output in station.outputs if by_link else ():
            sent = by_link.get(output.target.broker)
            if sent is not None:
                for message, reason in zip(sent.messages, sent.reasons, strict=True):
                    copy = self._copy(message, reason, hops)
                    self._kernel.enqueue(output, copy, now)
                    output.high_rate_messages += _is_high_rate(copy)
                    output.subscription_messages += reason is Reason.SUBSCRIPTION
                    self._ledger.sync_ims += reason is Reason.SYNC

    def _copy(self, message: Message, reason: Reason, hops: int) -> Copy:
        if isinstance(message, NotificationMessage):
            attributes = message.notification.attributes
            assert isinstance(attributes, FlightAttributes), "brokers pass attributes on untouched"
            mask = int(message.cbv_p) or message.targets
            send_ns = self._priced.send_ns(mask)
            return Copy(attributes.flight, hops, send_ns, reason, mask, message, message.tried)
        mask, tried = 0, 0
        if isinstance(message, HostChange):
            mask, tried = message.targets, message.tried
        send_ns = self._priced_subscriptions.send_ns(mask) * _entries(message)
        return Copy(self._broadcast_of(message), hops, send_ns, reason, mask, message, tried)

    def _broadcast_of(self, message: Message) -> Broadcast | None:
        if isinstance(message, Subscribe):
            return self._broadcasts[message.subscription.id]
        if isinstance(message, Flooded) and message.added is not None:
            return self._broadcasts[message.added.id]
        if isinstance(message, HostChange) and message.targets:
            return self._broadcasts[message.added[0].id]
        return None

    # Faults

    def cut(self, output: Output, now: int) -> None:
        """Take one direction of a link down."""
        self._kernel.cut(output, now)
        output.up = False
        self.brokers[output.source.index].link_down(output.target.broker)

    def restore(self, output: Output, now: int) -> None:
        """Bring one direction of a link back; the broker brings its neighbour up to date."""
        output.up = True
        effects = self.brokers[output.source.index].link_up(output.target.broker, now)
        self._enqueue(output.source, effects, 1, now)

    def cases(self) -> dict[str, int]:
        """Return how often each case of dynamic routing occurred."""
        found: dict[str, int] = {}
        for broker in self.brokers:
            for case, count in broker.counters.cases.items():
                found[case] = found.get(case, 0) + count
        return found


def _is_high_rate(copy: Copy) -> bool:
    return isinstance(copy.subject, Flight) and copy.subject.high_rate


def _count(effects: list[Effect]) -> int:
    return sum(len(effect.messages) for effect in effects if isinstance(effect, Enqueue))


def _entries(message: Message | None) -> int:
    """Return how many subscriptions a message speaks of, at least one."""
    if isinstance(message, TableSnapshot | HostState | HostTable):
        return max(1, len(message.subscriptions))
    return 1
