"""Real brokers in virtual time: `routing.Broker` decides, the kernel owns queues and time."""

from octopis.core.model import BrokerId, Notification
from octopis.core.routing import (
    Algorithm,
    Answer,
    Broker,
    Deliver,
    Effect,
    Enqueue,
    LinkStatus,
    Message,
    NotificationMessage,
    Reason,
    Subscribe,
)
from octopis.core.routing.messages import Flooded, HostState, TableSnapshot
from octopis.errors import OperationFailed
from octopis.scenario.folder import Scenario
from octopis.simulator.audience import Copy, Flight, Spread
from octopis.simulator.kernel import Kernel
from octopis.simulator.laws import Laws
from octopis.simulator.ledger import Ledger
from octopis.simulator.network import Output, Station
from octopis.simulator.notifying import Notifying
from octopis.simulator.queue_status import QueueStatus


class InFlight(Notification, frozen=True, gc=False, kw_only=True):
    """A notification that knows its flight; brokers pass it on untouched."""

    flight: Flight


class RealBrokers:
    """The traffic of an overlay whose stations are `routing.Broker`s."""

    make: type[Broker] = Broker

    def __init__(
        self, scenario: Scenario, kernel: Kernel, ledger: Ledger, laws: Laws, priced: Notifying
    ) -> None:
        """Make the brokers; `priced` says what notifications cost under the algorithm."""
        self._kernel = kernel
        self._ledger = ledger
        self._laws = laws
        self._priced = priced
        self._costs = scenario.document.costs
        self._subscribers = scenario.subscribers
        self._numbers = {each.subscription: n for n, each in enumerate(scenario.subscribers)}
        self._spreads: dict[str, Spread] = {}
        options = scenario.document.routing
        self._window_ns = round(options.window_ms * 1_000_000)
        self._windows = [0] * len(kernel.network.stations)
        self._is_bid = options.algorithm is Algorithm.BID
        scot = scenario.topology.scot
        threshold = options.congestion_threshold
        self.brokers = [
            self.make(station.broker, scot, options.algorithm, congestion_threshold=threshold)
            for station in kernel.network.stations
        ]
        for output in kernel.network.outputs:
            output.status = _ToldStatus(self, output, threshold, self._window_ns)

    # What the kernel asks

    def service_ns(self, station: Station, copy: Copy) -> int:
        """Return how long the station's server works on a message."""
        if isinstance(copy.subject, Flight):
            return self._priced.service_ns(station, copy)
        return self._costs.subscription_ns * _entries(copy.message)

    def serve(self, station: Station, output: Output | None, copy: Copy, now: int) -> None:
        """Let the broker act on a message, and carry out what it says."""
        self.settle(station, now)
        if isinstance(copy.subject, Flight):
            self._serve_notification(station, output, copy, now)
        else:
            self._serve_subscription(station, output, copy, now)

    def lost(self, output: Output, copy: Copy, now: int) -> None:
        """Account for a copy that will never arrive."""
        if isinstance(copy.subject, Flight):
            self._priced.lost(output, copy, now)
        elif isinstance(copy.subject, Spread):
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
            notification = InFlight(dict(flight.audience.attributes[flight.row]), flight=flight)
            effects = broker.client_publishes("publisher", 0, [notification])
        else:
            effects = broker.messages_arrived(output.source.broker, [copy.message])
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
            if self._is_bid:  # the way of each identification is the broker's secret: excuse all
                flight.excused |= copy.mask if copy.hops else flight.targets
            elif output is None or not way.is_icol or copy.mask >> way.target.broker.cluster & 1:
                flight.excused |= way.behind

    # Subscriptions

    def _serve_subscription(
        self, station: Station, output: Output | None, copy: Copy, now: int
    ) -> None:
        broker = self.brokers[station.index]
        spread: Spread | None = copy.subject
        identity = self._subscribers[spread.number].subscription if spread is not None else ""
        known = broker.table.get(identity) is not None
        duplicates = broker.counters.duplicates
        if output is None:
            assert spread is not None, "clients only subscribe and publish"
            subscriber = self._subscribers[spread.number]
            self._spreads[identity] = spread
            effects = broker.client_subscribes(subscriber.client, 0, identity, subscriber.filter)
        else:
            effects = broker.messages_arrived(output.source.broker, [copy.message])
        if spread is not None:
            if not known and broker.table.get(identity) is not None:
                self._ledger.stored(spread, station, now, copy.hops)
            spread.duplicates += broker.counters.duplicates - duplicates
        self._enqueue(station, effects, copy.hops + 1, now)
        if spread is not None:
            made = _count(effects)
            spread.completed_ns = max(spread.completed_ns, now)
            spread.copies += made
            spread.outstanding += made - 1
            if not spread.outstanding:
                self._ledger.settled(spread, now)

    # Effects

    def _enqueue(self, station: Station, effects: list[Effect], hops: int, now: int) -> None:
        """Put a broker's messages on their queues, output by output."""
        by_link: dict[BrokerId, Enqueue] = {}
        for effect in effects:
            if isinstance(effect, Enqueue):
                by_link[effect.link] = effect
            elif isinstance(effect, Answer) and effect.error is not None:
                raise effect.error
        for output in station.outputs:
            sent = by_link.get(output.target.broker)
            if sent is not None:
                for message, reason in zip(sent.messages, sent.reasons, strict=True):
                    copy = self._copy(message, reason, hops)
                    self._kernel.send(output, copy, now)
                    output.high_rate_messages += _is_high_rate(copy)
                    output.subscription_messages += reason is Reason.SUBSCRIPTION
                    self._ledger.sync_ims += reason is Reason.SYNC

    def _copy(self, message: Message, reason: Reason, hops: int) -> Copy:
        if isinstance(message, NotificationMessage):
            assert isinstance(message.notification, InFlight)
            stations = self._kernel.network.by_broker
            mask = int(message.cbv_p) or sum(stations[bid].bit for bid in message.bids)
            send_ns = self._priced.send_ns(mask)
            return Copy(message.notification.flight, hops, send_ns, reason, mask, message)
        send_ns = self._costs.send_subscription_ns() * _entries(message)
        return Copy(self._spread_of(message), hops, send_ns, reason, 0, message)

    def _spread_of(self, message: Message) -> Spread | None:
        if isinstance(message, Subscribe):
            return self._spreads[message.subscription.id]
        if isinstance(message, Flooded) and message.added is not None:
            return self._spreads[message.added.id]
        return None

    # Link status

    def settle(self, station: Station, now: int) -> None:
        """Tell a broker of everything that left its queues until now, window by window."""
        gone = [output for output in station.outputs if _leaves_at(output) <= now]
        broker = self.brokers[station.index]
        for output in sorted(gone, key=_leaves_at):
            self._roll(station, _leaves_at(output))
            broker.messages_left(output.target.broker)
            QueueStatus.settle(_status(output), _leaves_at(output))
        self._roll(station, now)

    def claimed(self, output: Output, now: int) -> LinkStatus:
        """Return what the broker's own Link Status Table says of a queue."""
        self.settle(output.source, now)
        return self.brokers[output.source.index].link_status[output.target.broker]

    def _roll(self, station: Station, now: int) -> None:
        window = now // self._window_ns
        # After two windows without messages all counts are zero; more change nothing.
        for _ in range(min(2, window - self._windows[station.index])):
            self.brokers[station.index].window_elapsed()
        self._windows[station.index] = window

    # Faults

    def cut(self, output: Output, now: int) -> None:
        """Take one direction of a link down."""
        self.settle(output.source, now)
        self._kernel.cut(output, now)
        output.up = False
        self.brokers[output.source.index].link_down(output.target.broker)
        _status(output).reset()

    def restore(self, output: Output, now: int) -> None:
        """Bring one direction of a link back; the broker brings its neighbour up to date."""
        self.settle(output.source, now)
        output.up = True
        effects = self.brokers[output.source.index].link_up(output.target.broker)
        self._enqueue(output.source, effects, 1, now)

    def cases(self) -> dict[str, int]:
        """Return how often each case of dynamic routing occurred."""
        found: dict[str, int] = {}
        for broker in self.brokers:
            for case, count in broker.counters.cases.items():
                found[case] = found.get(case, 0) + count
        return found


