"""Links that are slow or down, and queues that are full: what is lost, and what is counted."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT, ConnectivityFactor
from octopis.errors import OperationFailed
from octopis.scenario.document import CutLink, Policy, QueueOptions, SlowLink
from octopis.simulator.run import run
from octopis.trace import Level, read_summary
from support.overlays import CHAIN
from support.simulations import (
    MS,
    Publishes,
    Row,
    Setup,
    Subscribes,
    digests,
    made_deliveries,
    message_ns,
    on_disk,
    plain,
    ran,
    random_cuts,
    random_setup,
    rows,
    wanted_deliveries,
)

RANDOMS = st.randoms(use_true_random=False)
CLUSTER_ALGORITHMS = (Algorithm.SNR, Algorithm.DNR)
PAPER_ALGORITHMS = (*CLUSTER_ALGORITHMS, Algorithm.BID)
"""Those that know nothing of faults."""

# Slow links

SLOW = Setup(
    subscribers=tuple(map(Subscribes, ("b,1", "b,2", "c,0", "a,1"))),
    publications=tuple(Publishes("b,0", number * MS) for number in range(200)),
    congestion_threshold=5,
    window_ns=10 * MS,
    faults=(SlowLink("b,0", "b,1", 5000, 50, 100),),  # 5 ms for a message, from 50 to 100 ms
)
SLOW_LINK = ("b,0", "b,1")


def longest_queues(links: list[Row]) -> dict[tuple[str, str], int]:
    return {(row["source"], row["target"]): row["queue_length_max"] for row in links}


@pytest.mark.parametrize("algorithm", Algorithm)
def test_slow_link_fills_its_own_queue_and_no_other(algorithm: Algorithm):
    with ran(replace(SLOW, algorithm=algorithm)) as (summary, trace):
        longest = longest_queues(rows(trace, "links"))
        assert longest.pop(SLOW_LINK) == summary.queue_length_max >= 6
        assert max(longest.values()) <= 2
        assert (summary.deliveries, summary.deliveries_lost) == (800, 0)


@pytest.mark.parametrize("algorithm", CLUSTER_ALGORITHMS)
def test_queue_of_a_slow_link_grows_and_empties_again(algorithm: Algorithm):
    with ran(replace(SLOW, algorithm=algorithm)) as (summary, trace):
        lengths = {
            (row["window_end_ns"] - summary.begin_ns) // MS: row["queue_length"]
            for row in rows(trace, "queues")
            if (row["source"], row["target"]) == SLOW_LINK
        }
        assert max(length for end, length in lengths.items() if 0 < end <= 50) == 0
        assert max(length for end, length in lengths.items() if 60 <= end <= 110) >= 5
        assert max(length for end, length in lengths.items() if end >= 150) == 0


def test_dynamic_routing_goes_around_the_slow_link():
    with ran(SLOW) as (_, static), ran(replace(SLOW, algorithm=Algorithm.DNR)) as (dnr, dynamic):
        assert dnr.dnr_cases["I"] >= 10
        lengths = [longest_queues(rows(trace, "links"))[SLOW_LINK] for trace in (static, dynamic)]
        assert lengths[0] >= 30
        assert lengths[1] < lengths[0] / 2
        around = [row for row in rows(dynamic, "ims") if row["cbv_p"] is not None]
        assert {(row["source"], row["target"], row["cbv_p"]) for row in around} == {
            ("b,0", "b,2", "010")
        }
        begin, end = (dnr.begin_ns + ms * MS for ms in (50, 110))
        assert all(begin <= row["enqueued_ns"] <= end for row in around)


# Links that are down

CUT = Setup(
    subscribers=(
        Subscribes("c,0"),
        Subscribes("c,0", "x = 2"),
        Subscribes("b,0"),
        Subscribes("c,1"),
    ),
    publications=tuple(Publishes("a,0", number * MS // 5, number % 3) for number in range(300)),
    costs=plain(send_overhead_us=150, latency_us=700),
    window_ns=10 * MS,
)
DOWN_MS, UP_MS = 20, 35


def crossings(trace_rows: list[Row], latency_ns: int) -> dict[int, tuple[int, int]]:
    """Return when each notification was put on the queue to c,0, and when it arrived there."""
    return {
        row["sequence"]: (row["enqueued_ns"], row["left_ns"] + 150_000 + latency_ns)
        for row in trace_rows
        if row["publisher"] and (row["source"], row["target"]) == ("b,0", "c,0")
    }


@pytest.mark.parametrize("algorithm", PAPER_ALGORITHMS)
@pytest.mark.parametrize("level", [Level.FULL, Level.DELIVERIES])
def test_cut_link_loses_exactly_what_was_on_it_and_what_came_meanwhile(
    algorithm: Algorithm, level: Level
):
    setup = replace(CUT, algorithm=algorithm)
    with ran(setup) as (whole, without):
        down, up = (whole.begin_ns + ms * MS for ms in (DOWN_MS, UP_MS))
        crossed = crossings(rows(without, "ims"), 700_000)
        everything = made_deliveries(without)
    lost_numbers = {
        number for number, (put, arrived) in crossed.items() if put < up and arrived >= down
    }
    assert 50 < len(lost_numbers) < 150
    faulty = replace(setup, faults=(CutLink("c,0", "b,0", DOWN_MS, UP_MS),))
    with ran(faulty, level) as (summary, trace):
        lost = set(everything) - set(made_deliveries(trace))
        assert {number for _, number, _ in lost} == lost_numbers
        assert {name for _, _, name in lost} == {"s0", "s1"}  # those at c,0
        assert summary.deliveries_lost == len(lost)
        assert summary.deliveries == len(everything) - len(lost)
        assert summary.notifications == 300
        cut = {(row["source"], row["target"]): row["cut"] for row in rows(trace, "links")}
        assert 0 < cut.pop(("b,0", "c,0")) <= len(lost_numbers)
        assert set(cut.values()) == {0}


@pytest.mark.parametrize("level", [Level.FULL, Level.DELIVERIES])
@pytest.mark.parametrize("link", [("c,0", "b,0"), ("c,0", "c,1")])
def test_target_routing_loses_only_what_was_on_the_wire_of_a_cut_link(
    link: tuple[str, str], level: Level
):
    # A copy every 200 us, 150 us in the sender and 700 us under way: 5 on the wire at most.
    setup = replace(CUT, algorithm=Algorithm.TNR, faults=(CutLink(*link, DOWN_MS, UP_MS),))
    with ran(setup, level) as (summary, trace):
        missed = set(wanted_of(setup)) - set(made_deliveries(trace))
        assert summary.deliveries_lost == len(missed)
        numbers = {number for _, number, _ in missed}
        assert 1 <= len(numbers) <= 6
        assert max(numbers) - min(numbers) < 6  # those of one moment
        assert summary.dnr_cases["around fault"] >= 60
        cut = {(row["source"], row["target"]): row["cut"] for row in rows(trace, "links")}
        assert sum(cut.values()) >= len(numbers)


def test_what_waits_for_a_link_that_breaks_is_routed_anew():
    # Everything waits: the link is slow, and nothing counts as overloaded.
    slow = SlowLink("b,0", "c,0", 1000, 0, DOWN_MS + 1)
    faults = (slow, CutLink("b,0", "c,0", DOWN_MS, UP_MS))
    setup = replace(CUT, algorithm=Algorithm.TNR, faults=faults, congestion_threshold=1e9)
    with ran(setup) as (summary, trace):
        messages = [row for row in rows(trace, "ims") if row["publisher"]]
        unsent = {row["sequence"] for row in messages if row["fate"] == "cut"}
        assert len(unsent) >= 90
        missed = {n for _, n, _ in set(wanted_of(setup)) - set(made_deliveries(trace))}
        assert summary.deliveries_lost <= 2
        assert not missed & unsent


def test_what_is_routed_anew_waits_behind_a_copy_whose_turn_is_at_that_moment():
    # The sender of b,0 takes 1,000,005 ns: 0 goes to b,1 after 10 us, and 1 to c,0 when that has
    # gone; 2 waits for c,0 and 3 for b,1. At the turn of 3, the way of 2 is cut: it follows 3.
    turn_ns = 10_000 + 1_000_005
    setup = Setup(
        scot=SCOT(CHAIN.acyclic, ConnectivityFactor.complete(2)),
        algorithm=Algorithm.TNR,
        subscribers=(Subscribes("c,0", "x = 1"), Subscribes("b,1", "x = 2")),
        publications=tuple(Publishes("b,0", 0, x) for x in (2, 1, 1, 2)),
        costs=plain(send_overhead_us=1000, target_routing_us=10),
        congestion_threshold=1e9,
        faults=(CutLink("b,0", "c,0", turn_ns / MS, 50),),
    )
    with ran(setup) as (summary, trace):  # the law on link status holds
        crossed = [
            (row["sequence"], *(row[at] - summary.begin_ns for at in ("enqueued_ns", "left_ns")))
            for row in rows(trace, "ims")
            if row["publisher"] and (row["source"], row["target"]) == ("b,0", "b,1")
        ]
        assert crossed == [
            (0, 10_000, 10_000),
            (3, 40_000, turn_ns + 1_000_005),  # after 1
            (2, turn_ns, turn_ns + 2_000_010),
        ]
        missed = set(wanted_of(setup)) - set(made_deliveries(trace))
        assert missed == {("b,0", 1, "s0")}  # it was on the wire


def wanted_of(setup: Setup) -> list[tuple[str, int, str]]:
    with on_disk(setup) as (scenario, _):
        return wanted_deliveries(scenario)


@pytest.mark.parametrize("algorithm", PAPER_ALGORITHMS)
def test_cut_link_across_clusters_loses_a_whole_cluster(algorithm: Algorithm):
    faults = (CutLink("a,0", "a,1", DOWN_MS, UP_MS),)
    with ran(replace(CUT, algorithm=algorithm, faults=faults), Level.DELIVERIES) as (
        summary,
        trace,
    ):
        got = {number for _, number, name in made_deliveries(trace) if name == "s3"}
        missed = sorted(set(range(300)) - got)
        if algorithm is Algorithm.BID:  # its tree to c,1 may lead elsewhere
            assert summary.deliveries_lost == len(missed)
        else:
            assert missed == list(range(missed[0], missed[-1] + 1))
            assert 75 <= len(missed) < 150  # 15 ms at five a millisecond, and what was queued
        others = [name for _, _, name in made_deliveries(trace) if name != "s3"]
        assert len(others) == 300 + 300 + 100


@pytest.mark.parametrize("algorithm", Algorithm)
@given(random=RANDOMS)
@settings(max_examples=60, deadline=None)
def test_only_notifications_that_were_under_way_while_a_link_was_down_lose_anything(
    algorithm: Algorithm, random: Random
):
    setup = random_setup(random, algorithm, regions=(2, 6))
    setup = replace(setup, faults=random_cuts(random, setup))
    with on_disk(setup) as (scenario, folder):
        summary = run(
            scenario, folder / "trace", level=random.choice((Level.FULL, Level.DELIVERIES))
        )
        made, wanted = made_deliveries(folder / "trace"), wanted_deliveries(scenario)
        assert len(set(made)) == len(made) == summary.deliveries
        lost = set(wanted) - set(made)
        assert set(made) <= set(wanted)
        assert len(lost) == summary.deliveries_lost
        periods = [
            [summary.begin_ns + round(ms * MS) for ms in (each.begin_ms, each.end_ms)]
            for each in setup.faults
        ]
        known = {
            (row["publisher"], row["sequence"]): row
            for row in rows(folder / "trace", "publications")
        }
        for publisher, sequence, _ in lost:
            row = known[publisher, sequence]
            assert any(
                row["intended_ns"] <= end and row["completed_ns"] >= begin for begin, end in periods
            )


def test_random_cuts_lose_something_in_many_runs():
    losses = 0
    for seed in range(40):
        random = Random(seed)  # noqa: S311 - repeatable on purpose
        setup = random_setup(random, Algorithm.SNR, regions=(2, 6))
        with ran(replace(setup, faults=random_cuts(random, setup)), Level.SUMMARY) as (summary, _):
            losses += summary.deliveries_lost > 0
    assert losses >= 10


# Full queues

FULL = Setup(
    subscribers=(Subscribes("c,0"), Subscribes("a,0", at_ns=MS), Subscribes("a,1", at_ns=2 * MS)),
    publications=tuple(Publishes("a,0", number * 20_000) for number in range(60)),
    costs=plain(send_overhead_us=100),
)
DROPPING: tuple[Policy, ...] = ("drop_newest", "drop_oldest")


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("policy", DROPPING)
def test_bound_that_is_reached_is_reported_with_what_was_done(
    algorithm: Algorithm, level: Level, policy: Policy
):
    setup = replace(FULL, algorithm=algorithm, queues=QueueOptions(5, policy))
    with ran(setup, level) as (summary, trace):
        bounds = {(bound.source, bound.target): bound for bound in summary.queue_bounds}
        assert ("a,0", "b,0") in bounds
        assert {bound.policy for bound in bounds.values()} == {policy}
        assert summary.notifications == 60
        dropped = {
            (row["source"], row["target"]): row["dropped"]
            for row in rows(trace, "links")
            if row["dropped"]
        }
        assert dropped == {ends: bound.dropped for ends, bound in bounds.items()}
        # Every copy has one subscriber behind it.
        assert summary.deliveries_lost == sum(dropped.values()) > 20
        assert summary.deliveries == 180 - summary.deliveries_lost
        begin = summary.begin_ns
        assert all(begin < bound.first_ns < begin + 2 * MS for bound in bounds.values())


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("policy", DROPPING)
def test_dropped_copies_are_in_the_full_trace(algorithm: Algorithm, policy: Policy):
    setup = replace(FULL, algorithm=algorithm, queues=QueueOptions(5, policy))
    with ran(setup) as (summary, trace):
        dropped = [row for row in rows(trace, "ims") if row["fate"] == "dropped"]
        assert len(dropped) == sum(bound.dropped for bound in summary.queue_bounds)
        assert {row["left_ns"] for row in dropped} == {None}
        lost = set(wanted(60)) - set(made_deliveries(trace))
        assert {number for _, number, _ in lost} == {row["sequence"] for row in dropped}


def wanted(count: int) -> list[tuple[str, int, str]]:
    return [("a,0", number, name) for number in range(count) for name in ("s0", "s1", "s2")]


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("real_brokers", [False, True])
def test_policy_stop_stops_at_the_first_copy_without_room(algorithm: Algorithm, real_brokers: bool):
    setup = replace(FULL, algorithm=algorithm, queues=QueueOptions(5, "stop"))
    with on_disk(setup) as (scenario, folder):
        with pytest.raises(OperationFailed, match="reached its bound of 5 messages"):
            run(scenario, folder / "trace", real_brokers=real_brokers)
        summary = read_summary(folder / "trace")
        assert summary.state == "partial"
        (bound,) = summary.queue_bounds
        assert (bound.source, bound.policy) == ("a,0", "stop")
        made = made_deliveries(folder / "trace")
        assert len(made) == len(set(made)) < 180


def test_bound_that_is_not_reached_changes_nothing():
    with (
        ran(replace(FULL, queues=QueueOptions(61))) as (summary, one),
        ran(replace(FULL, queues=QueueOptions())) as (_, other),
    ):
        assert summary.queue_bounds == []
        assert summary.deliveries == 180
        assert rows(one, "ims") == rows(other, "ims")


@pytest.mark.parametrize("algorithm", Algorithm)
@given(random=RANDOMS)
@settings(max_examples=50, deadline=None)
def test_full_queues_lose_what_was_dropped_and_nothing_else(algorithm: Algorithm, random: Random):
    setup = random_setup(random, algorithm)
    gap_ns = 3000 * message_ns(setup.costs)  # subscriptions must not be dropped
    setup = replace(
        setup,
        subscribers=tuple(
            each._replace(at_ns=number * gap_ns)
            for number, each in enumerate(setup.subscribers[:10])
        ),
        window_ns=min(10**11, setup.window_ns * 100),
        queues=QueueOptions(random.choice((1, 2, 5)), random.choice(DROPPING)),
    )
    assume(setup.subscribers)
    with on_disk(setup) as (scenario, folder):
        summary = run(scenario, folder / "cheap", level=Level.FULL)
        run(scenario, folder / "real", level=Level.FULL, real_brokers=True)
        assert digests(folder / "cheap") == digests(folder / "real")
        made, wished = made_deliveries(folder / "cheap"), wanted_deliveries(scenario)
        assert len(set(made)) == len(made)
        assert summary.notifications == len(setup.publications)
        lost = set(wished) - set(made)
        assert len(lost) == summary.deliveries_lost == len(wished) - len(made)
        dropped = {
            (row["publisher"], row["sequence"])
            for row in rows(folder / "cheap", "ims")
            if row["fate"] == "dropped"
        }
        assert {each[:2] for each in lost} == dropped
