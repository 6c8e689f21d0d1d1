"""The laws of how subscriptions spread under target routing, each a function of a seed.

`make` makes the brokers, maybe with a fault.
"""

from collections.abc import Callable
from random import Random

from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm, Broker
from octopis.core.topology import SCOT
from support.network import Network
from support.scenarios import random_overlay

Rows = set[tuple[str, int, BrokerId]]


class Trial:
    """An overlay under target routing, with clients that subscribe, unsubscribe and move."""

    def __init__(self, seed: int, make: Callable[..., Broker] = Broker) -> None:
        self.random = Random(seed)  # noqa: S311 - repeatable on purpose
        self.scot = random_overlay(self.random, (1, 7), (1, 5))
        threshold = self.random.choice((1, 2, 1e9))
        self.network = Network(self.scot, Algorithm.TNR, make, congestion_threshold=threshold)
        self.homes: dict[str, BrokerId] = {}
        self.moves: dict[str, int] = {}
        self.old_homes: set[tuple[BrokerId, str]] = set()

    def settle(self) -> None:
        self.network.settle(self.random, 200_000, 3)

    def arrive(self, most: int = 6) -> None:
        """Let a few messages arrive."""
        for _ in range(self.random.randint(0, most)):
            if self.network.queues:
                way = self.random.choice(list(self.network.queues))
                self.network.step(way, self.random.randint(1, 3))

    def change(self, brokers: list[BrokerId], count: int) -> None:
        """Let clients of these brokers subscribe, unsubscribe and move."""
        for _ in range(count):
            here = [each for each, home in self.homes.items() if home in brokers]
            choice = self.random.random()
            if here and choice < 0.2:
                gone = self.random.choice(here)
                self.network.unsubscribe(self.homes.pop(gone), gone, gone)
            elif self.homes and choice < 0.4:  # also away from a broker that is dead
                self.subscribe(self.random.choice(list(self.homes)), self.random.choice(brokers))
            else:
                self.subscribe(f"s{len(self.moves)}", self.random.choice(brokers))
            assert not self.network.errors
            self.arrive(3)

    def subscribe(self, identity: str, broker: BrokerId) -> None:
        self.moves[identity] = self.moves.get(identity, -1) + 1
        self.network.subscribe(broker, identity, identity, "x = 1", self.moves[identity])
        if identity in self.homes:
            self.old_homes.add((self.homes[identity], identity))
        self.old_homes.discard((broker, identity))
        self.homes[identity] = broker

    def notice_who_has_gone(self) -> None:
        """Let brokers notice that clients which moved are not there any more."""
        for broker, identity in sorted(self.old_homes):
            self.network.leave(broker, identity)
        self.old_homes.clear()

    def wanted(self, hosts: set[BrokerId]) -> Rows:
        return {
            (each, self.moves[each], home) for each, home in self.homes.items() if home in hosts
        }

    def table(self, broker: BrokerId) -> Rows:
        return {
            (each.subscription.id, each.subscription.epoch, each.host)
            for each in self.network.brokers[broker].table
        }

    def check_tables(self, brokers: list[BrokerId], wanted: Rows) -> None:
        for each in brokers:
            assert self.table(each) == wanted, each

    def check_deliveries(self, living: list[BrokerId]) -> None:
        """What is published reaches the clients of living brokers, each once."""
        self.network.delivered.clear()
        source = self.random.choice(living)
        self.network.publish(source, *(Notification({"x": 1, "k": k}) for k in range(3)))
        self.settle()
        got = sorted(
            (each.client, each.notification.attributes["k"]) for each in self.network.delivered
        )
        homes = self.homes.items()
        assert got == sorted((c, k) for c, home in homes if home in living for k in range(3))

    def die(self, broker: BrokerId) -> None:
        for neighbour in self.scot.neighbours(broker):
            if (broker, neighbour) not in self.network.down:
                self.network.cut(broker, neighbour, unsent=self.random.random() < 0.5)

    def restore(self, share: float = 1.0) -> None:
        for one, other in sorted(self.network.down):
            if (one, other) in self.network.down and self.random.random() < share:
                self.network.restore(one, other)

    def compare(self, rounds: int) -> None:
        for _ in range(rounds):
            self.network.compare()
            self.settle()

    def parts(self) -> list[list[BrokerId]]:
        """Return the brokers in parts that are connected."""
        parts: list[list[BrokerId]] = []
        for broker in self.scot.brokers:
            if not any(broker in part for part in parts):
                parts.append(connected(self.scot, broker, self.network.down))
        return parts


