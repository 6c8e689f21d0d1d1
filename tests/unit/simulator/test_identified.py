from collections import Counter
from functools import partial

import pytest

from octopis.core.routing import Algorithm, Reason
from octopis.simulator.audience import Copy
from octopis.simulator.notifying import IdentifiedNotifying
from octopis.simulator.simulation import Simulation
from support.simulations import one_publication, ran, rows, simulated

US = 1000
setup = partial(one_publication, Algorithm.BID)


def notifying(simulation: Simulation) -> IdentifiedNotifying:
    assert isinstance(simulation.notifying, IdentifiedNotifying)
    return simulation.notifying


def test_service_takes_longer_with_every_identification_that_a_copy_carries():
    with simulated(setup("c,0", identification_ns=7)) as (simulation, _):
        station = simulation.network.stations[0]
        service = [
            notifying(simulation).service_ns(station, Copy(None, 1, 0, Reason.MATCH, mask))
            for mask in (0b10, 0b110, 0b111110)
        ]
        assert service == [10 * US + 7, 10 * US + 14, 10 * US + 35]


def test_publishers_broker_is_charged_for_the_identifications_of_others():
    with ran(setup("a,0", "b,0", "c,2", identification_ns=7)) as (summary, trace):
        (row,) = rows(trace, "publications")
        assert row["accepted_ns"] == summary.begin_ns + 10 * US + 2 * 7


def test_copy_is_longer_with_every_identification():
    with simulated(setup("c,0", identification_bytes=16)) as (simulation, _):
        send = [notifying(simulation).send_ns(mask) for mask in (0, 0b1, 0b1011)]
        assert send == [US, US + 16, US + 48]


@pytest.mark.parametrize(
    ("hops", "mask", "matching_ns"),
    [
        (0, 0, 500 + 3 * 100),  # the publisher's broker: against all subscriptions
        (1, 0b10, 0),  # on the way: not at all
        (1, 0b11, 500 + 2 * 100),  # a target: against those of its own clients
    ],
)
def test_matching_is_done_at_the_publishers_broker_and_at_targets(
    hops: int, mask: int, matching_ns: int
):
    changes = {"matching_us": 0.5, "matching_per_subscription_ns": 100}
    with simulated(setup("a,0", "a,0", "c,0", **changes)) as (simulation, _):
        list(simulation._subscriptions())  # a simulation counts them as clients subscribe
        station = simulation.network.stations[0]
        copy = Copy(None, hops, 0, Reason.MATCH, mask)
        assert notifying(simulation).matching_ns(station, copy) == matching_ns


def test_identifications_are_split_on_the_way_and_stripped_where_they_belong():
    # The floods took the aCOLs first: c,0 and b,0 are reached through b,0.
    with ran(setup("b,0", "c,0", "a,1")) as (_, trace):
        copies = [row for row in rows(trace, "ims") if row["message"] == "notification"]
        carried = {(row["source"], row["target"]): row["bids"] for row in copies}
        assert carried == {("a,0", "b,0"): 2, ("b,0", "c,0"): 1, ("a,0", "a,1"): 1}


def test_notification_without_targets_is_not_sent():
    with ran(setup("a,0")) as (summary, trace):
        assert summary.notification_ims == 0
        assert [row["hops"] for row in rows(trace, "deliveries")] == [0]


def test_broker_may_see_several_copies_but_delivers_once():
    targets = ["a,0", "a,1", "a,2", "b,0", "b,1", "b,2", "c,0", "c,1", "c,2"]
    with ran(setup(*targets, latency_us=3, send_overhead_us=40)) as (summary, trace):
        delivered = Counter(row["broker"] for row in rows(trace, "deliveries"))
        assert delivered == Counter(targets)
        assert summary.notification_ims >= 8


def test_lost_copy_excuses_the_brokers_that_it_names():
    with simulated(setup("c,0", "c,1")) as (simulation, _):
        (arrival,) = simulation._publications()
        flight = arrival[3].subject
        flight.outstanding = 2
        output = simulation.network.outputs[0]
        notifying(simulation).lost(output, Copy(flight, 1, 0, Reason.MATCH, 0b101), 5)
        assert (flight.excused, flight.outstanding) == (0b101, 1)
