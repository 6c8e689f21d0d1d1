"""Figure 1: BID-based routing on a cyclic overlay of six brokers, with the issues of section 2.

1 - 2 - 3      The overlay happens to be a SCOT, of three regions and two clusters; BID does not
|   |   |      use that. Subscription trees are forced by the order in which messages arrive,
4 - 5 - 6      as load would.
"""

import pytest

from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm, NotificationMessage
from octopis.core.routing.messages import Flooded, Subscribe
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from support.network import Network

OVERLAY = SCOT(
    AcyclicFactor.from_edges([("R1", "R2"), ("R2", "R3")]), ConnectivityFactor.complete(2)
)
NUMBERED = {
    number: BrokerId(f"R{1 + (number - 1) % 3}", (number - 1) // 3) for number in range(1, 7)
}
NUMBERS = {broker: number for number, broker in NUMBERED.items()}
HOSTS = {"S1": 4, "S2": 3, "S3": 5}

S1_TREE = "4>5 4>1 5>6 1>2 2>3"
S2_SHORTEST_TREE = "3>2 2>1 3>6 6>5 5>4"
S2_LONG_TREE = "3>2 2>1 1>4 4>5 5>6"
S3_TREE = "5>2 5>6 5>4 6>3 4>1"


def arrows(text: str) -> set[tuple[int, int]]:
    return {(int(arrow[0]), int(arrow[2])) for arrow in text.split()}


def network_with(**trees: str) -> Network:
    """Return a network in which each subscription has spread along the arrows of its tree first."""
    network = Network(OVERLAY, Algorithm.BID)
    for name, tree in trees.items():
        network.subscribe(NUMBERED[HOSTS[name]], name, name, "TRUE")
        for arrow in tree.split():
            network.step((NUMBERED[int(arrow[0])], NUMBERED[int(arrow[2])]))
        network.settle()
        assert tree_of(network, name) == arrows(tree)
    return network


def tree_of(network: Network, name: str) -> set[tuple[int, int]]:
    entries = {broker: each.table.get(name) for broker, each in network.brokers.items()}
    return {
        (NUMBERS[entry.last_hop], NUMBERS[broker])
        for broker, entry in entries.items()
        if entry.last_hop is not None
    }


def published_by_p(network: Network) -> list[tuple[int, int, set[int]]]:
    """Publish at broker 6; return each link that is used, with the BIDs on it."""
    network.publish(NUMBERED[6], Notification({}))
    network.settle()
    return [
        (
            NUMBERS[sent.source],
            NUMBERS[sent.target],
            {NUMBERS[bid] for bid in network.scot.brokers_in(sent.message.targets)},
        )
        for sent in network.sent
        if isinstance(sent.message, NotificationMessage)
    ]


def depth(tree: set[tuple[int, int]], number: int) -> int:
    above = [source for source, target in tree if target == number]
    return 1 + depth(tree, above[0]) if above else 0


class TestOverlay:
    def test_seven_links_as_drawn(self):
        drawn = {frozenset(link) for link in arrows("5>4 6>5 3>6 2>3 1>2 4>1 5>2")}
        built = {
            frozenset((NUMBERS[source], NUMBERS[target]))
            for source, target, _ in OVERLAY.acols + OVERLAY.icols
        }
        assert built == drawn


class TestFigure1a:
    """Section 2, I2: despite BIDs, extra messages are needed to find duplicates."""

    @pytest.mark.parametrize(
        ("name", "tree", "late"), [("S1", S1_TREE, (2, 5)), ("S2", S2_SHORTEST_TREE, (1, 4))]
    )
    def test_second_copy_over_another_link_is_discarded(
        self, name: str, tree: str, late: tuple[int, int]
    ):
        network = network_with(**{name: tree})
        source, target = (NUMBERED[number] for number in late)
        assert network.links_used(Flooded)[source, target] == 1
        assert network.brokers[target].counters.duplicates >= 1

    def test_a_subscription_costs_all_links_twice_but_for_those_of_its_tree(self):
        network = network_with(S1=S1_TREE)
        assert len(network.sent) == 2 * 7 - 5

    def test_notification_goes_onto_6_3_and_6_5_and_never_in_a_loop(self):
        used = published_by_p(network_with(S1=S1_TREE, S2=S2_SHORTEST_TREE))
        assert sorted(used) == [(5, 4, {4}), (6, 3, {3}), (6, 5, {4})]


class TestFigure1b:
    """Section 2, I3: under load, a tree can be longer than need be."""

    def test_notification_for_s2_crosses_all_regions_and_comes_back(self):
        used = published_by_p(network_with(S2=S2_LONG_TREE))
        assert [link[:2] for link in used] == [(6, 5), (5, 4), (4, 1), (1, 2), (2, 3)]

    def test_the_long_tree_is_longer_than_the_shortest_one(self):
        assert depth(arrows(S2_LONG_TREE), 6) == 5
        assert depth(arrows(S2_SHORTEST_TREE), 6) == 1


class TestFigure1c:
    """The trees are as short as they can be, even if messages on 2-5 and 3-6 are late."""

    @pytest.mark.parametrize(("name", "tree"), [("S1", S1_TREE), ("S2", S2_SHORTEST_TREE)])
    def test_two_step_broadcast_gives_trees_of_these_lengths(self, name: str, tree: str):
        network = Network(OVERLAY, Algorithm.SNR)
        network.subscribe(NUMBERED[HOSTS[name]], name, name, "TRUE")
        late = [{NUMBERED[2], NUMBERED[5]}, {NUMBERED[3], NUMBERED[6]}]
        while busy := network.busy():
            network.step(min(busy, key=lambda link: (set(link) in late, link)))
        assert network.links_used(Subscribe).total() == 5
        built = tree_of(network, name)
        assert {n: depth(built, n) for n in NUMBERED} == {
            n: depth(arrows(tree), n) for n in NUMBERED
        }


class TestFigure1d:
    """Section 2, I4: the BIDs in a notification are split by next hop.

    Paper deviation: the solid arrows of S2 are drawn from 4 to 5 and from 5 to 6, so that broker 6
    would have two last hops and broker 4 none. They are read the other way, as in Figure 1(c); the
    text sends the copy for broker 3 onto the link from 6 to 3, too.
    """

    @pytest.fixture
    def network(self) -> Network:
        return network_with(S1=S1_TREE, S2=S2_SHORTEST_TREE, S3=S3_TREE)

    def test_m1_has_one_bid_and_m2_has_two(self, network: Network):
        from_host = {
            target: bids for source, target, bids in published_by_p(network) if source == 6
        }
        assert from_host == {3: {3}, 5: {4, 5}}

    def test_broker_5_strips_its_bid_and_broker_4_forwards_no_further(self, network: Network):
        used = published_by_p(network)
        assert [each for each in used if each[0] != 6] == [(5, 4, {4})]

    def test_each_subscriber_gets_one_copy(self, network: Network):
        published_by_p(network)
        reached = sorted((each.client, NUMBERS[each.broker]) for each in network.delivered)
        assert reached == [("S1", 4), ("S2", 3), ("S3", 5)]

    def test_only_the_host_looks_for_destinations(self, network: Network):
        for number in (3, 4, 5):
            del network.brokers[NUMBERED[number]].table._remote_index
        published_by_p(network)
        assert len(network.delivered) == 3
