import pytest

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing import Algorithm, Broker, NotificationMessage, Reason
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from support.network import Network
from support.overlays import A0, B0, B1, B2, C0, CHAIN, ONE, TWO, enqueued

FREE, FULL = 0, 11
Queues = dict[BrokerId, int]


def broker_at_b0(*wanted_at: BrokerId) -> Broker:
    """Return B0 of a network in which somebody at each of these brokers wants x = 1."""
    network = Network(CHAIN, Algorithm.DNR)
    for place in wanted_at:
        network.subscribe(place, "client", f"at {place}", "x = 1")
    network.settle()
    return network.brokers[B0]


def set_queues(broker: Broker, queues: Queues) -> None:
    for link, length in queues.items():
        broker.link_status[link].queue_length = length


def carried(sent: dict[BrokerId, list[NotificationMessage]]) -> dict[BrokerId, str]:
    """Return the CBV_p on each link, as the paper writes it."""
    return {link: copy.cbv_p.bits(3) for link, (copy,) in sent.items()}


@pytest.mark.parametrize(
    ("queues", "copies"),
    [
        # nothing overloaded: a plain copy everywhere
        ({}, {A0: "000", C0: "000", B1: "000", B2: "000"}),
        # case I: the free iCOL takes the other cluster along
        ({B1: FULL}, {A0: "000", C0: "000", B2: "010"}),
        ({B2: FULL}, {A0: "000", C0: "000", B1: "100"}),
        # case II: the aCOL with the shortest queue takes both, no iCOL gets a copy
        ({B1: FULL, B2: FULL, A0: 3}, {A0: "000", C0: "110"}),
        ({B1: FULL, B2: FULL, C0: 3}, {A0: "110", C0: "000"}),
        # ... and the region label settles ties
        ({B1: FULL, B2: FULL}, {A0: "110", C0: "000"}),
        # case III: the least loaded iCOL gets one more copy
        (
            {B1: FULL + 1, B2: FULL, A0: FULL, C0: FULL},
            {A0: "000", C0: "000", B2: "010"},
        ),
        # ... and the cluster index settles ties
        ({B1: FULL, B2: FULL, A0: FULL, C0: FULL}, {A0: "000", C0: "000", B1: "100"}),
    ],
)
def test_publishers_host_follows_the_cases(queues: Queues, copies: dict[BrokerId, str]):
    broker = broker_at_b0(A0, C0, B1, B2)
    set_queues(broker, dict.fromkeys(CHAIN.neighbours(B0), FREE) | queues)
    sent = enqueued(broker.client_publishes([ONE]))
    assert carried(sent) == copies


def test_least_loaded_acol_that_is_overloaded_counts_as_none():
    # The shorter queue is the congested one: it grew fast in the last window.
    broker = broker_at_b0(A0, C0, B1)
    set_queues(broker, {B1: FULL, A0: 2, C0: 3})
    broker.link_status[A0].finish_window(20, 0)
    assert broker.link_status[A0].is_overloaded
    assert not broker.link_status[C0].is_overloaded
    sent = enqueued(broker.client_publishes([ONE]))
    assert carried(sent) == {A0: "000", C0: "000", B1: "000"}


@pytest.mark.parametrize(
    ("down", "queues", "copies"),
    [
        # the only free iCOL is down: an aCOL carries instead
        ([B2], {B1: FULL, A0: 3}, {A0: "000", C0: "010"}),
        # ... and not one that is down
        ([B2, C0], {B1: FULL, A0: 3}, {A0: "010"}),
        # nothing else is left: the overloaded iCOL gets its copy
        ([B2, A0, C0], {B1: FULL}, {B1: "000"}),
    ],
)
def test_link_that_is_down_never_carries_pending_clusters(
    down: list[BrokerId], queues: Queues, copies: dict[BrokerId, str]
):
    broker = broker_at_b0(A0, C0, B1, B2)
    for link in down:
        broker.link_down(link)
    set_queues(broker, queues)
    sent = enqueued(broker.client_publishes([ONE]))
    assert carried(sent) == copies
    assert broker.counters.lost_on_down_links == len(down)


