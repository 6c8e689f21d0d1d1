"""One run of a scenario, put together: network, kernel, traffic, ledger and laws."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter

from msgspec import UNSET

from octopis.core.routing import Algorithm, Reason
from octopis.scenario.folder import Scenario
from octopis.simulator.audience import Broadcast, Copy, Flight, Matcher
from octopis.simulator.channelled_brokers import ChannelledBrokers
from octopis.simulator.kernel import Arrival, Kernel, Traffic
from octopis.simulator.laws import Laws
from octopis.simulator.ledger import Ledger, Progress
from octopis.simulator.network import Network
from octopis.simulator.notifying import (
    DynamicNotifying,
    IdentifiedNotifying,
    Notifying,
    StaticNotifying,
    TargetNotifying,
)
from octopis.simulator.real_brokers import RealBrokers
from octopis.simulator.subscribing import (
    FloodSubscribing,
    Subscribing,
    TargetSubscribing,
    TwoStepSubscribing,
)
from octopis.simulator.windows import Windows
from octopis.trace import Level, RunSummary
from octopis.trace.summary import QueueBound, State
from octopis.trace.writer import TraceWriter
from octopis.version import __version__

MS = 1_000_000


class Simulation:
    """A scenario on its way. The cheap forms of the algorithms decide, or real brokers."""

    def __init__(
        self,
        scenario: Scenario,
        writer: TraceWriter,
        progress: Progress,
        *,
        real_brokers: bool = False,
    ) -> None:
        scenario = scenario.among_living()
        document = scenario.document
        full = writer.level is Level.FULL
        self._scenario = scenario
        self._level = writer.level
        # Samples, cuts and channels look at stations at one moment: nothing is done ahead of time.
        exact = full or bool(document.cut_links) or document.has_channels
        self.network = Network(scenario.topology.scot, document.costs.latency_ns, exact=exact)
        self.network.kill(scenario.dead)
        algorithm, subscribers = document.routing.algorithm, scenario.subscribers
        seed = document.scenario.seed
        self.laws = Laws(self.network, algorithm, seed, scenario.publishers, subscribers)
        self.ledger = Ledger(scenario, self.network, self.laws, writer, progress)
        self._window_ns = window_ns = round(document.routing.window_ms * MS)
        windows = Windows(self.ledger, self.laws, window_ns) if full else None
        self.kernel = Kernel(self.network, document.queues, windows)
        if full or algorithm in {Algorithm.DNR, Algorithm.TNR}:
            self.network.track_queues(document.routing.congestion_threshold, window_ns)
        self._real: RealBrokers | None = None
        self.subscribing, self.notifying = self._traffic(
            real_brokers=real_brokers
            or bool(document.cut_links or scenario.dead)
            or document.has_channels
        )
        self._begin_ns = 0
        self._windows = windows
        self._watch(0)

    def _traffic(self, *, real_brokers: bool) -> tuple[Traffic, Traffic]:
        costs, count = self._scenario.document.costs, len(self._scenario.subscribers)
        algorithm = self._scenario.document.routing.algorithm
        parts = self.kernel, self.ledger, costs
        subscribing: Subscribing
        notifying: Notifying
        if algorithm is Algorithm.BID:
            subscribing = flooding = FloodSubscribing(*parts)
            notifying = IdentifiedNotifying(*parts, count, flooding.trees)
        elif algorithm is Algorithm.TNR:
            subscribing = TargetSubscribing(*parts)
            notifying = TargetNotifying(*parts, count)
        else:
            subscribing = TwoStepSubscribing(*parts)
            is_dynamic = algorithm is Algorithm.DNR
            notifying = (DynamicNotifying if is_dynamic else StaticNotifying)(*parts, count)
        if not real_brokers:
            return subscribing, notifying
        kind = ChannelledBrokers if self._scenario.document.has_channels else RealBrokers
        priced = subscribing, notifying
        real = kind(self._scenario, self.kernel, self.ledger, self.laws, priced)
        self._real = real
        return real, real

    def run(self) -> None:
        """Run until everything has arrived."""
        laws = self.laws
        if self._real is None:
            self.kernel.run(self.subscribing, laws.served_subscription, self._subscriptions())
        else:
            self.kernel.run(self.subscribing, laws.served, self._subscriptions())
        self._begin_ns = (self.ledger.last_ns // self._window_ns + 1) * self._window_ns
        for output in self.network.outputs:
            output.waited_ns = 0  # a queue's mean length is over the run, which begins now
        self._plan_faults()
        self._watch(self._begin_ns)
        if self._real is None:
            self.kernel.run(self.notifying, laws.of_notifications, self._publications())
        else:
            self.kernel.run(self.notifying, laws.served, self._publications())
            self._real.end()
        self.laws.conserved(self.ledger.last_ns)
        self.laws.all_arrived(self.ledger.under_way, self.ledger.last_ns)

    def finish(self, state: State, reason: str) -> RunSummary:
        """Write what is left to write, and return the summary."""
        self.ledger.finish()
        scenario, document = self._scenario, self._scenario.document
        outputs, ledger = self.network.outputs, self.ledger
        subscription_ims = sum(output.subscription_messages for output in outputs)
        real = self._real
        cases = ledger.cases if real is None else real.cases()
        channels = real.counts if isinstance(real, ChannelledBrokers) else None
        return RunSummary(
            version=__version__,
            source="simulator",
            scenario=document.scenario.name,
            scenario_digest=scenario.digest,
            seed=document.scenario.seed,
            algorithm=document.routing.algorithm.value,
            level=self._level.value,
            state=state,
            reason=reason,
            begin_ns=self._begin_ns,
            end_ns=ledger.last_ns,
            brokers=len(self.network.stations),
            subscriptions=ledger.subscriptions,
            notifications=ledger.notifications,
            deliveries=ledger.deliveries,
            deliveries_lost=ledger.deliveries_lost,
            subscription_ims=subscription_ims,
            subscription_duplicates=ledger.duplicates,
            notification_ims=sum(o.messages for o in outputs) - subscription_ims - ledger.sync_ims,
            sync_ims=ledger.sync_ims,
            sent_again=channels.sent_again if channels else UNSET,
            duplicates=channels.duplicates if channels else UNSET,
            given_up=channels.given_up if channels else UNSET,
            dnr_cases=dict(sorted(cases.items())),
            dead_brokers=sorted(broker.short for broker in scenario.dead) or UNSET,
            queue_length_max=max((output.longest for output in outputs), default=0),
            input_wait_max_ns=self.kernel.input_wait_max_ns,
            queue_bounds=[
                QueueBound(
                    source=output.source.broker.short,
                    target=output.target.broker.short,
                    first_ns=output.first_dropped_ns,
                    policy=document.queues.policy,
                    dropped=output.dropped,
                )
                for output in outputs
                if output.first_dropped_ns >= 0
            ],
        )

    def _plan_faults(self) -> None:
        scot = self.network.scot
        for slow in self._scenario.document.slow_links:
            output = self.network.output(scot.broker(slow.source), scot.broker(slow.target))
            begin, end = (self._begin_ns + round(ms * MS) for ms in (slow.begin_ms, slow.end_ms))
            output.slow.append((begin, end, slow.factor))
            output.source.has_slow = True
        changes: list[tuple[int, int, Callable[[int], None]]] = []
        for cut in self._scenario.document.cut_links:
            real = self._real
            assert real is not None, "real brokers run where links are cut"
            output = self.network.output(scot.broker(cut.source), scot.broker(cut.target))
            for each in (output, output.back):
                changes.append((round(cut.end_ms * MS), 0, partial(real.restore, each)))
                changes.append((round(cut.begin_ms * MS), 1, partial(real.cut, each)))
        # Where one cut ends and the next begins, the link comes up first, and stays down after.
        for time, _, change in sorted(changes, key=itemgetter(0, 1)):
            self.kernel.control(self._begin_ns + time, change)

    def _watch(self, now: int) -> None:
        """Sample the queues at the end of every window from now on, if they are to be."""
        if self._windows is not None:
            self._windows.watch(now, self.kernel)

    def _subscriptions(self) -> Iterator[Arrival]:
        for number, subscriber in enumerate(self._scenario.subscribers):
            station = self.network.by_broker[subscriber.broker]
            station.local_subscriptions += 1
            self.laws.sent_by_client(station)
            broadcast = Broadcast(number, station, subscriber.subscribe_ns)
            copy = Copy(broadcast, 0, 0, Reason.SUBSCRIPTION)
            yield subscriber.subscribe_ns, number, station, copy

    def _publications(self) -> Iterator[Arrival]:
        subscribers, stations = self._scenario.subscribers, self.network.by_broker
        hosts = [stations[subscriber.broker].index for subscriber in subscribers]
        parts = self.network.parts
        matcher = Matcher(subscribers, hosts, len(parts), parts)
        homes = [stations[publisher.broker] for publisher in self._scenario.publishers]
        high_rate = [publisher.high_rate for publisher in self._scenario.publishers]
        number = 0
        for batch in self._scenario.publications():
            published_at = [homes[publisher] for publisher in batch.publishers]
            audience = matcher.audience(batch.attributes, published_at)
            self.ledger.opened(audience)
            targets = audience.targets()
            columns = zip(batch.publishers, batch.sequences, batch.intended_ns, strict=True)
            for row, (publisher, sequence, intended_ns) in enumerate(columns):
                home, due = homes[publisher], self._begin_ns + intended_ns
                who, wanted = (publisher, sequence, home), (audience, row, targets[row])
                flight = Flight(*who, due, *wanted, high_rate[publisher])
                audience.flights.append(flight)
                self.laws.sent_by_client(home)
                yield due, number, home, Copy(flight, 0, 0, Reason.MATCH)
                number += 1
