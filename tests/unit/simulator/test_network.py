from random import Random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.routing import Reason
from octopis.core.topology import SCOT
from octopis.simulator.audience import Copy
from octopis.simulator.network import Network, Output, Waiting
from support.overlays import A0, A1, A2, B0, B1, B2, C0, CHAIN
from support.scenarios import random_overlay

RANDOMS = st.randoms(use_true_random=False)


def network(scot: SCOT = CHAIN, *, exact: bool = False) -> Network:
    return Network(scot, 100, exact=exact)


def names(made: Network, mask: int) -> set[str]:
    return {station.broker.short for station in made.stations if mask & station.bit}


def graph(scot: SCOT) -> nx.Graph:
    return nx.Graph((one, other) for one, other, _ in (*scot.acols, *scot.icols))


def test_brokers_behind_links_of_an_inner_broker():
    made = network()
    behind = {way.target.broker: names(made, way.behind) for way in made.by_broker[B0].outputs}
    assert behind == {
        A0: {"a,0"},
        C0: {"c,0"},
        B1: {"a,1", "b,1", "c,1"},
        B2: {"a,2", "b,2", "c,2"},
    }


@given(RANDOMS)
@settings(max_examples=60, deadline=None)
def test_brokers_behind_an_output_are_those_to_which_a_shortest_path_begins_there(random: Random):
    scot = random_overlay(random, (1, 7), (1, 4))
    made = network(scot)
    distance = dict(nx.all_pairs_shortest_path_length(graph(scot)))
    for output in made.outputs:
        source, target = output.source.broker, output.target.broker
        for other in made.stations:
            if output.behind & other.bit:
                assert distance[target][other.broker] == distance[source][other.broker] - 1
                assert other.broker.cluster == target.cluster


@given(RANDOMS)
@settings(max_examples=60, deadline=None)
def test_every_other_broker_is_behind_exactly_one_output(random: Random):
    made = network(random_overlay(random, (1, 7), (1, 4)))
    everyone = sum(station.bit for station in made.stations)
    for station in made.stations:
        # Sums of disjoint sets are their unions: no bit is carried.
        assert sum(behind for behind, _ in station.routes) == everyone - station.bit
        assert [way for _, way in station.routes] == station.outputs


@given(RANDOMS)
@settings(max_examples=60, deadline=None)
def test_what_is_behind_an_output_is_its_target_and_what_is_behind_the_onward_ways(random: Random):
    made = network(random_overlay(random, (1, 7), (1, 4)))
    for output in made.outputs:
        onward = sum(behind for behind, _ in output.onward)
        assert output.behind == output.target.bit + onward
        assert all(not way.is_icol for _, way in output.onward)
        assert all(way.source is output.target for _, way in output.onward)


def test_outputs_stand_in_the_order_of_brokers_and_their_neighbours():
    made = network()
    pairs = [(output.source.broker, output.target.broker) for output in made.outputs]
    assert pairs == [(one, other) for one in CHAIN.brokers for other in CHAIN.neighbours(one)]
    assert [output.index for output in made.outputs] == list(range(len(made.outputs)))
    assert [output.arrival_rank for output in made.outputs] == list(
        range(len(made.outputs), 2 * len(made.outputs))
    )


def test_output_knows_the_way_back():
    made = network()
    way = made.output(A0, B0)
    assert (way.back.source.broker, way.back.target.broker) == (B0, A0)
    assert way.back.back is way


def test_links_between_clusters_are_icols():
    made = network()
    assert made.output(A0, A1).is_icol
    assert made.output(A0, A2).is_icol
    assert not made.output(A0, B0).is_icol


def test_cluster_masks_name_the_brokers_of_each_cluster():
    made = network()
    assert [names(made, mask) for mask in made.cluster_masks] == [
        {broker.short for broker in CHAIN.cluster(cluster)} for cluster in (0, 1, 2)
    ]


def test_single_broker_has_no_outputs():
    scot = random_overlay(Random(0), (1, 1), (1, 1))  # noqa: S311 - any will do
    assert network(scot).outputs == []


def test_queues_are_tracked_on_request():
    made = network()
    assert {output.status for output in made.outputs} == {None}
    made.track_queues(2.5, 10)
    statuses = [output.status for output in made.outputs]
    assert len({id(status) for status in statuses}) == len(made.outputs)
    assert statuses[0] is not None
    assert statuses[0].longest_uncongested == 2


@pytest.mark.parametrize(("exact", "unsettled"), [(False, 0), (True, 1)])
def test_station_that_must_be_exact_is_never_settled(exact: bool, unsettled: int):
    assert {each.unsettled for each in network(exact=exact).stations} == {unsettled}


@pytest.fixture
def output() -> Output:
    return network().output(A0, B0)


@pytest.mark.parametrize(
    ("start", "busy_ns"), [(9, 10), (10, 30), (19, 30), (20, 10), (40, 15), (50, 10)]
)
def test_message_that_starts_on_a_slow_link_takes_longer(output: Output, start: int, busy_ns: int):
    output.slow = [(10, 20, 3.0), (40, 50, 1.5)]
    assert output.busy_ns(start, 10) == busy_ns


def test_length_counts_the_message_with_a_slot_until_it_leaves(output: Output):
    output.slot_start = 10
    copy = Copy(None, 1, 5, Reason.MATCH)
    output.waiting.append(Waiting(copy, 0, 1))
    assert [output.length(now) for now in (0, 9, 10, 11)] == [2, 2, 1, 1]


def test_longest_queue_is_one_where_messages_went_at_once(output: Output):
    assert output.longest == 0
    output.messages = 5
    assert output.longest == 1
    output.queue_length_max = 4
    assert output.longest == 4