def test_free_icol_with_the_shortest_queue_carries_and_ties_go_to_the_lowest_cluster():
    complete = ConnectivityFactor.complete(4)
    scot = SCOT(AcyclicFactor.single("a"), complete)
    for lengths, carrier in (((2, 1), 2), ((1, 2), 1), ((1, 1), 1)):
        network = Network(scot, Algorithm.DNR)
        for place in scot.brokers[1:]:
            network.subscribe(place, "client", f"at {place}", "x = 1")
        network.settle()
        broker = network.brokers[A0]
        set_queues(broker, dict(zip(scot.brokers[1:], (*lengths, FULL), strict=True)))
        sent = enqueued(broker.client_publishes([ONE]))
        carrying = [link.cluster for link, (copy,) in sent.items() if copy.cbv_p]
        assert carrying == [carrier]


def test_pending_clusters_are_served_even_where_no_match_is_known():
    broker = broker_at_b0()
    arrived = NotificationMessage(ONE, ClusterBitVector(0b110))
    assert carried(enqueued(broker.messages_arrived(A0, [arrived]))) == {B1: "000", B2: "000"}


def test_icol_with_a_match_is_no_target_away_from_the_publishers_host():
    broker = broker_at_b0(B1, B2)
    arrived = NotificationMessage(ONE, ClusterBitVector(0b100))
    assert carried(enqueued(broker.messages_arrived(A0, [arrived]))) == {B2: "000"}
    assert broker.messages_arrived(A0, [NotificationMessage(ONE)]) == []


def test_pending_cluster_that_still_cannot_be_reached_goes_on_along_the_tree():
    broker = broker_at_b0(C0)
    set_queues(broker, {B2: FULL})
    arrived = NotificationMessage(ONE, ClusterBitVector(0b100))
    assert carried(enqueued(broker.messages_arrived(A0, [arrived]))) == {C0: "100"}


def test_sender_is_no_way_out_for_pending_clusters():
    broker = broker_at_b0(A0)
    set_queues(broker, {B2: FULL})
    arrived = NotificationMessage(ONE, ClusterBitVector(0b100))
    assert carried(enqueued(broker.messages_arrived(A0, [arrived]))) == {B2: "000"}


def test_empty_cbv_p_is_not_carried():
    broker = broker_at_b0(B1)
    set_queues(broker, {B1: FULL})
    effects = broker.client_publishes([ONE])
    assert enqueued(effects) == {B1: [NotificationMessage(ONE)]}
    assert effects[-1].reasons == [Reason.CASE_III]


def test_cases_are_counted():
    broker = broker_at_b0(A0, B1, B2)
    for queues in ({}, {B1: FULL}, {B2: FULL}, {B1: FULL, B2: FULL}):
        set_queues(broker, dict.fromkeys(CHAIN.neighbours(B0), FREE) | queues)
        broker.client_publishes([ONE])
    set_queues(broker, dict.fromkeys(CHAIN.neighbours(B0), FULL))
    broker.client_publishes([ONE])
    assert broker.counters.cases == {"I": 2, "II": 1, "III": 1}


def test_batch_that_fills_a_queue_is_routed_as_one_by_one():
    together, apart = broker_at_b0(A0, B1, B2), broker_at_b0(A0, B1, B2)
    notifications = [ONE, TWO] * 15
    one = enqueued(together.client_publishes(notifications))
    other: dict[BrokerId, list[NotificationMessage]] = {}
    for notification in notifications:
        effects = apart.client_publishes([notification])
        for link, messages in enqueued(effects).items():
            other.setdefault(link, []).extend(messages)
    assert one == other
    assert together.counters == apart.counters
    assert together.counters.cases == {"III": 4}  # the first 11 fill every queue
