"""Publishers at b,0 of a - b - c in three clusters, and an iCOL towards b,1 that is slow."""

from dataclasses import replace

import pytest

from octopis.core.routing import Algorithm, Reason
from octopis.scenario.document import Policy, QueueOptions, SlowLink
from octopis.simulator.audience import Copy
from octopis.simulator.notifying import DynamicNotifying
from support.overlays import B0, C0
from support.simulations import MS, Publishes, Row, Setup, Subscribes, plain, ran, rows, simulated


def slow_icol(*targets: str, count: int = 8, **changes: float) -> Setup:
    """Publish for some brokers while the iCOL towards b,1 takes 10 ms for a message."""
    return Setup(
        algorithm=Algorithm.DNR,
        subscribers=tuple(map(Subscribes, targets)),
        publications=tuple(Publishes("b,0", number * 20_000) for number in range(count)),
        costs=plain(**changes),
        congestion_threshold=1,
        window_ns=50 * MS,
        faults=(SlowLink("b,0", "b,1", 10_000, 0, 1000),),
    )


def with_reason(ims: list[Row], reason: str) -> set[tuple[str, str, str | None]]:
    return {
        (row["source"], row["target"], row["cbv_p"])
        for row in ims
        if row["reason"] == reason and row["message"] == "notification"
    }


def test_case_i_sends_the_cluster_along_over_a_free_icol():
    with ran(slow_icol("b,1", "b,2")) as (summary, trace):
        ims = rows(trace, "ims")
        assert with_reason(ims, "I") == {("b,0", "b,2", "010")}
        assert with_reason(ims, "pending") == {("b,2", "b,1", None)}
        assert set(summary.dnr_cases) == {"I"}
        assert (summary.deliveries, summary.deliveries_lost) == (16, 0)


def test_case_ii_sends_the_cluster_along_within_the_own_cluster():
    with ran(slow_icol("b,1", "c,0")) as (summary, trace):
        ims = rows(trace, "ims")
        assert with_reason(ims, "II") == {("b,0", "c,0", "010")}
        assert with_reason(ims, "pending") == {("c,0", "c,1", None)}
        assert set(summary.dnr_cases) == {"II"}
        assert (summary.deliveries, summary.deliveries_lost) == (16, 0)


def test_case_iii_uses_the_overloaded_link_where_there_is_no_other():
    with ran(slow_icol("b,1")) as (summary, trace):
        ims = rows(trace, "ims")
        assert with_reason(ims, "III") == {("b,0", "b,1", None)}
        assert with_reason(ims, "pending") == set()
        assert set(summary.dnr_cases) == {"III"}
        assert (summary.deliveries, summary.deliveries_lost) == (8, 0)


def test_cases_are_counted_as_often_as_a_copy_gives_them_as_its_reason():
    with ran(slow_icol("b,1", "b,2", "c,0", count=30)) as (summary, trace):
        ims = rows(trace, "ims")
        for case in ("I", "II", "III"):
            assert summary.dnr_cases.get(case, 0) == sum(row["reason"] == case for row in ims)
        assert summary.dnr_cases["I"] >= 20


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest"])
def test_full_queue_counts_as_congested_although_it_drops_as_much_as_it_gets(policy: Policy):
    # At most 5 messages wait, so only Q_in over Q_out can tell: what was dropped did not leave.
    setup = slow_icol("b,1", "b,2", count=400)
    full = replace(
        setup,
        congestion_threshold=10,
        queues=QueueOptions(5, policy),
        window_ns=MS,
        subscribers=tuple(
            each._replace(at_ns=number * MS) for number, each in enumerate(setup.subscribers)
        ),
    )
    with ran(full) as (summary, _):
        (bound,) = summary.queue_bounds
        assert (bound.source, bound.target) == ("b,0", "b,1")
        assert summary.dnr_cases["I"] > bound.dropped > 0


def test_without_congestion_dynamic_routing_is_static_routing():
    setup = slow_icol("b,1", "c,2", count=1)
    with ran(setup) as (summary, trace):
        assert summary.dnr_cases == {}
        assert {row["reason"] for row in rows(trace, "ims")} == {"subscription", "match"}


def test_overload_of_a_link_within_the_cluster_is_no_case():
    setup = Setup(
        algorithm=Algorithm.DNR,
        subscribers=(Subscribes("c,0"), Subscribes("b,1")),
        publications=tuple(Publishes("b,0", number * 20_000) for number in range(8)),
        congestion_threshold=1,
        faults=(SlowLink("b,0", "c,0", 10_000, 0, 1000),),
    )
    with ran(setup) as (summary, _):
        assert summary.dnr_cases == {}
        assert summary.queue_length_max >= 5


@pytest.mark.parametrize("pending", [0b1, 0b110])
def test_copy_that_carries_pending_clusters_is_a_byte_longer(pending: int):
    with simulated(slow_icol("b,1")) as (simulation, _):
        notifying = simulation.notifying
        assert isinstance(notifying, DynamicNotifying)
        assert notifying.send_ns(0) == 1000
        assert notifying.send_ns(pending) == 1001


def test_lost_copy_takes_its_pending_clusters_with_it():
    with simulated(slow_icol("b,1", "b,2", count=1)) as (simulation, _):
        network = simulation.network
        ((_, _, _, sent),) = simulation._publications()
        flight = sent.subject
        flight.outstanding = 2
        copy = Copy(flight, 1, 1000, Reason.CASE_II, 0b100)
        simulation.notifying.lost(network.output(B0, C0), copy, 5)
        excused = {each.broker.short for each in network.stations if flight.excused & each.bit}
        assert excused == {"c,0", "a,2", "b,2", "c,2"}
        assert flight.outstanding == 1
