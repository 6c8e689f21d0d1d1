from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm, Broker, Effect, Reason
from octopis.core.routing.messages import Flooded, HostState, Subscription, TableSnapshot
from octopis.errors import InvalidFilter, OperationFailed
from octopis.scenario.document import CutLink, Policy, QueueOptions, SlowLink
from octopis.simulator.audience import Copy
from octopis.simulator.real_brokers import RealBrokers
from octopis.simulator.simulation import Simulation
from octopis.trace import Level
from support.overlays import A0, B0, B1, C0
from support.simulations import (
    MS,
    Publishes,
    Setup,
    Subscribes,
    digests,
    made_deliveries,
    plain,
    ran,
    rows,
    simulated,
)

BUSY = Setup(
    subscribers=tuple(map(Subscribes, ("c,0", "b,1", "b,2", "c,2", "a,0"))),
    publications=tuple(Publishes("b,0", number * 15_000) for number in range(25)),
    costs=plain(send_overhead_us=20, notification_bytes=700, identification_bytes=9),
    congestion_threshold=2,
    window_ns=MS,
    faults=(SlowLink("b,0", "b,1", 30, 0, 100), SlowLink("b,1", "c,1", 7, 0, 1)),
)


@pytest.mark.parametrize("algorithm", Algorithm)
def test_real_brokers_leave_the_same_trace(algorithm: Algorithm):
    setup = replace(BUSY, algorithm=algorithm)
    with ran(setup) as (cheap, one), ran(setup, real_brokers=True) as (real, other):
        assert cheap == real
        assert digests(one) == digests(other)
        assert cheap.queue_length_max >= 5
        assert bool(cheap.dnr_cases) == (algorithm in {Algorithm.DNR, Algorithm.TNR})


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest"])
def test_real_brokers_leave_the_same_trace_where_queues_are_full(
    algorithm: Algorithm, policy: Policy
):
    queues = QueueOptions(4, policy)
    subscribers = tuple(
        each._replace(at_ns=number * MS) for number, each in enumerate(BUSY.subscribers)
    )
    setup = replace(BUSY, algorithm=algorithm, queues=queues, subscribers=subscribers)
    with ran(setup) as (cheap, one), ran(setup, real_brokers=True) as (_, other):
        assert cheap.queue_bounds
        assert digests(one) == digests(other)


def real(simulation: Simulation) -> RealBrokers:
    assert isinstance(simulation.notifying, RealBrokers)
    return simulation.notifying


@pytest.mark.parametrize("algorithm", Algorithm)
def test_every_station_is_a_broker_of_the_routing_core(algorithm: Algorithm):
    setup = replace(BUSY, algorithm=algorithm)
    with simulated(setup, real_brokers=True) as (simulation, _):
        simulation.run()
        brokers = real(simulation).brokers
        assert {type(broker) for broker in brokers} == {Broker}
        assert [broker.id for broker in brokers] == list(setup.scot.brokers)
        assert {len(broker.table) for broker in brokers} == {5}
        sent = sum(broker.counters.notification_ims for broker in brokers)
        summary = simulation.finish("complete", "")
        assert sent == summary.notification_ims


def test_broker_is_told_of_all_that_leaves_its_queues():
    with simulated(replace(BUSY, algorithm=Algorithm.DNR), real_brokers=True) as (simulation, _):
        simulation.run()
        told = real(simulation)
        for station in simulation.network.stations:
            for status in told.brokers[station.index].link_status.values():
                status.roll(simulation.kernel.now + 10 * MS)
                assert (status.queue_length, status.entering, status.leaving) == (0, 0, 0)


def put_on_queue(simulation: Simulation, target: BrokerId, send_us: int) -> None:
    """Let b,0 send a message of which nobody but its Link Status Table will know."""
    output = simulation.network.output(B0, target)
    real(simulation).brokers[output.source.index].link_status[target].entered(0)
    simulation.kernel.enqueue(output, Copy(None, 1, send_us * 1000, Reason.SYNC), 0)


