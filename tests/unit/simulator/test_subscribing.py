from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT
from octopis.errors import OperationFailed
from octopis.scenario.document import QueueOptions
from octopis.simulator.subscribing import FloodSubscribing
from support.overlays import CHAIN
from support.scenarios import random_overlay
from support.simulations import Setup, Subscribes, plain, ran, random_setup, rows, simulated

US = 1000
RANDOMS = st.randoms(use_true_random=False)


def flood_ims(scot: SCOT) -> int:
    """Return what a flood costs: every broker sends to all neighbours but the one it came from."""
    return 2 * (len(scot.acols) + len(scot.icols)) - len(scot.brokers) + 1


def test_two_step_broadcast_reaches_every_broker_once_on_a_shortest_path():
    with ran(Setup(subscribers=(Subscribes("b,1"),))) as (summary, trace):
        stored = {row["broker"]: row["hops"] for row in rows(trace, "stored")}
        host = CHAIN.broker("b,1")
        assert stored == {each.short: CHAIN.distance(host, each) for each in CHAIN.brokers}
        assert (summary.subscription_ims, summary.subscription_duplicates) == (8, 0)


def test_subscription_row_tells_length_and_time_of_its_tree():
    with ran(Setup(subscribers=(Subscribes("a,0", at_ns=5 * US),))) as (_, trace):
        (row,) = rows(trace, "subscriptions")
        assert (row["subscribed_ns"], row["ims"], row["duplicates"]) == (5 * US, 8, 0)
        assert row["tree_length_max"] == 3
        assert row["tree_length_mean"] == (1 + 2 + 1 + 2 + 3 + 1 + 2 + 3) / 8
        assert row["settled_ns"] == max(each["stored_ns"] for each in rows(trace, "stored"))


def test_flood_reaches_every_broker_and_drops_later_copies():
    setup = Setup(algorithm=Algorithm.BID, subscribers=(Subscribes("b,1"),))
    with ran(setup) as (summary, trace):
        assert len(rows(trace, "stored")) == 9
        assert summary.subscription_ims == flood_ims(CHAIN) == 22
        assert summary.subscription_duplicates == 22 - 8


@given(RANDOMS)
@settings(max_examples=30, deadline=None)
def test_each_subscription_costs_the_same_wherever_it_is_made(random: Random):
    scot = random_overlay(random, (1, 5), (1, 4))
    places = [random.choice(scot.brokers).short for _ in range(3)]
    subscribers = tuple(Subscribes(each, at_ns=random.randrange(3)) for each in places)
    for algorithm, cost in (
        (Algorithm.SNR, len(scot.brokers) - 1),
        (Algorithm.BID, flood_ims(scot)),
    ):
        with ran(Setup(scot=scot, algorithm=algorithm, subscribers=subscribers)) as (_, trace):
            assert [row["ims"] for row in rows(trace, "subscriptions")] == [cost] * 3


@given(RANDOMS)
@settings(max_examples=30, deadline=None)
def test_trees_of_floods_lead_from_every_broker_to_every_host_without_a_loop(random: Random):
    setup = random_setup(random, Algorithm.BID)
    with simulated(setup) as (simulation, _):
        flooding = simulation.subscribing
        assert isinstance(flooding, FloodSubscribing)
        simulation.kernel.run(
            flooding, simulation.laws.served_subscription, simulation._subscriptions()
        )
        network, trees = simulation.network, flooding.trees
        for place in {each.broker for each in setup.subscribers}:
            host = network.by_broker[setup.scot.broker(place)]
            for start in network.stations:
                at, seen = start, 0
                while at is not host:
                    assert not seen & at.bit, f"a loop between {start.broker} and {host.broker}"
                    seen |= at.bit
                    ((way, behind),) = trees[at.index].split(host.bit)
                    assert behind == host.bit
                    at = way.target
        assert flooding._received == {}  # nothing is kept of what has settled


def test_service_and_sending_cost_what_the_scenario_says():
    costs = plain(subscription_us=5, subscription_bytes=300)
    with ran(Setup(subscribers=(Subscribes("a,0"),), costs=costs)) as (_, trace):
        stored = {row["broker"]: row["stored_ns"] for row in rows(trace, "stored")}
        assert stored["a,0"] == 15 * US
        assert stored["b,0"] == stored["a,0"] + 1300 + 100 * US + 15 * US
        assert stored["a,1"] == stored["b,0"] + 1300


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("real_brokers", [False, True])
def test_subscription_that_is_dropped_stops_the_run(algorithm: Algorithm, real_brokers: bool):
    setup = Setup(
        algorithm=algorithm,
        subscribers=(Subscribes("a,0"),) * 9,
        costs=plain(send_overhead_us=500),
        queues=QueueOptions(2, "drop_oldest"),
    )
    with (
        pytest.raises(OperationFailed, match=r"subscription was (dropped|lost)|lost between"),
        ran(setup, real_brokers=real_brokers),
    ):
        pass