def connected(scot: SCOT, start: BrokerId, down: set[tuple[BrokerId, BrokerId]]) -> list[BrokerId]:
    found = [start]
    for at in found:
        found += [
            each for each in scot.neighbours(at) if (at, each) not in down and each not in found
        ]
    return found


def tables_are_whole_while_some_are_dead_and_equal_when_they_are_back(
    seed: int, make: Callable[..., Broker] = Broker
) -> None:
    trial = Trial(seed, make)
    random, scot, network = trial.random, trial.scot, trial.network
    everybody = list(scot.brokers)
    trial.change(everybody, 8)
    trial.settle()
    trial.check_tables(everybody, trial.wanted(set(everybody)))
    dead = random.sample(
        everybody, min(len(everybody) - 1, random.randint(0, len(scot.clusters) - 1))
    )
    for each in dead:
        trial.die(each)
    living = [each for each in everybody if each not in dead]
    trial.settle()
    trial.change(living, 8)
    trial.settle()
    known = trial.table(living[0])
    trial.check_tables(living, known)
    assert {each for each in known if each[2] in living} == trial.wanted(set(living))
    trial.check_deliveries(living)
    restarted = {each for each in dead if random.random() < 0.7}
    for each in sorted(restarted):
        network.restart(each)
    trial.old_homes = {old for old in trial.old_homes if old[0] not in restarted}
    for identity in [each for each, home in trial.homes.items() if home in restarted]:
        del trial.homes[identity]
    for each in sorted(restarted):  # clients may be back before any neighbour is
        for _ in range(random.choice((0, 0, 1, 6))):
            trial.subscribe(f"s{len(trial.moves)}", each)
    trial.restore()
    trial.arrive(40)
    trial.notice_who_has_gone()
    trial.settle()
    trial.check_tables(everybody, trial.wanted(set(everybody)))
    assert not any(broker.unheard for broker in network.brokers.values())
    trial.check_deliveries(everybody)


def changes_lost_on_the_wire_are_repaired(seed: int, make: Callable[..., Broker] = Broker) -> None:
    trial = Trial(seed, make)
    random, scot, network = trial.random, trial.scot, trial.network
    links = [*scot.acols, *scot.icols]
    for _ in range(random.randint(1, 5)):
        trial.change(list(scot.brokers), random.randint(1, 4))
        trial.arrive()
        for link in random.sample(links, min(len(links), 2)):
            if (link.source, link.target) not in network.down:
                network.cut(link.source, link.target)
        if random.random() < 0.5:
            trial.restore(0.5)
    trial.restore(random.choice((0.5, 1.0)))
    trial.notice_who_has_gone()
    trial.settle()
    trial.compare(len(scot.regions) + 3)
    for part in trial.parts():
        trial.check_tables(part, trial.table(part[0]))
    if not network.down:
        trial.check_tables(list(scot.brokers), trial.wanted(set(scot.brokers)))
    sent = len(network.sent)
    trial.compare(2)
    assert len(network.sent) == sent, "brokers compare although nothing has changed"


def what_waits_on_a_broken_link_goes_another_way(
    seed: int, make: Callable[..., Broker] = Broker
) -> None:
    """Up to n - 2 links break, one by one, while changes and notifications are under way."""
    trial = Trial(seed, make)
    random, scot, network = trial.random, trial.scot, trial.network
    everybody = list(scot.brokers)
    trial.change(everybody, 8)
    trial.settle()
    links = random.sample(
        [*scot.acols, *scot.icols], max(0, min(len(scot.acols), len(scot.clusters) - 2))
    )
    asked = dict(trial.homes)
    notifications = [Notification({"x": 1, "k": k}) for k in range(6)]
    for each in notifications:
        network.publish(random.choice(everybody), each)
        trial.arrive(4)
        if links and random.random() < 0.7:
            link = links.pop()
            network.cut(link.source, link.target, unsent=True)
    new = [f"n{number}" for number in range(4)]
    for each in new:
        trial.subscribe(each, random.choice(everybody))
        trial.arrive(4)
        if links:
            link = links.pop()
            network.cut(link.source, link.target, unsent=True)
    trial.settle()
    trial.check_tables(everybody, trial.wanted(set(everybody)))
    got = sorted((each.client, each.notification.attributes["k"]) for each in network.delivered)
    early = [(client, k) for client, k in got if client not in new]
    assert early == sorted((client, k) for client in asked for k in range(6))
    assert len(set(got)) == len(got), "a notification was delivered twice"
