import os
import subprocess
import sys
from pathlib import Path

import pytest

import support
from octopis.core.filters import parse_filter
from octopis.core.matching import BitsetIndex
from octopis.core.model import ClusterBitVector
from octopis.core.routing import (
    Algorithm,
    Broker,
    Deliver,
    NotificationMessage,
    Stored,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from octopis.core.routing.messages import Flooded, HostState, HostVersions, Refresh, TableSnapshot
from octopis.errors import InvalidSubscription
from support.network import Network
from support.overlays import A0, B0, B1, C0, CHAIN, ONE, TWO, enqueued

each_algorithm = pytest.mark.parametrize("algorithm", Algorithm)


@each_algorithm
def test_new_subscription_is_said_to_be_stored_once(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    first = broker.client_subscribes("client", "s", parse_filter("x = 1"))
    again = broker.client_subscribes("client", "s", parse_filter("x = 1"), epoch=7)
    assert [effect for effect in first if isinstance(effect, Stored)] == [Stored("s", B0)]
    assert not any(isinstance(effect, Stored) for effect in again)


@each_algorithm
def test_every_broker_says_once_that_it_has_stored_a_subscription(algorithm: Algorithm):
    network = Network(CHAIN, algorithm)
    effects = network.brokers[B0].client_subscribes("client", "s", parse_filter("x = 1"))
    network.carry_out(B0, effects)
    network.settle()
    stored = [
        (step.broker, effect)
        for step in network.steps
        for effect in step.effects
        if isinstance(effect, Stored)
    ]
    assert sorted(stored) == [(each, Stored("s", B0)) for each in CHAIN.brokers if each != B0]


@pytest.mark.parametrize(
    ("algorithm", "spoken"),
    [
        (Algorithm.SNR, {Subscribe, Unsubscribe, TableSnapshot}),
        (Algorithm.DNR, {Subscribe, Unsubscribe, TableSnapshot}),
        (Algorithm.BID, {Flooded, HostState, HostVersions, Refresh}),
    ],
)
def test_algorithm_says_which_messages_it_speaks(algorithm: Algorithm, spoken: set[type]):
    broker = Broker(B0, CHAIN, algorithm)
    subscription = Subscription("s", parse_filter("x = 1"))
    messages = [
        Subscribe(subscription, ClusterBitVector(1), A0),
        Unsubscribe("s"),
        TableSnapshot(()),
        Flooded(A0, 0, 1, subscription, None),
        HostState(A0, 1, 0, ()),
        HostVersions({}),
        Refresh(A0, 0),
        NotificationMessage(ONE),
    ]
    assert {type(each) for each in messages if broker.speaks(each)} == {
        NotificationMessage,
        *spoken,
    }


@each_algorithm
def test_fresh_broker_has_unheard_neighbours_until_each_has_brought_it_up_to_date(
    algorithm: Algorithm,
):
    network = Network(CHAIN, algorithm)
    network.subscribe(A0, "client", "s", "x = 1")
    network.settle()
    assert network.brokers[B0].unheard == []
    network.restart(B0)
    neighbours = CHAIN.neighbours(B0)
    assert network.brokers[B0].unheard == sorted(neighbours)
    for neighbour in neighbours[:-1]:
        network.restore(B0, neighbour)
    network.settle()
    # Under target routing any neighbour that lacks nothing knows everything.
    expected = [] if algorithm is Algorithm.TNR else [neighbours[-1]]
    assert network.brokers[B0].unheard == expected
    network.restore(B0, neighbours[-1])
    network.settle()
    assert network.brokers[B0].unheard == []
    assert network.brokers[B0].table.get("s") is not None


def test_fresh_broker_under_bid_waits_for_the_floods_that_neighbours_spoke_of():
    broker = Broker(B0, CHAIN, Algorithm.BID, links_up=False)
    for neighbour in CHAIN.neighbours(B0):
        broker.link_up(neighbour)
        broker.messages_arrived(neighbour, [HostVersions({C0: (2, 5, 0)})])
    assert broker.unheard == [C0]
    broker.messages_arrived(C0, [HostState(C0, 3, 5, ())])
    assert broker.unheard == []


def test_what_is_planned_by_the_length_of_queues_comes_in_small_batches():
    pending = NotificationMessage(ONE, ClusterBitVector.of([1]))
    dynamic = Broker(B0, CHAIN, Algorithm.DNR, congestion_threshold=7.5)
    assert dynamic.batch_max == 7
    assert dynamic.batch_size([NotificationMessage(ONE)] * 99) == 99
    assert dynamic.batch_size([NotificationMessage(ONE), pending]) == 7
    assert Broker(B0, CHAIN, Algorithm.SNR).batch_max > 1_000_000


@each_algorithm
def test_ending_what_was_never_subscribed_is_refused(algorithm: Algorithm):
    with pytest.raises(InvalidSubscription) as refused:
        Broker(B0, CHAIN, algorithm).client_unsubscribes("client", "s")
    assert str(refused.value) == "there is no subscription 's' to end"
    assert refused.value.subscription == "s"


@each_algorithm
def test_ending_the_subscription_of_another_is_refused(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    broker.client_subscribes("client", "s", parse_filter("x = 1"))
    with pytest.raises(InvalidSubscription):
        broker.client_unsubscribes("other", "s")
    assert broker.table.get("s") is not None


@each_algorithm
@pytest.mark.parametrize("asked_at", [A0, B1])
def test_another_filter_under_one_id_is_refused_at_every_broker(
    algorithm: Algorithm, asked_at: object
):
    network = Network(CHAIN, algorithm)
    network.subscribe(A0, "client", "s", "x = 1")
    network.settle()
    sent = len(network.sent)
    network.subscribe(asked_at, "client", "s", "x = 2")
    (error,) = network.errors
    assert isinstance(error, InvalidSubscription)
    assert "'s' asks for something else already" in str(error)
    assert len(network.sent) == sent
    for broker in network.brokers.values():
        assert [entry.subscription.filter for entry in broker.table] == [parse_filter("x = 1")]


@each_algorithm
def test_id_of_another_client_is_refused(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    broker.client_subscribes("client", "s", parse_filter("x = 1"))
    with pytest.raises(InvalidSubscription, match="is another's"):
        broker.client_subscribes("other", "s", parse_filter("x = 1"))


@each_algorithm
@pytest.mark.parametrize("epochs", [(None, None), (3, 3), (3, None), (3, 2)])
def test_asking_twice_is_accepted_and_sends_nothing(
    algorithm: Algorithm, epochs: tuple[int | None, int | None]
):
    broker = Broker(B0, CHAIN, algorithm)
    assert enqueued(broker.client_subscribes("client", "s", parse_filter("x = 1"), epochs[0]))
    again = broker.client_subscribes("client", "s", parse_filter("x=1"), epochs[1])
    assert again == []


@each_algorithm
def test_asking_again_under_a_higher_number_is_told_to_all(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    broker.client_subscribes("client", "s", parse_filter("x = 1"), epoch=3)
    again = broker.client_subscribes("client", "s", parse_filter("x = 1"), epoch=4)
    assert set(enqueued(again)) == set(CHAIN.neighbours(B0))
    assert broker.table.get("s").subscription.epoch == 4


@each_algorithm
def test_leaving_ends_all_subscriptions_of_the_client_and_no_other(algorithm: Algorithm):
    network = Network(CHAIN, algorithm)
    for client, identity in (("one", "s"), ("other", "t"), ("one", "u")):
        network.subscribe(B0, client, identity, "x = 1")
    network.settle()
    network.leave(B0, "one")
    network.settle()
    for broker in network.brokers.values():
        assert [entry.subscription.id for entry in broker.table] == ["t"]
    assert network.brokers[B0].client_leaves("one") == []
    assert network.brokers[B0].client_leaves("stranger") == []


@each_algorithm
def test_client_with_several_matches_gets_one_copy_that_names_them(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    for identity in ("s", "t"):
        broker.client_subscribes("client", identity, parse_filter("x = 1"))
    effects = broker.client_publishes([TWO, ONE])
    delivered = [effect for effect in effects if isinstance(effect, Deliver)]
    assert delivered == [Deliver("client", ONE, ["s", "t"])]
    assert broker.counters.deliveries == 2


@pytest.mark.parametrize("algorithm", [a for a in Algorithm if a is not Algorithm.TNR])
def test_message_to_a_link_that_is_down_is_lost_and_counted(algorithm: Algorithm):
    network = Network(CHAIN, algorithm)
    network.subscribe(C0, "client", "s", "x > 0")
    network.settle()
    way = network.brokers[B0].table.get("s").last_hop
    network.cut(B0, way)
    assert enqueued(network.brokers[B0].client_publishes([ONE, TWO])) == {}
    assert network.brokers[B0].counters.lost_on_down_links == 2


@each_algorithm
def test_broker_made_with_links_down_sends_nothing_until_they_are_up(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm, links_up=False)
    assert enqueued(broker.client_subscribes("client", "s", parse_filter("x = 1"))) == {}
    assert set(enqueued(broker.link_up(A0))) == {A0}


@each_algorithm
def test_link_that_goes_down_forgets_its_queue(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    broker.client_subscribes("client", "s", parse_filter("x = 1"))
    assert broker.link_status[A0].queue_length == 1
    broker.link_down(A0)
    assert broker.link_status[A0].queue_length == 0


@each_algorithm
def test_messages_that_leave_and_windows_are_counted(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    for identity in "stu":
        broker.client_subscribes("client", identity, parse_filter("x = 1"))
    broker.messages_left(A0, 2)
    status = broker.link_status[A0]
    status.roll(50_000_000)
    assert (status.queue_length, status.q_in, status.q_out) == (1, 3, 2)


@each_algorithm
def test_messages_that_a_full_queue_drops_did_not_leave(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    for identity in "stu":
        broker.client_subscribes("client", identity, parse_filter("x = 1"))
    broker.messages_dropped(A0, 2)
    status = broker.link_status[A0]
    status.roll(50_000_000)
    assert (status.queue_length, status.q_in, status.q_out) == (1, 3, 0)


@each_algorithm
def test_batch_is_routed_as_its_members_would_be_one_by_one(algorithm: Algorithm):
    batched, single = Network(CHAIN, algorithm), Network(CHAIN, algorithm)
    for network in (batched, single):
        for number, place in enumerate(CHAIN.brokers):
            network.subscribe(place, "client", f"s{number}", f"x >= {number % 3}")
        network.settle()
    notifications = [ONE, TWO, ONE, TWO, TWO]
    together = enqueued(batched.brokers[B0].client_publishes(notifications))
    apart: dict[object, list[object]] = {}
    for notification in notifications:
        effects = single.brokers[B0].client_publishes([notification])
        for link, messages in enqueued(effects).items():
            apart.setdefault(link, []).extend(messages)
    assert together == apart
    one, other = batched.brokers[B0], single.brokers[B0]
    assert one.counters == other.counters
    for link in CHAIN.neighbours(B0):
        assert one.link_status[link].queue_length == other.link_status[link].queue_length
        assert one.link_status[link].entering == other.link_status[link].entering


def test_messages_of_a_batch_keep_their_order_across_kinds():
    network = Network(CHAIN, Algorithm.SNR)
    network.subscribe(A0, "client", "early", "x = 1")
    network.settle()
    network.publish(C0, ONE)
    network.subscribe(C0, "client", "late", "x = 1")
    network.publish(C0, ONE)
    network.step((C0, B0), count=3)
    kinds = [type(message).__name__ for message in network.messages((B0, A0))]
    assert kinds == ["NotificationMessage", "Subscribe", "NotificationMessage"]


SCRIPT = """
from random import Random
from octopis.core.routing import Algorithm
from support.scenarios import play, random_scenario
for algorithm in Algorithm:
    for seed in range(5):
        network = play(random_scenario(Random(seed)), algorithm)
        print(*network.sent, *network.delivered, sep="\\n")
        print(*(broker.counters for broker in network.brokers.values()), sep="\\n")
"""


def test_same_calls_give_the_same_effects_whatever_the_hash_seed():
    outputs = set()
    for seed in ("1", "2"):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(Path(next(iter(support.__path__))).parent),
        }
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, check=True
        )
        outputs.add(ran.stdout)
    (output,) = outputs
    assert output.count(b"NotificationMessage") > 100


@each_algorithm
def test_what_goes_to_local_clients_alone_is_delivered_in_parts_too(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    broker.client_subscribes("client", "s", parse_filter("x = 1"))
    parts = list(broker.publishes_in_parts([ONE, TWO]))
    assert [each for part in parts for each in part] == [Deliver("client", ONE, ["s"])]


@each_algorithm
def test_fast_index_is_the_default(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    broker.table.local_matches([])  # with TNR, that index is made when it is first asked
    assert isinstance(broker.table._local_index, BitsetIndex)
    assert isinstance(broker.table._remote_index, BitsetIndex)
