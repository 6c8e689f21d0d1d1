"""Real brokers in virtual time: `routing.Broker` decides, the kernel owns queues and time.

The guard of the faster traffic in notifying.py and subscribing.py: both give the same trace to the
byte. Where links are cut these run alone, because tables have to be brought up to date.

Brokers keep their own tables and their own link status, which the kernel's outputs share. Which
subscriptions match a notification is the one thing that they do not find out themselves: their
index answers from the audience, so that a run takes minutes and not hours.
"""

from octopis.core.delivery.channels import Channels
from octopis.core.filters import Filter
from octopis.core.model import Notification
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
from octopis.simulator.audience_index import AudienceIndex, FlightAttributes, flight_of
from octopis.simulator.kernel import Kernel
from octopis.simulator.laws import Laws
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station
from octopis.simulator.notifying import Notifying
from octopis.simulator.subscribing import EarlyChanges, Subscribing


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
        self._is_bid = options.algorithm is Algorithm.BID
        self._is_tnr = options.algorithm is Algorithm.TNR
        self.brokers = [
            self.make(
                station.broker,
                scenario.topology.scot,
                options.algorithm,
                congestion_threshold=options.congestion_threshold,
                window_ms=options.window_ms,
                index=lambda: AudienceIndex(self._numbers),
                channels=self._channels_of(station),
            )
            for station in kernel.network.stations
        ]
        for output in kernel.network.outputs:
            status = self.brokers[output.source.index].link_status[output.target.broker]
            output.status = status
            if not output.up:  # one of its ends is dead
                self.brokers[output.source.index].link_down(output.target.broker)

    def _channels_of(self, station: Station) -> Channels | None:  # noqa: ARG002
        """Return the channels of a station: here it has none."""
        return None

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
        out_of_reach = broker.counters.lost_without_route
        if output is None:
            flight.accepted_ns = now
            effects = broker.client_publishes([Notification(FlightAttributes(flight))], now)
        else:
            effects = broker.messages_arrived(output.source.broker, [copy.message], now)
        flight.completed_ns = max(flight.completed_ns, now)
        flight.matching_ns += self._priced.matching_ns(station, copy)
        self._deliver(station, effects, flight, copy.hops, now)
        if self._is_tnr:
            carried = (copy.mask if copy.hops else flight.targets) & ~station.bit
            self._excuse_unreachable(flight, carried, effects, broker, out_of_reach)
        else:
            self._excuse(station, output, copy)
        self._pass_on(station, flight, effects, copy.hops + 1, now)

    def _pass_on(  # noqa: PLR0913, PLR0917 - what a copy has become
        self,
        station: Station,
        flight: Flight,
        effects: list[Effect],
        hops: int,
        now: int,
        attempt: int = 0,
    ) -> None:
        """Send the copies that a copy has become, and count it as done."""
        made = _count(effects)
        flight.copies += made
        flight.outstanding += made  # before any is sent: a full queue may lose one at once
        self._enqueue(station, effects, hops, now, attempt)
        self._end(flight, now)

    def _end(self, flight: Flight, now: int) -> None:
        """Count what kept a notification under way, and does so no more."""
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
            if self._is_bid:  # the way of each identification is the broker's secret: excuse all
                flight.excused |= copy.mask if copy.hops else flight.targets
            elif output is None or not way.is_icol or copy.mask >> way.target.broker.cluster & 1:
                flight.excused |= way.behind

    @staticmethod
    def _excuse_unreachable(
        flight: Flight, carried: int, effects: list[Effect], broker: Broker, counted: int
    ) -> None:
        """Excuse the targets that a broker has found no way to, if it has counted as many."""
        for effect in effects:
            if isinstance(effect, Enqueue):
                for message in effect.messages:
                    assert isinstance(message, NotificationMessage), "what is routed is sent on"
                    carried &= ~message.targets
        if broker.counters.lost_without_route - counted == carried.bit_count():
            flight.excused |= carried

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

    def _enqueue(
        self, station: Station, effects: list[Effect], hops: int, now: int, attempt: int = 0
    ) -> None:
        """Put a broker's messages on their queues, output by output."""
        by_link = {effect.link: effect for effect in effects if isinstance(effect, Enqueue)}
        for output in station.outputs if by_link else ():
            sent = by_link.get(output.target.broker)
            if sent is not None:
                for message, reason in zip(sent.messages, sent.reasons, strict=True):
                    copy = self._copy(message, reason, hops, attempt)
                    self._kernel.enqueue(output, copy, now)
                    output.high_rate_messages += _is_high_rate(copy)
                    output.subscription_messages += reason is Reason.SUBSCRIPTION
                    self._ledger.sync_ims += reason is Reason.SYNC

    def _copy(self, message: Message, reason: Reason, hops: int, attempt: int) -> Copy:
        if isinstance(message, NotificationMessage):
            flight = flight_of(message.notification)
            mask = int(message.cbv_p) or message.targets
            send_ns = self._priced.send_ns(mask)
            return Copy(flight, hops, send_ns, reason, mask, message, message.tried, attempt)
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
        """Take one direction of a link down; what waits for it may go another way."""
        output.up = False
        self.brokers[output.source.index].link_down(output.target.broker)
        self._kernel.cut(output, now, self._reroute if self._is_tnr else self.lost)

    def _reroute(self, output: Output, copy: Copy, now: int) -> None:
        """Let the broker route a copy anew that has not left the queue of a broken link."""
        flight = copy.subject
        if not isinstance(flight, Flight):
            self.lost(output, copy, now)
            return
        station = output.source
        broker = self.brokers[station.index]
        out_of_reach = broker.counters.lost_without_route
        effects = broker.link_down(output.target.broker, [copy.message], now)
        flight.visits = None  # its way begins anew, for the checkers, too
        self._excuse_unreachable(flight, copy.mask, effects, broker, out_of_reach)
        self._pass_on(station, flight, effects, copy.hops, now, copy.attempt)

    def restore(self, output: Output, now: int) -> None:
        """Bring one direction of a link back; the broker brings its neighbour up to date."""
        output.up = True
        effects = self.brokers[output.source.index].link_up(output.target.broker, now)
        self._enqueue(output.source, effects, 1, now)

    def end(self) -> None:
        """Know that nothing is on its way any more."""

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
