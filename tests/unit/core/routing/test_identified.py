from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Deliver, NotificationMessage
from support.network import Network
from support.overlays import A0, B0, B1, C0, C1, CHAIN, ONE, TWO, enqueued


def bids(*hosts: BrokerId) -> int:
    return sum(map(CHAIN.bit, hosts))


def network_with(*hosts: BrokerId) -> Network:
    network = Network(CHAIN, Algorithm.BID)
    for host in hosts:
        network.subscribe(host, "client", f"at {host}", "x = 1")
        network.settle()
    return network


def test_publishers_host_writes_each_matching_host_once():
    network = network_with(C0, C1)
    network.subscribe(C0, "client", "second", "x > 0")
    network.settle()
    sent = enqueued(network.brokers[A0].client_publishes([ONE]))
    assert sum(copy.targets for (copy,) in sent.values()) == bids(C0, C1)


def test_broker_on_the_way_splits_by_next_hop_and_does_not_match():
    network = network_with(A0, C0)
    broker = network.brokers[B0]
    # It would not match: the ids alone decide.
    sent = enqueued(broker.messages_arrived(B1, [NotificationMessage(TWO, targets=bids(A0, C0))]))
    assert sent == {
        A0: [NotificationMessage(TWO, targets=bids(A0))],
        C0: [NotificationMessage(TWO, targets=bids(C0))],
    }


def test_host_matches_for_its_clients_and_strips_its_own_id():
    network = network_with(B0, C0)
    effects = network.brokers[B0].messages_arrived(
        A0, [NotificationMessage(ONE, targets=bids(B0, C0))]
    )
    assert [effect for effect in effects if isinstance(effect, Deliver)] == [
        Deliver("client", ONE, [f"at {B0}"])
    ]
    assert enqueued(effects) == {C0: [NotificationMessage(ONE, targets=bids(C0))]}
    assert network.brokers[B0].counters.lost_without_route == 0


def test_broker_that_is_not_named_delivers_to_nobody():
    network = network_with(B0, C0)
    effects = network.brokers[B0].messages_arrived(A0, [NotificationMessage(ONE, targets=bids(C0))])
    assert not any(isinstance(effect, Deliver) for effect in effects)


def test_copy_for_an_unknown_host_is_lost_and_counted():
    broker = network_with().brokers[B0]
    assert broker.messages_arrived(A0, [NotificationMessage(ONE, targets=bids(C0))]) == []
    assert broker.counters.lost_without_route == 1
