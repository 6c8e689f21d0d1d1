from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing import Algorithm, Broker, Stored, Subscribe, Subscription, Unsubscribe
from octopis.core.routing.messages import TableSnapshot
from support.network import Network
from support.overlays import A0, A1, B0, B1, B2, C0, C1, CHAIN, enqueued

WANTED = parse_filter("x = 1")
IN_CLUSTER_0 = ClusterBitVector(0b001)


def message(host: BrokerId, identity: str = "s", epoch: int = 0) -> Subscribe:
    cbv_s = ClusterBitVector.of([host.cluster])
    return Subscribe(Subscription(identity, WANTED, epoch), cbv_s, host)


def test_host_tells_all_its_neighbours_and_names_its_own_cluster():
    effects = Broker(B0, CHAIN, Algorithm.SNR).client_subscribes("client", "s", WANTED)
    sent = enqueued(effects)
    assert set(sent) == {A0, C0, B1, B2}
    assert all(messages == [message(B0)] for messages in sent.values())
    assert message(B0).cbv_s == IN_CLUSTER_0


def test_broker_of_the_host_cluster_tells_all_but_the_sender():
    effects = Broker(B0, CHAIN, Algorithm.SNR).messages_arrived(A0, [message(A0)])
    assert enqueued(effects) == {link: [message(A0)] for link in (C0, B1, B2)}


def test_secondary_neighbour_does_not_forward_a_subscription():
    broker = Broker(B1, CHAIN, Algorithm.SNR)
    assert broker.messages_arrived(B0, [message(A0)]) == [Stored("s", A0)]
    entry = broker.table.get("s")
    assert (entry.last_hop, entry.cbv_s, entry.host) == (B0, IN_CLUSTER_0, A0)


def test_same_news_again_is_not_passed_on():
    broker = Broker(B0, CHAIN, Algorithm.SNR)
    broker.messages_arrived(A0, [message(A0)])
    assert broker.messages_arrived(A0, [message(A0)]) == []


def test_end_of_a_subscription_goes_the_same_ways():
    broker = Broker(B0, CHAIN, Algorithm.SNR)
    broker.messages_arrived(A0, [message(A0)])
    effects = broker.messages_arrived(A0, [Unsubscribe("s")])
    assert enqueued(effects) == {link: [Unsubscribe("s")] for link in (C0, B1, B2)}
    assert len(broker.table) == 0


def test_end_of_an_unknown_subscription_says_nothing():
    broker = Broker(B0, CHAIN, Algorithm.SNR)
    assert broker.messages_arrived(A0, [Unsubscribe("s")]) == []


def test_newer_news_of_a_moved_subscription_wins_in_any_order():
    for newest, oldest in ((A0, C0), (C0, A0)):
        for order in ([(oldest, 0), (newest, 1)], [(newest, 1), (oldest, 0)]):
            broker = Broker(B0, CHAIN, Algorithm.SNR)
            for host, epoch in order:
                broker.messages_arrived(host, [message(host, epoch=epoch)])
            assert broker.table.get("s").host == newest


def test_home_keeps_a_subscription_when_it_hears_older_news_of_it():
    broker = Broker(A0, CHAIN, Algorithm.SNR)
    broker.client_subscribes("client", "s", WANTED, epoch=2)
    assert broker.messages_arrived(B0, [message(C0, epoch=1)]) == []
    assert broker.table.get("s").host == A0
    assert enqueued(broker.client_leaves("client"))[A1] == [message(C0, epoch=1)]


def test_old_home_gives_the_subscription_up_when_it_hears_of_the_move():
    broker = Broker(A0, CHAIN, Algorithm.SNR)
    broker.client_subscribes("client", "s", WANTED)
    effects = broker.messages_arrived(B0, [message(C0, epoch=1)])
    assert enqueued(effects) == {
        B0: [Unsubscribe("s")],
        A1: [message(C0, epoch=1)],
        BrokerId("a", 2): [message(C0, epoch=1)],
    }
    assert broker.client_leaves("client") == []
    assert broker.table.get("s").last_hop == B0


def test_subscribing_again_after_the_end_gives_the_same_tree():
    network = Network(CHAIN, Algorithm.SNR)

    def last_hops() -> dict[BrokerId, BrokerId | None]:
        return {name: each.table.get("s").last_hop for name, each in network.brokers.items()}

    network.subscribe(C1, "client", "s", WANTED)
    network.settle()
    before = last_hops()
    network.unsubscribe(C1, "client", "s")
    network.settle()
    assert all(len(broker.table) == 0 for broker in network.brokers.values())
    network.subscribe(C1, "client", "s", WANTED)
    network.settle()
    assert last_hops() == before


def test_snapshot_holds_what_the_neighbour_must_know_and_no_more():
    broker = Broker(B0, CHAIN, Algorithm.SNR)
    broker.messages_arrived(A0, [message(A0, "from a")])
    broker.messages_arrived(C0, [message(C0, "from c")])
    broker.messages_arrived(B1, [message(B1, "secondary")])
    for link, known in ((A0, ["from c"]), (B1, ["from a", "from c"])):
        broker.link_down(link)
        (snapshot,) = enqueued(broker.link_up(link))[link]
        assert isinstance(snapshot, TableSnapshot)
        assert [each.subscription.id for each in snapshot.subscriptions] == known


def test_snapshot_takes_back_what_it_does_not_hold():
    broker = Broker(B0, CHAIN, Algorithm.SNR)
    broker.messages_arrived(A0, [message(A0, "old"), message(A0, "kept")])
    broker.messages_arrived(C0, [message(C0, "other")])
    effects = broker.messages_arrived(
        A0, [TableSnapshot((message(A0, "kept"), message(A0, "new")))]
    )
    assert sorted(entry.subscription.id for entry in broker.table) == ["kept", "new", "other"]
    assert enqueued(effects)[B1] == [Unsubscribe("old"), message(A0, "new")]
