import os
import subprocess
import sys
from pathlib import Path

import pytest

import support
from octopis.core.filters import parse_filter
from octopis.core.matching import BitsetIndex
from octopis.core.routing import Algorithm, Answer, Broker, Deliver
from octopis.errors import InvalidFilter, InvalidSubscription
from support.network import Network
from support.overlays import A0, B0, B1, C0, CHAIN, ONE, TWO, enqueued

each_algorithm = pytest.mark.parametrize("algorithm", Algorithm)


@each_algorithm
def test_accepted_request_is_answered_under_its_number(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    requests = (
        broker.client_subscribes("client", 7, "s", "x = 1"),
        broker.client_publishes("client", 8, [TWO]),
        broker.client_unsubscribes("client", 9, "s"),
    )
    answers = [effects[0] for effects in requests]
    assert answers == [Answer("client", 7), Answer("client", 8), Answer("client", 9)]


def refusal(effects: list[object]) -> Exception:
    """Return the error of a request that did nothing but fail."""
    (answer,) = effects
    assert isinstance(answer, Answer)
    assert answer.error is not None
    return answer.error


@each_algorithm
def test_ending_what_was_never_subscribed_is_refused(algorithm: Algorithm):
    error = refusal(Broker(B0, CHAIN, algorithm).client_unsubscribes("client", 1, "s"))
    assert isinstance(error, InvalidSubscription)
    assert str(error) == "there is no subscription 's' to end"
    assert error.subscription == "s"


@each_algorithm
def test_ending_the_subscription_of_another_is_refused(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    broker.client_subscribes("client", 1, "s", "x = 1")
    assert isinstance(refusal(broker.client_unsubscribes("other", 1, "s")), InvalidSubscription)
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
    broker.client_subscribes("client", 1, "s", "x = 1")
    assert "is another's" in str(refusal(broker.client_subscribes("other", 1, "s", "x = 1")))


@each_algorithm
def test_invalid_filter_is_refused_with_its_place(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    error = refusal(broker.client_subscribes("client", 1, "s", "x = = 1"))
    assert isinstance(error, InvalidFilter)
    assert error.column == 5
    assert len(broker.table) == 0
    assert not isinstance(broker.client_unsubscribes("client", 2, "s")[0].error, InvalidFilter)


@each_algorithm
@pytest.mark.parametrize("epochs", [(None, None), (3, 3), (3, None), (3, 2)])
def test_asking_twice_is_accepted_and_sends_nothing(
    algorithm: Algorithm, epochs: tuple[int | None, int | None]
):
    broker = Broker(B0, CHAIN, algorithm)
    assert enqueued(broker.client_subscribes("client", 1, "s", "x = 1", epochs[0]))
    again = broker.client_subscribes("client", 2, "s", "x=1", epochs[1])
    assert again == [Answer("client", 2)]


@each_algorithm
def test_asking_again_under_a_higher_number_is_told_to_all(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    broker.client_subscribes("client", 1, "s", "x = 1", epoch=3)
    again = broker.client_subscribes("client", 2, "s", "x = 1", epoch=4)
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
        broker.client_subscribes("client", 1, identity, "x = 1")
    effects = broker.client_publishes("publisher", 1, [TWO, ONE])
    delivered = [effect for effect in effects if isinstance(effect, Deliver)]
    assert delivered == [Deliver("client", ONE, ["s", "t"])]
    assert broker.counters.deliveries == 2


@each_algorithm
def test_message_to_a_link_that_is_down_is_lost_and_counted(algorithm: Algorithm):
    network = Network(CHAIN, algorithm)
    network.subscribe(C0, "client", "s", "x > 0")
    network.settle()
    way = network.brokers[B0].table.get("s").last_hop
    network.cut(B0, way)
    assert enqueued(network.brokers[B0].client_publishes("publisher", 1, [ONE, TWO])) == {}
    assert network.brokers[B0].counters.lost_on_down_links == 2


@each_algorithm
def test_broker_made_with_links_down_sends_nothing_until_they_are_up(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm, links_up=False)
    assert broker.client_subscribes("client", 1, "s", "x = 1") == [Answer("client", 1)]
    assert set(enqueued(broker.link_up(A0))) == {A0}


@each_algorithm
def test_link_that_goes_down_forgets_its_queue(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    broker.client_subscribes("client", 1, "s", "x = 1")
    assert broker.link_status[A0].queue_length == 1
    broker.link_down(A0)
    assert broker.link_status[A0].queue_length == 0


@each_algorithm
def test_messages_that_leave_and_windows_are_counted(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    for identity in "stu":
        broker.client_subscribes("client", 1, identity, "x = 1")
    assert broker.messages_left(A0, 2) == []
    assert broker.window_elapsed() == []
    status = broker.link_status[A0]
    assert (status.queue_length, status.q_in, status.q_out) == (1, 3, 2)


@each_algorithm
def test_messages_that_a_full_queue_drops_did_not_leave(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    for identity in "stu":
        broker.client_subscribes("client", 1, identity, "x = 1")
    assert broker.messages_dropped(A0, 2) == []
    broker.window_elapsed()
    status = broker.link_status[A0]
    assert (status.queue_length, status.q_in, status.q_out) == (1, 3, 0)


@each_algorithm
def test_batch_is_routed_as_its_members_would_be_one_by_one(algorithm: Algorithm):
    batched, single = Network(CHAIN, algorithm), Network(CHAIN, algorithm)
    for network in (batched, single):
        for number, place in enumerate(CHAIN.brokers):
            network.subscribe(place, "client", f"s{number}", f"x >= {number % 3}")
        network.settle()
    notifications = [ONE, TWO, ONE, TWO, TWO]
    together = enqueued(batched.brokers[B0].client_publishes("publisher", 1, notifications))
    apart: dict[object, list[object]] = {}
    for notification in notifications:
        effects = single.brokers[B0].client_publishes("publisher", 1, [notification])
        for link, messages in enqueued(effects).items():
            apart.setdefault(link, []).extend(messages)
    assert together == apart
    one, other = batched.brokers[B0], single.brokers[B0]
    assert one.counters == other.counters
    for link in CHAIN.neighbours(B0):
        assert one.link_status[link] == other.link_status[link]


def test_messages_of_a_batch_keep_their_order_across_kinds():
    network = Network(CHAIN, Algorithm.SNR)
    network.subscribe(A0, "client", "early", "x = 1")
    network.settle()
    network.publish(C0, ONE)
    network.subscribe(C0, "client", "late", "x = 1")
    network.publish(C0, ONE)
    network.step((C0, B0), count=3)
    kinds = [type(message).__name__ for message in network.queues[B0, A0]]
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
def test_fast_index_is_the_default(algorithm: Algorithm):
    broker = Broker(B0, CHAIN, algorithm)
    assert isinstance(broker.table._local_index, BitsetIndex)
