import pytest

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Broker, Subscription
from octopis.core.routing.messages import Flooded, HostState, HostVersions, Refresh, Unsubscribe
from support.network import Network
from support.overlays import A0, B0, B1, B2, C0, CHAIN, ONE, enqueued

WANTED = parse_filter("x = 1")


def change(sequence: int, host: BrokerId = A0, generation: int = 0, epoch: int = 0) -> Flooded:
    subscription = Subscription(f"s{sequence}", WANTED, epoch)
    return Flooded(host, generation, sequence, subscription, None)


def state(generation: int, sequence: int, *ids: str, host: BrokerId = A0) -> HostState:
    subscriptions = tuple(Subscription(identity, WANTED) for identity in ids)
    return HostState(host, generation, sequence, subscriptions)


@pytest.fixture
def broker() -> Broker:
    return Broker(B0, CHAIN, Algorithm.BID)


def known(broker: Broker) -> list[str]:
    return sorted(entry.subscription.id for entry in broker.table)


def test_host_numbers_its_changes(broker: Broker):
    first = enqueued(broker.client_subscribes("client", "s1", WANTED))
    second = enqueued(broker.client_unsubscribes("client", "s1"))
    neighbours = CHAIN.neighbours(B0)
    assert first == {link: [change(1, host=B0)] for link in neighbours}
    assert second == {link: [Flooded(B0, 0, 2, None, "s1")] for link in neighbours}


def test_first_receipt_is_passed_to_all_but_the_sender(broker: Broker):
    sent = enqueued(broker.messages_arrived(A0, [change(1)]))
    assert sent == {link: [change(1)] for link in (C0, B1, B2)}


def test_later_copy_is_counted_and_dropped(broker: Broker):
    broker.messages_arrived(A0, [change(1)])
    assert broker.messages_arrived(B1, [change(1)]) == []
    assert broker.counters.duplicates == 1


def test_first_arrival_of_the_first_change_sets_the_way_for_all_later_ones(broker: Broker):
    broker.messages_arrived(B1, [change(1)])
    broker.messages_arrived(A0, [change(1), change(2)])
    assert broker._subscriptions.next_hop(A0) == B1
    assert {entry.last_hop for entry in broker.table} == {B1}


def test_missed_change_is_not_skipped_but_asked_for(broker: Broker):
    broker.messages_arrived(A0, [change(1)])
    assert enqueued(broker.messages_arrived(A0, [change(3)])) == {A0: [Refresh(A0, 0)]}
    assert known(broker) == ["s1"]


def test_new_generation_replaces_everything_and_makes_a_new_tree(broker: Broker):
    broker.messages_arrived(A0, [change(1), change(2)])
    sent = enqueued(broker.messages_arrived(B1, [state(1, 2, "s2", "s3")]))
    assert sent == {link: [state(1, 2, "s2", "s3")] for link in (A0, C0, B2)}
    assert known(broker) == ["s2", "s3"]
    assert broker._subscriptions.next_hop(A0) == B1
    assert broker.messages_arrived(A0, [state(1, 2, "s2", "s3")]) == []


def test_old_home_takes_its_subscription_back_everywhere_when_it_hears_of_the_move(broker: Broker):
    broker.client_subscribes("client", "s1", WANTED)
    sent = enqueued(broker.messages_arrived(A0, [change(1, epoch=1)]))
    assert sent[C0] == [change(1, epoch=1), Flooded(B0, 0, 2, None, "s1")]
    assert sent[A0] == [Flooded(B0, 0, 2, None, "s1")]
    assert broker.table.get("s1").host == A0
    assert broker.client_leaves("client") == []


def test_wish_of_a_neighbour_makes_the_host_flood_a_new_generation(broker: Broker):
    broker.client_subscribes("client", "s1", WANTED)
    sent = enqueued(broker.messages_arrived(A0, [Refresh(B0, 0)]))
    assert sent == {link: [state(1, 1, "s1", host=B0)] for link in CHAIN.neighbours(B0)}
    assert broker.messages_arrived(C0, [Refresh(B0, 0)]) == []  # it has been fulfilled


