from collections.abc import Iterator

import pytest

from octopis.core.model import BrokerId
from octopis.core.routing import Reason
from octopis.simulator.audience import Copy, Flight
from octopis.simulator.notifying import Notifying
from octopis.simulator.simulation import Simulation
from support.overlays import A0, A1, B0, C0
from support.simulations import Publishes, Setup, Subscribes, plain, simulated

SETUP = Setup(
    subscribers=(Subscribes("c,0"), Subscribes("c,1")),
    publications=(Publishes("a,0"),),
    costs=plain(matching_us=3, matching_per_subscription_ns=50),
)


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with simulated(SETUP) as (made, _):
        yield made


@pytest.fixture
def notifying(simulation: Simulation) -> Notifying:
    assert isinstance(simulation.notifying, Notifying)
    return simulation.notifying


@pytest.fixture
def flight(simulation: Simulation) -> Flight:
    ((_, _, _, copy),) = simulation._publications()
    made: Flight = copy.subject
    return made


def names(simulation: Simulation, mask: int) -> set[str]:
    return {each.broker.short for each in simulation.network.stations if mask & each.bit}


def test_service_is_routing_and_matching_against_all_subscriptions(
    simulation: Simulation, notifying: Notifying, flight: Flight
):
    station, copy = simulation.network.stations[0], Copy(flight, 1, 0, Reason.MATCH)
    assert notifying.matching_ns(station, copy) == 3000 + 2 * 50
    assert notifying.service_ns(station, copy) == 10_000 + 3000 + 2 * 50


def test_all_copies_are_equally_long(notifying: Notifying):
    assert notifying.send_ns(0) == notifying.send_ns(0b101) == 1000


def test_targets_of_a_flight_are_the_brokers_that_want_it(simulation: Simulation, flight: Flight):
    assert names(simulation, flight.targets) == {"c,0", "c,1"}


@pytest.mark.parametrize(
    ("ends", "excused"),
    [
        ((A0, B0), {"b,0", "c,0"}),
        ((B0, C0), {"c,0"}),
        ((B0, A0), {"a,0"}),
        ((A0, A1), {"a,1", "b,1", "c,1"}),
    ],
)
def test_lost_copy_excuses_those_behind_its_link_and_no_others(
    simulation: Simulation,
    notifying: Notifying,
    flight: Flight,
    ends: tuple[BrokerId, BrokerId],
    excused: set[str],
):
    flight.outstanding = 3
    notifying.lost(simulation.network.output(*ends), Copy(flight, 1, 0, Reason.MATCH), 5)
    assert names(simulation, flight.excused) == excused
    assert flight.outstanding == 2


def test_copy_that_is_lost_at_once_does_not_end_a_flight_that_has_others(
    simulation: Simulation, notifying: Notifying, flight: Flight
):
    notifying._begin(flight, [simulation.network.output(A0, B0)] * 2)
    notifying.lost(simulation.network.output(A0, B0), Copy(flight, 1, 0, Reason.MATCH), 5)
    notifying._end(flight, 5)  # that of the broker which sent both
    assert (flight.copies, flight.outstanding) == (2, 1)
    assert simulation.ledger.notifications == 0


def test_flight_ends_with_the_loss_of_its_last_copy(
    simulation: Simulation, notifying: Notifying, flight: Flight
):
    flight.excused = flight.targets
    notifying.lost(simulation.network.outputs[0], Copy(flight, 1, 0, Reason.MATCH), 5)
    assert (flight.completed_ns, simulation.ledger.notifications) == (5, 1)
    assert simulation.ledger.deliveries_lost == 2