def test_broker_is_told_in_the_order_of_time_in_which_window_messages_left():
    with simulated(BUSY, Level.DELIVERIES, real_brokers=True) as (simulation, _):
        for target, send_us in ((B1, 800), (C0, 400), (A0, 400)):  # they leave at 0, 0.8 and 1.2 ms
            put_on_queue(simulation, target, send_us)
        station = simulation.network.by_broker[B0]
        status = real(simulation).brokers[station.index].link_status
        status.roll(MS + MS // 2)
        assert (status[C0].q_out, status[C0].leaving) == (1, 0)
        assert (status[A0].q_out, status[A0].leaving) == (0, 1)
        assert (status[A0].q_in, status[A0].entering) == (1, 0)


@pytest.mark.parametrize(("windows", "count"), [(0, 0), (1, 1), (2, 0), (7, 0)])
def test_broker_knows_counts_of_the_last_window_only(windows: int, count: int):
    with simulated(BUSY, Level.DELIVERIES, real_brokers=True) as (simulation, _):
        put_on_queue(simulation, A0, 1)
        station = simulation.network.by_broker[B0]
        status = real(simulation).brokers[station.index].link_status[A0]
        for now in (MS // 2, windows * MS + MS // 2):
            status.roll(now)
        assert (status.queue_length, status.q_in, status.q_out) == (0, count, count)


@pytest.fixture
def idle() -> Iterator[Simulation]:
    with simulated(BUSY, real_brokers=True) as (simulation, _):
        yield simulation


def test_message_costs_as_much_as_the_subscriptions_that_it_speaks_of(idle: Simulation):
    station, each_ns = idle.network.stations[0], BUSY.costs.subscription_ns

    def service_ns(message: object) -> int:
        return real(idle).service_ns(station, Copy(None, 1, 0, Reason.SYNC, message=message))

    wanted = parse_filter("x = 1")
    three = tuple(Subscription(f"s{number}", wanted) for number in range(3))
    assert service_ns(TableSnapshot(())) == each_ns
    assert service_ns(Flooded(A0, 0, 1, three[0], None)) == each_ns
    assert service_ns(HostState(A0, 1, 1, three)) == 3 * each_ns


def test_error_of_a_broker_ends_the_run(monkeypatch: pytest.MonkeyPatch):
    class Refusing(Broker):
        def client_subscribes(self, *_: object, **__: object) -> list[Effect]:
            raise InvalidFilter("no", 0, "")

    monkeypatch.setattr(RealBrokers, "make", Refusing)
    with simulated(BUSY, real_brokers=True) as (simulation, _), pytest.raises(InvalidFilter):
        simulation.run()


CUT = Setup(
    subscribers=(Subscribes("c,0"), Subscribes("b,0"), Subscribes("a,1")),
    publications=tuple(Publishes("a,0", number * MS) for number in range(30)),
    faults=(CutLink("b,0", "c,0", 10, 20),),
)


@pytest.mark.parametrize("algorithm", [Algorithm.SNR, Algorithm.DNR, Algorithm.BID])
@pytest.mark.parametrize("level", [Level.FULL, Level.DELIVERIES])
def test_cut_link_loses_what_would_have_crossed_it_meanwhile(algorithm: Algorithm, level: Level):
    # A notification is served at b,0 after 10 + 1 + 100 + 10 us.
    with ran(replace(CUT, algorithm=algorithm), level) as (summary, trace):
        got = [number for _, number, name in made_deliveries(trace) if name == "s0"]
        assert got == [*range(10), *range(20, 30)]
        assert (summary.deliveries, summary.deliveries_lost) == (80, 10)
        assert summary.notifications == 30


@pytest.mark.parametrize("level", [Level.FULL, Level.DELIVERIES])
def test_target_routing_goes_around_a_cut_link_and_loses_nothing(level: Level):
    with ran(replace(CUT, algorithm=Algorithm.TNR), level) as (summary, trace):
        assert (summary.deliveries, summary.deliveries_lost) == (90, 0)
        around = {
            row["sequence"]: row["hops"]
            for row in rows(trace, "deliveries")
            if row["subscription"] == "s0" and row["hops"] > 2
        }
        assert around == dict.fromkeys(range(10, 20), 4)  # b,0 to b,1 to c,1 to c,0
        assert summary.dnr_cases["around fault"] == 10


def test_neighbours_compare_their_tables_when_a_link_is_back():
    with ran(CUT) as (summary, trace):
        synced = {
            (row["source"], row["target"]): row["enqueued_ns"]
            for row in rows(trace, "ims")
            if row["message"] == "sync"
        }
        back_ns = summary.begin_ns + 20 * MS
        assert synced == {("b,0", "c,0"): back_ns, ("c,0", "b,0"): back_ns}
        assert summary.sync_ims == 2


def test_cut_link_is_down_in_both_directions_until_its_end():
    with simulated(CUT, Level.DELIVERIES) as (simulation, _):
        told, output = real(simulation), simulation.network.output(A0, B0)
        told.cut(output, 5)
        assert not output.up
        assert B0 not in told.brokers[output.source.index].link_status.up
        told.restore(output, 7)
        assert output.up
        assert B0 in told.brokers[output.source.index].link_status.up
        assert output.messages == 1  # what the broker tells its neighbour


def test_subscription_on_a_cut_link_ends_the_run():
    with simulated(CUT, Level.DELIVERIES) as (simulation, _):
        told, output = real(simulation), simulation.network.output(C0, B0)
        simulation.kernel.control(10_500, lambda now: told.cut(output, now))
        with pytest.raises(OperationFailed, match="let faults begin after the subscriptions"):
            simulation.run()


def test_broker_gets_the_notification_as_a_publisher_gives_it(
    monkeypatch: pytest.MonkeyPatch,
):
    seen: list[BrokerId] = []

    class Noting(Broker):
        def client_publishes(
            self, notifications: Sequence[Notification], now_ns: int = 0
        ) -> list[Effect]:
            seen.extend(self.id for each in notifications if each.attributes == {"x": 1})
            return super().client_publishes(notifications, now_ns)

    monkeypatch.setattr(RealBrokers, "make", Noting)
    with simulated(replace(BUSY, publications=(Publishes("b,0"),)), real_brokers=True) as (made, _):
        made.run()
    assert seen == [B0]