def test_wish_goes_towards_the_host_once(broker: Broker):
    broker.messages_arrived(A0, [change(1)])
    assert enqueued(broker.messages_arrived(C0, [Refresh(A0, 0)])) == {A0: [Refresh(A0, 0)]}
    assert broker.messages_arrived(B1, [Refresh(A0, 0)]) == []


def test_wish_waits_for_a_link_that_is_down(broker: Broker):
    broker.messages_arrived(A0, [change(1)])
    broker.link_down(A0)
    assert broker.messages_arrived(C0, [Refresh(A0, 0)]) == []
    assert enqueued(broker.link_up(A0))[A0][1:] == [Refresh(A0, 0)]


def test_wish_for_an_unknown_host_is_flooded_once(broker: Broker):
    sent = enqueued(broker.messages_arrived(C0, [Refresh(A0, 0)]))
    assert sent == {link: [Refresh(A0, 0)] for link in (A0, B1, B2)}
    assert broker.messages_arrived(B1, [Refresh(A0, 0)]) == []


def test_neighbour_that_knows_as_much_is_told_nothing_more(broker: Broker):
    broker.messages_arrived(A0, [change(1)])
    broker.link_down(C0)
    (hello,) = enqueued(broker.link_up(C0))[C0]
    assert isinstance(hello, HostVersions)
    other = Broker(C0, CHAIN, Algorithm.BID)
    other.messages_arrived(B0, [change(1)])
    assert other.messages_arrived(B0, [hello]) == []


def test_neighbour_that_knows_otherwise_under_the_same_numbers_sets_off_a_refresh(broker: Broker):
    broker.messages_arrived(A0, [change(1)])
    (hello,) = enqueued(Broker(C0, CHAIN, Algorithm.BID, links_up=False).link_up(B0))[B0]
    otherwise = HostVersions(hello.known | {A0: (0, 1, 12345)})
    assert enqueued(broker.messages_arrived(C0, [otherwise])) == {A0: [Refresh(A0, 0)]}


def test_neighbour_that_knows_less_sets_off_a_refresh(broker: Broker):
    broker.messages_arrived(A0, [change(1)])
    assert enqueued(broker.messages_arrived(C0, [HostVersions({})])) == {A0: [Refresh(A0, 0)]}


def test_host_that_was_restarted_goes_on_after_what_others_remember():
    broker = Broker(A0, CHAIN, Algorithm.BID)
    sent = enqueued(broker.messages_arrived(B0, [HostVersions({A0: (4, 7, 99)})]))
    assert sent[B0] == [state(5, 0)]


def test_message_of_another_protocol_is_a_fault_of_the_program(broker: Broker):
    with pytest.raises(AssertionError, match="not of this protocol"):
        broker.messages_arrived(A0, [Unsubscribe("s")])


def test_flood_costs_twice_the_links_less_the_first_arrivals():
    network = Network(CHAIN, Algorithm.BID)
    network.subscribe(B1, "client", "s", WANTED)
    network.settle()
    links = len(CHAIN.acols) + len(CHAIN.icols)
    assert len(network.sent) == 2 * links - len(CHAIN.brokers) + 1
    dropped = sum(broker.counters.duplicates for broker in network.brokers.values())
    assert dropped == len(network.sent) - (len(CHAIN.brokers) - 1)


def test_one_tree_serves_all_subscriptions_of_a_host():
    network = Network(CHAIN, Algorithm.BID)
    for identity in "st":
        network.subscribe(C0, "client", identity, WANTED)
        network.settle()
    for broker in network.brokers.values():
        assert len({entry.last_hop for entry in broker.table}) == 1
    network.publish(A0, ONE)
    network.settle()
    assert [each.subscriptions for each in network.delivered] == [("s", "t")]
