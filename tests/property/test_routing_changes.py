"""Subscriptions come, go and move while notifications travel: nothing is doubled or misdelivered.

Clients number their moves (`epoch`), as a client must that moves again before all have heard.
"""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.filters import Filter
from octopis.core.matching import BitsetIndex, LinearIndex
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm, Subscribe
from octopis.core.topology import SCOT
from support.network import Network
from support.scenarios import (
    FILTERS,
    Scenario,
    deliveries,
    random_notification,
    random_overlay,
    random_scenario,
    random_weather,
    step_at_random,
)

RANDOMS = st.randoms(use_true_random=False)
SEEDS = st.integers(0, 2**32 - 1)


class Churn:
    """A network in which some stay, and others come, go and move at random."""

    def __init__(self, stayers: Scenario, algorithm: Algorithm, random: Random) -> None:
        self.stayers, self.random = stayers, random
        self.scot = stayers.scot
        self.network = Network(
            self.scot,
            algorithm,
            weather=random_weather(random),
            index=random.choice((LinearIndex, LinearIndex, BitsetIndex)),
            congestion_threshold=3.0,
        )
        self.homes: dict[str, BrokerId] = {}
        self.filters: dict[str, Filter] = {}
        self.epochs: Counter[str] = Counter()
        self.old_homes: set[tuple[BrokerId, str]] = set()
        self.allowed: dict[tuple[BrokerId, str], list[Filter]] = {}
        self.published: list[Notification] = []

    def run(self) -> None:
        for each in self.stayers.subscribers:
            self.allowed[each.broker, each.identity] = [each.filter]
            self.network.subscribe(each.broker, each.client, each.identity, each.filter)
        self.network.settle(self.random)
        actions: tuple[Callable[[], None], ...] = (
            self.publish, self.publish, self.come, self.come_again, self.go, self.move,
            self.move, self.be_noticed_as_gone,
        )  # fmt: skip
        for _ in range(self.random.randint(1, 40)):
            self.random.choice(actions)()
            step_at_random(self.network, self.random, batch_max=3)
        while self.old_homes:
            self.be_noticed_as_gone()
        self.network.settle(self.random, batch_max=3)

    def publish(self) -> None:
        notification = random_notification(self.random, len(self.published))
        self.published.append(notification)
        self.network.publish(self.random.choice(self.scot.brokers), notification)

    def come(self) -> None:
        self.subscribe(
            f"m{len(self.epochs)}",
            self.random.choice(self.scot.brokers),
            self.random.choice(FILTERS),
        )

    def come_again(self) -> None:
        """Take up an ended subscription again, maybe elsewhere and with another filter."""
        ended = [identity for identity in self.epochs if identity not in self.homes]
        if ended:
            identity = self.random.choice(ended)
            target = self.random.choice(self.scot.brokers)
            wanted = self.random.choice((self.filters[identity], *FILTERS))
            self.subscribe(identity, target, wanted)

    def move(self) -> None:
        if self.homes:
            identity = self.random.choice(list(self.homes))
            old = self.homes[identity]
            elsewhere = self.random.choice((self.scot.cluster(old.cluster), self.scot.brokers))
            new = self.random.choice(elsewhere)
            if self.subscribe(identity, new, self.filters[identity]):
                self.old_homes |= {(old, identity)} - {(new, identity)}

    def go(self) -> None:
        if self.homes:
            identity = self.random.choice(list(self.homes))
            self.network.unsubscribe(self.homes.pop(identity), identity, identity)

    def be_noticed_as_gone(self) -> None:
        """Let a broker notice that a client has gone, maybe after it heard of the move."""
        if self.old_homes:
            broker, identity = self.random.choice(sorted(self.old_homes))
            self.old_homes.remove((broker, identity))
            self.network.leave(broker, identity)

    def subscribe(self, identity: str, broker: BrokerId, wanted: Filter) -> bool:
        """Ask for something, and tell whether the broker accepts it."""
        errors = len(self.network.errors)
        self.network.subscribe(broker, identity, identity, wanted, self.epochs[identity])
        if len(self.network.errors) > errors:
            # A broker that has not heard the end yet may still know another filter.
            asked = [filters for place, filters in self.allowed.items() if place[1] == identity]
            assert any(other != wanted for filters in asked for other in filters)
            return False
        self.epochs[identity] += 1
        self.homes[identity] = broker
        self.old_homes.discard((broker, identity))
        self.filters[identity] = wanted
        self.allowed.setdefault((broker, identity), []).append(wanted)
        return True

    def check_nothing_is_doubled_or_misdelivered(self) -> None:
        rows = deliveries(self.network)
        by_payload = {each.payload: each.attributes for each in self.published}
        assert len(set(rows)) == len(rows)
        for payload, broker, _, identity in rows:
            asked = self.allowed[broker, identity]
            assert any(wanted.matches(by_payload[payload]) for wanted in asked)

    def check_stayers_got_everything(self) -> None:
        stayers = {each.identity for each in self.stayers.subscribers}
        wanted = sorted(
            (notification.payload, each.broker, each.client, each.identity)
            for notification in self.published
            for each in self.stayers.subscribers
            if each.filter.matches(notification.attributes)
        )
        assert [row for row in deliveries(self.network) if row[3] in stayers] == wanted

    def check_tables_are_those_of_the_living(self) -> None:
        living = {each.identity: (each.broker, each.filter) for each in self.stayers.subscribers}
        living |= {name: (home, self.filters[name]) for name, home in self.homes.items()}
        for broker in self.network.brokers.values():
            found = {
                entry.subscription.id: (entry.host, entry.subscription.filter)
                for entry in broker.table
            }
            assert found == living


