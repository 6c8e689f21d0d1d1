"""The paper's Algorithms 1 and 4, taken literally, fail the checks that the real ones pass.

So the checks can fail, and the two deviations that the code names are needed. Both mutants are
read kindly: Algorithm 4 as printed does not even spare the link that a notification came from.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from random import Random

import pytest

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing import (
    Algorithm,
    Broker,
    Entry,
    NotificationMessage,
    Reason,
    Subscribe,
    Subscription,
)
from octopis.core.topology import SCOT, LinkKind
from support.checks import check_all
from support.scenarios import Scenario, play, random_overlay, random_scenario

RUNS = 200


class State(Enum):
    PRIMARY = "primary"
    SECONDARY = "secondary"


class StatedSubscribe(Subscribe, frozen=True):
    """A subscription message with the state that Algorithm 1 keeps in it."""

    state: State = State.PRIMARY


class LiteralBroadcast:
    """Algorithm 1: the loop sets the state to SECONDARY and never back."""

    def __init__(self, broker: Broker, scot: SCOT, neighbours: Sequence[BrokerId]) -> None:
        self.broker, self.scot, self.neighbours = broker, scot, neighbours

    def subscribe(self, subscription: Subscription, now_ns: int) -> None:
        cbv_s = ClusterBitVector.of([self.broker.id.cluster])
        self.receive(None, StatedSubscribe(subscription, cbv_s, self.broker.id), now_ns)

    def receive(self, sender: BrokerId | None, message: StatedSubscribe, now_ns: int) -> None:
        state = message.state
        if state is State.PRIMARY:
            for neighbour in self.neighbours:
                if neighbour == sender:
                    continue
                if self.scot.link_kind(self.broker.id, neighbour) is LinkKind.ICOL:
                    state = State.SECONDARY
                copy = StatedSubscribe(message.subscription, message.cbv_s, message.host, state)
                self.broker._outbox.send(neighbour, copy, Reason.SUBSCRIPTION, now_ns)
        entry = Entry(message.subscription, sender, message.cbv_s, message.host)
        self.broker.table.put(entry)


class LiteralDynamicRouting:
    """Algorithm 4: the iCOLs of all matches are targets everywhere, whatever CBV_p says."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def route(
        self, batch: Sequence[NotificationMessage], sender: BrokerId | None, now_ns: int
    ) -> None:
        attributes = [routed.notification.attributes for routed in batch]
        table = self.broker.table
        self.broker._clients.deliver(batch, table.local_matches(attributes))
        for routed, found in zip(batch, table.destinations(attributes), strict=True):
            self.route_one(routed, [link for link in found if link != sender], now_ns)

    def route_one(self, routed: NotificationMessage, targets: list[BrokerId], now_ns: int) -> None:
        status, own = self.broker.link_status, self.broker.id.cluster

        def load(link: BrokerId) -> tuple[int, BrokerId]:
            return status[link].queue_length, link

        icols = [link for link in targets if link.cluster != own]
        overloaded = [link for link in icols if status[link].is_overloaded]
        cbv_p = ClusterBitVector.of(link.cluster for link in overloaded)
        best_icol = min(icols, key=load, default=None)
        best_acol = min((link for link in targets if link.cluster == own), key=load, default=None)
        copies = {
            link: NotificationMessage(routed.notification)
            for link in targets
            if link not in overloaded
        }
        if best_icol is not None:
            acol_is_free = best_acol is not None and not status[best_acol].is_overloaded
            if best_icol in overloaded and acol_is_free:
                copies[best_acol] = NotificationMessage(routed.notification, cbv_p)
            elif best_icol not in overloaded:
                copies[best_icol] = NotificationMessage(routed.notification, cbv_p)
            else:
                rest = ClusterBitVector(cbv_p & ~(1 << best_icol.cluster))
                copies[best_icol] = NotificationMessage(routed.notification, rest)
        for link, copy in copies.items():
            self.broker._outbox.send(link, copy, Reason.MATCH, now_ns)


def with_literal_broadcast(
    broker: BrokerId, scot: SCOT, algorithm: Algorithm, **options: object
) -> Broker:
    made = Broker(broker, scot, algorithm, **options)
    secondary_first = tuple(reversed(scot.neighbours(broker)))
    made._subscriptions = LiteralBroadcast(made, scot, secondary_first)
    return made


def with_literal_broadcast_in_lucky_order(
    broker: BrokerId, scot: SCOT, algorithm: Algorithm, **options: object
) -> Broker:
    made = Broker(broker, scot, algorithm, **options)
    made._subscriptions = LiteralBroadcast(made, scot, scot.neighbours(broker))
    return made


def with_literal_dynamic_routing(
    broker: BrokerId, scot: SCOT, algorithm: Algorithm, **options: object
) -> Broker:
    made = Broker(broker, scot, algorithm, **options)
    made._notifications = LiteralDynamicRouting(made)
    return made


def scenario_of(seed: int) -> Scenario:
    """Return a scenario in which both algorithms have something to do."""
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    return random_scenario(random, random_overlay(random, (2, 8), (2, 4)))


def outcomes(make: Callable[..., Broker], algorithm: Algorithm) -> Counter[str]:
    """Count the runs that pass all checks, in which one fails, and in which messages loop."""
    counts: Counter[str] = Counter()
    for seed in range(RUNS):
        scenario = scenario_of(seed)
        try:
            check_all(scenario, play(scenario, algorithm, make))
        except AssertionError as error:
            counts["looped" if "there is a loop" in str(error) else "failed"] += 1
        else:
            counts["passed"] += 1
    return counts


@pytest.mark.parametrize("algorithm", [Algorithm.SNR, Algorithm.DNR])
def test_real_algorithms_pass_every_run(algorithm: Algorithm):
    assert outcomes(Broker, algorithm) == {"passed": RUNS}


def test_literal_algorithm_1_is_caught_in_nearly_every_run():
    counts = outcomes(with_literal_broadcast, Algorithm.SNR)
    # 187 of 200 when this was written; in the others nobody subscribes.
    assert counts["failed"] >= 0.9 * RUNS, counts


def test_literal_algorithm_1_is_right_where_primary_neighbours_come_first():
    # The mutant is not broken by itself: only the order of neighbours makes it fail.
    assert outcomes(with_literal_broadcast_in_lucky_order, Algorithm.SNR) == {"passed": RUNS}


def test_literal_algorithm_4_is_caught_in_most_runs_and_mostly_because_it_loops():
    counts = outcomes(with_literal_dynamic_routing, Algorithm.DNR)
    # 145 of 200 when this was written, 127 of them by the bound on steps; in 25 of the other 55
    # nobody in another cluster wants anything.
    assert counts["passed"] <= 0.3 * RUNS, counts
    assert counts["looped"] >= 0.5 * RUNS, counts
