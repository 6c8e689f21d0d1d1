"""Links break and brokers restart at random: in the end all tables are as if nothing had been."""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm
from support.faults import check_as_if_nothing_had_been, restore_everything
from support.network import Network
from support.scenarios import FILTERS, Subscriber, deliveries, random_overlay

SEEDS = st.integers(0, 2**32 - 1)
PLACES = st.integers(0, 10_000)
CLIENTS = st.sampled_from([f"s{number}" for number in range(5)])


EXAMPLES = {  # DNR spreads as SNR
    Algorithm.SNR: 500,
    Algorithm.DNR: 60,
    Algorithm.BID: 800,
    Algorithm.TNR: 250,
}


class Faults(RuleBasedStateMachine):
    """Clients subscribe, move and leave; links are cut and restored; brokers restart."""

    algorithm = Algorithm.SNR

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - repeatable on purpose
        self.scot = random_overlay(self.random, (1, 5), (1, 3))
        self.links = [(link.source, link.target) for link in (*self.scot.acols, *self.scot.icols)]
        self.network = Network(self.scot, self.algorithm)
        self.homes: dict[str, Subscriber] = {}
        self.epochs: dict[str, int] = {}
        self.old_homes: set[tuple[BrokerId, str]] = set()
        self.forgotten: dict[str, None] = {}
        self.published = 0

    def broker(self, place: int) -> BrokerId:
        return self.scot.brokers[place % len(self.scot.brokers)]

    def subscribe(self, identity: str, broker: BrokerId) -> None:
        # The filter is that of the id: another one under an id in use is an error.
        wanted = FILTERS[int(identity[1:])]
        self.epochs[identity] = self.epochs.get(identity, -1) + 1
        self.network.subscribe(broker, identity, identity, wanted, self.epochs[identity])
        assert not self.network.errors
        self.homes[identity] = Subscriber(broker, identity, identity, wanted)
        self.forgotten.pop(identity, None)
        self.old_homes.discard((broker, identity))

    @rule(identity=CLIENTS, place=PLACES)
    def client_subscribes_or_moves(self, identity: str, place: int) -> None:
        home = self.homes.get(identity)
        self.subscribe(identity, self.broker(place))
        if home is not None and home.broker != self.homes[identity].broker:
            self.old_homes.add((home.broker, identity))

    @rule(identity=CLIENTS)
    def client_unsubscribes(self, identity: str) -> None:
        home = self.homes.get(identity)
        if home is not None and identity not in self.forgotten:
            self.network.unsubscribe(home.broker, identity, identity)
            assert not self.network.errors
            del self.homes[identity]

    @precondition(lambda self: self.old_homes)
    @rule()
    def old_home_notices_that_a_client_is_gone(self) -> None:
        broker, identity = self.random.choice(sorted(self.old_homes))
        self.old_homes.remove((broker, identity))
        self.network.leave(broker, identity)

    @rule(count=st.integers(1, 40))
    def messages_arrive(self, count: int) -> None:
        for _ in range(count):
            if self.network.queues:
                link = self.random.choice(list(self.network.queues))
                self.network.step(link, self.random.randint(1, 3))

    @rule()
    def everything_arrives(self) -> None:
        self.network.settle(self.random)

    @rule(place=PLACES)
    def link_breaks(self, place: int) -> None:
        if self.links:
            link = self.links[place % len(self.links)]
            if link not in self.network.down:
                self.network.cut(*link)

    @rule(place=PLACES)
    def link_comes_back(self, place: int) -> None:
        down = sorted(self.network.down)
        if down:
            self.network.restore(*down[place % len(down)])

    @rule(place=PLACES, at_once=st.booleans(), up=st.booleans())
    def broker_restarts(self, place: int, at_once: bool, up: bool) -> None:
        broker = self.broker(place)
        self.network.restart(broker)
        self.old_homes = {(old, name) for old, name in self.old_homes if old != broker}
        for identity, home in self.homes.items():
            if home.broker == broker:
                self.forgotten[identity] = None
        if at_once:
            self.clients_come_back()
        if up:
            for neighbour in self.scot.neighbours(broker):
                self.network.restore(broker, neighbour)

    @rule()
    def clients_come_back(self) -> None:
        for identity in list(self.forgotten):
            self.subscribe(identity, self.homes[identity].broker)

    @rule(place=PLACES)
    def notification_is_published(self, place: int) -> None:
        self.published += 1
        payload = f"early {self.published}".encode()
        self.network.publish(self.broker(place), Notification({"x": 1, "y": 1}, payload))

    @invariant()
    def no_request_was_refused(self) -> None:
        assert not self.network.errors

    def teardown(self) -> None:
        if not hasattr(self, "network"):
            return
        restore_everything(self.network)
        self.clients_come_back()
        while self.old_homes:
            self.old_home_notices_that_a_client_is_gone()
        self.network.settle(self.random, steps_max=200_000)
        if self.algorithm is Algorithm.TNR:  # what was lost with a link comes by comparing
            for _ in range(len(self.scot.regions) + 2):
                self.network.compare()
                self.network.settle(self.random, steps_max=200_000)
        rows = deliveries(self.network)
        assert len(set(rows)) == len(rows), "a notification was delivered twice"
        check_as_if_nothing_had_been(self.network, list(self.homes.values()))


@pytest.mark.parametrize("algorithm", Algorithm)
def test_tables_end_as_if_nothing_had_been(algorithm: Algorithm):
    machine = type("Faults", (Faults,), {"algorithm": algorithm})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=EXAMPLES[algorithm], stateful_step_count=50, deadline=None),
    )