def churned(algorithm: Algorithm, random: Random, seed: int) -> Churn:
    scot = random_overlay(random, (1, 6), (1, 4))
    churn = Churn(random_scenario(random, scot), algorithm, Random(seed))  # noqa: S311
    churn.run()
    return churn


@pytest.mark.parametrize("algorithm", Algorithm)
@given(random=RANDOMS, seed=SEEDS)
@settings(max_examples=300, deadline=None)
def test_churn_doubles_nothing_and_takes_nothing_from_those_who_stay(
    algorithm: Algorithm, random: Random, seed: int
):
    churn = churned(algorithm, random, seed)
    churn.check_nothing_is_doubled_or_misdelivered()
    churn.check_stayers_got_everything()
    churn.check_tables_are_those_of_the_living()


def overlay_with_a_move(random: Random) -> tuple[SCOT, BrokerId, BrokerId]:
    scot = random_overlay(random, (2, 8), (2, 4))
    old, new = random.sample(scot.cluster(random.choice(scot.clusters)), 2)
    return scot, old, new


def last_hops(network: Network, identity: str, but: int) -> dict[BrokerId, BrokerId | None]:
    """Return the last hops of a subscription in all clusters but one."""
    found = {}
    for broker in network.scot.brokers:
        if broker.cluster != but:
            entry = network.brokers[broker].table.get(identity)
            assert entry is not None
            found[broker] = entry.last_hop
    return found


def drop_on_icols(network: Network) -> int:
    """Lose what waits on links between clusters, and return how much that was."""
    lost = 0
    for source, target in list(network.queues):
        if source.cluster != target.cluster:
            waiting = network.messages((source, target))
            del network.queues[source, target]
            assert all(isinstance(message, Subscribe) for message in waiting)
            network.brokers[source].messages_left(target, len(waiting))
            lost += len(waiting)
    return lost


@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_move_within_a_cluster_changes_only_the_host_label_in_other_clusters(seed: int):
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    scot, old, new = overlay_with_a_move(random)
    network = Network(scot, Algorithm.SNR)
    network.subscribe(old, "client", "s", "x = 1")
    network.settle(random)
    before = last_hops(network, "s", but=old.cluster)
    network.subscribe(new, "client", "s", "x = 1")
    network.settle(random)
    assert last_hops(network, "s", but=old.cluster) == before
    entries = [broker.table.get("s") for broker in network.brokers.values()]
    assert {entry.host for entry in entries} == {new}


@pytest.mark.parametrize("algorithm", [Algorithm.SNR, Algorithm.DNR])
@given(seed=SEEDS)
@settings(max_examples=60, deadline=None)
def test_move_within_a_cluster_needs_no_message_between_clusters(algorithm: Algorithm, seed: int):
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    scot, old, new = overlay_with_a_move(random)
    network = Network(scot, algorithm)
    network.subscribe(old, "client", "s", "x = 1")
    network.settle(random)
    before = last_hops(network, "s", but=old.cluster)
    network.subscribe(new, "client", "s", "x = 1")
    lost = drop_on_icols(network)
    while network.queues:
        network.step(random.choice(list(network.queues)))
        lost += drop_on_icols(network)
    assert lost >= len(scot.brokers) - len(scot.regions)
    assert last_hops(network, "s", but=old.cluster) == before
    for number, broker in enumerate(scot.brokers):
        network.publish(broker, Notification({"x": 1}, str(number).encode()))
    network.settle(random)
    payloads = sorted(str(number).encode() for number in range(len(scot.brokers)))
    assert deliveries(network) == [(payload, new, "client", "s") for payload in payloads]


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("leaves", [False, True])
def test_client_that_goes_there_and_back_before_anyone_hears_keeps_its_subscription(
    algorithm: Algorithm, leaves: bool
):
    scot = random_overlay(Random(1), (4, 4), (2, 2))  # noqa: S311 - repeatable on purpose
    here, there = scot.cluster(0)[0], scot.cluster(0)[3]
    network = Network(scot, algorithm)
    network.subscribe(here, "client", "s", "x = 1", epoch=0)
    network.settle()
    for epoch, (old, new) in enumerate([(here, there), (there, here)], start=1):
        if leaves:
            network.leave(old, "client")
        network.subscribe(new, "client", "s", "x = 1", epoch)
    network.settle()
    assert not network.errors
    for broker in network.brokers.values():
        assert [entry.host for entry in broker.table] == [here]


@pytest.mark.parametrize("algorithm", Algorithm)
def test_move_to_a_broker_that_has_heard_nothing_yet_is_the_newest_news(algorithm: Algorithm):
    scot = random_overlay(Random(1), (4, 4), (2, 2))  # noqa: S311 - repeatable on purpose
    for new, old in (scot.cluster(0)[::3], scot.cluster(0)[::-3]):
        network = Network(scot, algorithm)
        network.subscribe(old, "client", "s", "x = 1", epoch=0)
        network.settle()
        network.restart(new)
        network.subscribe(new, "client", "s", "x = 1", epoch=1)
        network.leave(old, "client")
        for neighbour in scot.neighbours(new):
            network.restore(new, neighbour)
        network.settle()
        for broker in network.brokers.values():
            assert [entry.host for entry in broker.table] == [new]


def test_late_request_of_a_client_that_has_moved_on_is_refused():
    scot = random_overlay(Random(1), (4, 4), (2, 2))  # noqa: S311 - repeatable on purpose
    here, there = scot.cluster(0)[0], scot.cluster(0)[3]
    network = Network(scot, Algorithm.SNR)
    network.subscribe(here, "client", "s", "x = 1", epoch=5)
    network.settle()
    sent = len(network.sent)
    network.subscribe(there, "client", "s", "x = 1", epoch=4)
    assert [str(error) for error in network.errors] == [
        f"the subscription 's' has moved on to {here}"
    ]
    assert len(network.sent) == sent
