"""Each kind of fault by itself: in the end all tables are as if nothing had been."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.filters import Filter
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from support.faults import check_as_if_nothing_had_been, faultless, restore_everything, tables
from support.network import Network
from support.scenarios import FILTERS, Subscriber

SEEDS = st.integers(0, 2**32 - 1)
CHAIN = SCOT(AcyclicFactor.from_edges([("a", "b"), ("b", "c")]), ConnectivityFactor.complete(2))
A0, A1, B0, B1, C0, C1 = (BrokerId(region, cluster) for region in "abc" for cluster in (0, 1))


def subscriber(broker: BrokerId, identity: str, wanted: Filter = FILTERS[0]) -> Subscriber:
    return Subscriber(broker, f"client of {identity}", identity, wanted)


def network_with(algorithm: Algorithm, *living: Subscriber) -> Network:
    return faultless(CHAIN, algorithm, list(living))


def subscribe(network: Network, each: Subscriber) -> None:
    network.subscribe(each.broker, each.client, each.identity, each.filter)


each_algorithm = pytest.mark.parametrize("algorithm", Algorithm)


@each_algorithm
def test_subscription_made_while_a_link_is_cut_crosses_it_later(algorithm: Algorithm):
    network = network_with(algorithm)
    network.cut(A0, B0)
    network.cut(A0, A1)
    subscribe(network, subscriber(A0, "s"))
    network.settle()
    assert len(network.brokers[C0].table) == 0
    network.restore(A0, B0)
    network.restore(A0, A1)
    network.settle()
    check_as_if_nothing_had_been(network, [subscriber(A0, "s")])


@each_algorithm
def test_subscription_ended_while_a_link_is_cut_ends_behind_it_later(algorithm: Algorithm):
    network = network_with(algorithm, subscriber(A0, "s"), subscriber(C1, "t"))
    network.cut(A0, B0)
    network.cut(A0, A1)
    network.unsubscribe(A0, "client of s", "s")
    network.settle()
    assert network.brokers[C0].table.get("s") is not None
    network.restore(A0, B0)
    network.restore(A0, A1)
    network.settle()
    check_as_if_nothing_had_been(network, [subscriber(C1, "t")])


@each_algorithm
def test_subscription_lost_on_the_way_over_a_breaking_link_is_made_good(algorithm: Algorithm):
    network = network_with(algorithm)
    subscribe(network, subscriber(A0, "s"))
    network.cut(A0, B0)  # with the subscription on its queue
    network.settle()
    network.restore(A0, B0)
    network.settle()
    check_as_if_nothing_had_been(network, [subscriber(A0, "s")])


@each_algorithm
@pytest.mark.parametrize("restarted", CHAIN.brokers, ids=str)
def test_broker_that_restarts_learns_everything_again(algorithm: Algorithm, restarted: BrokerId):
    living = [subscriber(broker, f"s{at}") for at, broker in enumerate(CHAIN.brokers)]
    staying = [each for each in living if each.broker != restarted]
    network = network_with(algorithm, *living)
    network.restart(restarted)
    restore_everything(network)
    network.settle()
    check_as_if_nothing_had_been(network, staying)


@each_algorithm
@pytest.mark.parametrize("before_the_links", [True, False])
def test_clients_of_a_restarted_broker_subscribe_again(
    algorithm: Algorithm, before_the_links: bool
):
    living = [subscriber(A0, "s"), subscriber(A0, "t", FILTERS[1]), subscriber(C1, "u")]
    network = network_with(algorithm, *living)
    network.restart(A0)
    if not before_the_links:
        restore_everything(network)
        network.settle()
    for each in living[1::-1]:
        subscribe(network, each)
    restore_everything(network)
    network.settle()
    check_as_if_nothing_had_been(network, living)


@each_algorithm
def test_other_subscriptions_after_a_restart_are_told_apart_from_as_many_before(
    algorithm: Algorithm,
):
    network = network_with(algorithm, subscriber(A0, "s"))
    network.restart(A0)
    subscribe(network, subscriber(A0, "t"))
    restore_everything(network)
    network.settle()
    check_as_if_nothing_had_been(network, [subscriber(A0, "t")])


@each_algorithm
def test_same_id_with_another_filter_after_a_restart_is_told_apart(algorithm: Algorithm):
    network = network_with(algorithm, subscriber(A0, "s", FILTERS[0]))
    network.restart(A0)
    subscribe(network, subscriber(A0, "s", FILTERS[1]))
    restore_everything(network)
    network.settle()
    check_as_if_nothing_had_been(network, [subscriber(A0, "s", FILTERS[1])])


@each_algorithm
def test_end_of_a_subscription_is_heard_though_all_around_its_host_restarts(algorithm: Algorithm):
    network = network_with(algorithm, subscriber(A0, "s"))
    network.unsubscribe(A0, "client of s", "s")
    for broker in (A0, A1, B0):  # now nobody near remembers that there was anything
        network.restart(broker)
    restore_everything(network)
    network.settle()
    check_as_if_nothing_had_been(network, [])


@each_algorithm
def test_all_brokers_restart_one_after_the_other(algorithm: Algorithm):
    living = [subscriber(broker, f"s{at}") for at, broker in enumerate(CHAIN.brokers)]
    network = network_with(algorithm, *living)
    for each in living:
        network.restart(each.broker)
        restore_everything(network)
        network.step(network.busy()[0])
        subscribe(network, each)
    network.settle()
    check_as_if_nothing_had_been(network, living)


@each_algorithm
@given(seed=SEEDS)
@settings(max_examples=30, deadline=None)
def test_link_up_again_for_a_link_that_is_up_says_nothing(algorithm: Algorithm, seed: int):
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    network = network_with(algorithm, subscriber(A0, "s"), subscriber(B1, "t"))
    for broker in network.scot.brokers:
        for neighbour in network.scot.neighbours(broker):
            assert network.brokers[broker].link_up(neighbour) == []
    before = tables(network)
    one, other = random.choice([(A0, B0), (A0, A1), (C1, C0)])
    network.cut(one, other)
    network.restore(one, other)
    network.settle(random)
    assert network.brokers[one].link_up(other) == []
    assert tables(network) == before


@each_algorithm
def test_cut_and_restored_link_without_news_changes_no_table(algorithm: Algorithm):
    living = [subscriber(A0, "s"), subscriber(B1, "t")]
    network = network_with(algorithm, *living)
    before = tables(network)
    for _ in range(2):
        network.cut(A0, A1)
        network.restore(A0, A1)
        network.settle()
        assert tables(network) == before
    check_as_if_nothing_had_been(network, living)


@each_algorithm
def test_client_that_moves_off_a_cut_off_broker_is_not_brought_back(algorithm: Algorithm):
    network = network_with(algorithm, subscriber(A0, "s"))
    network.cut(A0, B0)
    network.cut(A0, A1)
    subscribe(network, subscriber(C0, "s"))
    network.settle()
    restore_everything(network)
    network.settle()
    check_as_if_nothing_had_been(network, [subscriber(C0, "s")])
    assert network.brokers[A0]._clients.owner("s") is None
