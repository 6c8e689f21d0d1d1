from dataclasses import replace

import pytest

from octopis import __version__
from octopis.core.routing import Algorithm
from octopis.scenario.document import CutLink, QueueOptions, SlowLink
from octopis.simulator.notifying import DynamicNotifying, IdentifiedNotifying, StaticNotifying
from octopis.simulator.real_brokers import RealBrokers
from octopis.simulator.subscribing import FloodSubscribing, TwoStepSubscribing
from octopis.trace import Level
from support.overlays import A0, A1, B0
from support.simulations import (
    MS,
    Publishes,
    Setup,
    Subscribes,
    made_deliveries,
    plain,
    ran,
    rows,
    simulated,
    wanted_deliveries,
    written,
)

SETUP = Setup(
    subscribers=(Subscribes("c,0", at_ns=7 * MS), Subscribes("a,2", "x = 2", 3 * MS)),
    publications=(Publishes("a,0", 5 * MS), Publishes("b,1", 8 * MS, x=2)),
)


@pytest.mark.parametrize(
    ("algorithm", "subscribing", "notifying"),
    [
        (Algorithm.SNR, TwoStepSubscribing, StaticNotifying),
        (Algorithm.DNR, TwoStepSubscribing, DynamicNotifying),
        (Algorithm.BID, FloodSubscribing, IdentifiedNotifying),
    ],
)
def test_cheap_form_of_the_algorithm_decides(
    algorithm: Algorithm, subscribing: type, notifying: type
):
    with simulated(replace(SETUP, algorithm=algorithm)) as (simulation, _):
        assert type(simulation.subscribing) is subscribing
        assert type(simulation.notifying) is notifying


def test_real_brokers_run_on_request_and_where_links_are_cut():
    with simulated(SETUP, real_brokers=True) as (simulation, _):
        assert isinstance(simulation.notifying, RealBrokers)
        assert simulation.notifying is simulation.subscribing
    cut = replace(SETUP, faults=(CutLink("a,0", "b,0", 1, 2),))
    with simulated(cut, Level.SUMMARY) as (simulation, _):
        assert isinstance(simulation.notifying, RealBrokers)


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("faults", [(), (CutLink("a,0", "b,0", 1, 2),)])
def test_nothing_is_done_ahead_of_time_where_one_moment_is_looked_at(
    level: Level, faults: tuple[CutLink, ...]
):
    with simulated(replace(SETUP, faults=faults), level) as (simulation, _):
        exact = level is Level.FULL or bool(faults)
        assert {station.unsettled for station in simulation.network.stations} == {int(exact)}


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("algorithm", Algorithm)
def test_queues_are_tracked_where_somebody_looks_at_them(level: Level, algorithm: Algorithm):
    with simulated(replace(SETUP, algorithm=algorithm), level) as (simulation, _):
        tracked = {output.status is not None for output in simulation.network.outputs}
        looks = algorithm in {Algorithm.DNR, Algorithm.TNR}
        assert tracked == {level is Level.FULL or looks}


def test_notifications_begin_with_the_window_after_all_subscriptions_have_settled():
    with ran(SETUP) as (summary, trace):
        settled = max(row["settled_ns"] for row in rows(trace, "subscriptions"))
        assert 7 * MS < settled < 50 * MS
        assert summary.begin_ns == 50 * MS
        intended = [row["intended_ns"] for row in rows(trace, "publications")]
        assert intended == [55 * MS, 58 * MS]


def test_run_ends_when_everything_has_arrived():
    with ran(SETUP) as (summary, trace):
        assert summary.end_ns == max(row["completed_ns"] for row in rows(trace, "publications"))


def test_summary_says_what_was_run():
    setup = replace(SETUP, algorithm=Algorithm.DNR, seed=99)
    with ran(setup, Level.SUMMARY) as (summary, trace):
        again = written(setup, trace.parent / "again")
        assert (summary.version, summary.source) == (__version__, "simulator")
        assert (summary.scenario, summary.seed) == ("test", 99)
        assert summary.scenario_digest == again.digest
        assert (summary.algorithm, summary.level, summary.brokers) == ("dnr", "summary", 9)
        assert (summary.subscriptions, summary.notifications) == (2, 2)


def test_faults_count_from_the_moment_when_notifications_begin():
    faults = SlowLink("a,0", "b,0", 3, 10, 20), SlowLink("a,1", "a,0", 2.5, 0, 1)
    with simulated(replace(SETUP, faults=faults)) as (simulation, _):
        simulation.run()
        begin, network = simulation._begin_ns, simulation.network
        assert network.output(A0, B0).slow == [(begin + 10 * MS, begin + 20 * MS, 3)]
        assert network.output(A1, A0).slow == [(begin, begin + MS, 2.5)]
        assert network.output(B0, A0).slow == []  # one direction only


def test_slow_link_does_not_slow_subscriptions():
    slow = replace(SETUP, faults=(SlowLink("c,0", "b,0", 1e6, 0, 1e6),))
    with ran(SETUP) as (_, one), ran(slow) as (_, other):
        assert rows(one, "subscriptions") == rows(other, "subscriptions")


def test_bound_that_was_reached_is_in_the_summary_with_what_was_done():
    setup = Setup(
        subscribers=(Subscribes("c,0"),),
        publications=(Publishes("a,0"),) * 9,
        costs=plain(send_overhead_us=200),
        queues=QueueOptions(3, "drop_oldest"),
    )
    with ran(setup, Level.SUMMARY) as (summary, _):
        (bound,) = summary.queue_bounds
        assert (bound.source, bound.target) == ("a,0", "b,0")
        assert (bound.policy, bound.dropped) == ("drop_oldest", 5)
        # The first copy goes at 10 us, three wait from 20, 30 and 40 us on.
        assert bound.first_ns == summary.begin_ns + 50_000
        assert (summary.deliveries, summary.deliveries_lost) == (4, 5)


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("level", Level)
def test_scenario_without_subscribers_or_notifications_runs(algorithm: Algorithm, level: Level):
    with ran(Setup(algorithm=algorithm), level) as (summary, _):
        assert (summary.subscriptions, summary.notifications, summary.deliveries) == (0, 0, 0)
    with ran(Setup(algorithm=algorithm, publications=SETUP.publications), level) as (summary, _):
        assert (summary.notifications, summary.notification_ims) == (2, 0)


def test_subscribers_are_told_apart_by_time_not_by_their_place_in_the_table():
    with simulated(SETUP, Level.DELIVERIES) as (simulation, trace):
        simulation.run()
        simulation.finish("complete", "")
        scenario = simulation._scenario
        assert [each.subscription for each in scenario.subscribers] == ["s1", "s0"]
        wanted = wanted_deliveries(scenario)
        simulation.ledger._rows._writer.close()
        assert made_deliveries(trace) == wanted
        assert wanted == [("a,0", 0, "s0"), ("b,1", 0, "s0"), ("b,1", 0, "s1")]