class _ToldStatus(QueueStatus):
    """A queue's status that also keeps the broker's own table up to date."""

    __slots__ = ("_brokers", "_output")

    def __init__(
        self, brokers: RealBrokers, output: Output, congestion_threshold: float, window_ns: int
    ) -> None:
        super().__init__(congestion_threshold, window_ns)
        self._brokers = brokers
        self._output = output

    def settle(self, now: int) -> None:
        """Count everything that has happened until now, here and in the broker."""
        self._brokers.settle(self._output.source, now)
        super().settle(now)

    def dropped(self, now: int) -> None:
        """Count a message that is taken off the queue and goes nowhere."""
        super().dropped(now)
        broker = self._brokers.brokers[self._output.source.index]
        broker.messages_left(self._output.target.broker)


def _status(output: Output) -> QueueStatus:
    assert output.status is not None, "real brokers track every queue"
    return output.status


def _leaves_at(output: Output) -> int:
    return _status(output).leaves_at


def _is_high_rate(copy: Copy) -> bool:
    return isinstance(copy.subject, Flight) and copy.subject.high_rate


def _count(effects: list[Effect]) -> int:
    return sum(len(effect.messages) for effect in effects if isinstance(effect, Enqueue))


def _entries(message: Message | None) -> int:
    """Return how many subscriptions a message speaks of, at least one."""
    if isinstance(message, TableSnapshot | HostState):
        return max(1, len(message.subscriptions))
    return 1
