"""The rule of target routing alone: an overlay of link states, and the ways of one notification.

Each end of a link has its own view of it. Nothing here knows of brokers, tables or messages.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from octopis.core.model import BrokerId
from octopis.core.routing import LinkStatus, Reason
from octopis.core.routing.algorithms.tnr import Crossroads, Onward, TargetPlan, plan
from octopis.core.topology import SCOT, LinkKind
from support.scenarios import random_overlay

HOPS_MAX = 100_000
QUEUES = (0, 0, 1, 5, 11, 40)
"""Lengths of queues to choose from: from 11 on, a link is overloaded."""


class Hop(NamedTuple):
    """A copy as it left a broker, which had these targets and had tried these clusters."""

    source: BrokerId
    had: int
    had_tried: int
    copy: Onward

    @property
    def target(self) -> BrokerId:
        return self.copy.link.link


@dataclass
class Journey:
    """What became of one notification."""

    served: list[BrokerId]
    hops: list[Hop]
    lost: int
    paths: dict[BrokerId, int]
    """For each broker that was served, how many links its copy has gone over."""


Rule = Callable[[Crossroads, int, int, int], TargetPlan]


class Ways:
    """All brokers' views of their links, at first up and free, and the rule that they follow."""

    def __init__(self, scot: SCOT, rule: Rule = plan) -> None:
        self.scot = scot
        self.rule = rule
        self.width = len(scot.clusters)
        self.views = {
            broker: {
                each: LinkStatus(each, is_icol=scot.link_kind(broker, each) is LinkKind.ICOL)
                for each in scot.neighbours(broker)
            }
            for broker in scot.brokers
        }
        self.here = {
            broker: Crossroads(broker, scot, self.views[broker]) for broker in scot.brokers
        }

    def bits(self, brokers: Iterable[BrokerId]) -> int:
        return sum(map(self.scot.bit, set(brokers)))

    def cut(self, one: BrokerId, other: BrokerId) -> None:
        """Let both ends know that their link is down."""
        self.views[one][other].is_up = self.views[other][one].is_up = False

    def die(self, broker: BrokerId) -> None:
        """Let all neighbours know that a broker is dead."""
        for neighbour in self.scot.neighbours(broker):
            self.cut(broker, neighbour)

    def jam(self, random: Random, broker: BrokerId | None = None) -> None:
        """Fill queues at random: those of a broker, or all."""
        for at in self.views if broker is None else (broker,):
            for view in self.views[at].values():
                view.queue_length = random.choice(QUEUES) if view.is_up else 0

    def connected_to(self, start: BrokerId) -> set[BrokerId]:
        """Return who can be reached over links that are up."""
        found, todo = {start}, [start]
        while todo:
            for each, view in self.views[todo.pop()].items():
                if view.is_up and each not in found:
                    found.add(each)
                    todo.append(each)
        return found

    def travel(
        self,
        source: BrokerId,
        targets: int,
        weather: Callable[[BrokerId], None] = lambda _: None,
    ) -> Journey:
        """Let a notification go all its ways; `weather` may change a broker's view beforehand.

        The reason of each copy is checked at once, as the broker sees its links.
        """
        journey = Journey([], [], 0, {})
        under_way = [(source, targets, 0, 0)]
        while under_way:
            at, left, tried, length = under_way.pop()
            bit = self.scot.bit(at)
            if left & bit:
                journey.served.append(at)
                journey.paths[at] = length
                left ^= bit
            weather(at)
            copies, lost = self.rule(self.here[at], left, tried, 0)
            journey.lost |= lost
            for copy in copies:
                hop = Hop(at, left, tried, copy)
                check_reason(self, hop)
                journey.hops.append(hop)
                under_way.append((copy.link.link, copy.targets, copy.tried, length + 1))
            assert len(journey.hops) < HOPS_MAX, "copies keep travelling: there is a loop"
        return journey


def random_ways(random: Random, rule: Rule = plan) -> Ways:
    """Return the views of a random overlay of 1 to 7 regions and 1 to 5 clusters."""
    return Ways(random_overlay(random, (1, 7), (1, 5)), rule)


def random_targets(random: Random, brokers: Iterable[BrokerId]) -> list[BrokerId]:
    """Return few or many of these brokers, sometimes all of one cluster."""
    everybody = list(brokers)
    cluster = random.choice([None, None, *{each.cluster for each in everybody}])
    share = random.random()
    return [
        each for each in everybody if random.random() < share and cluster in (None, each.cluster)
    ]


def random_views(ways: Ways, random: Random) -> Callable[[BrokerId], None]:
    """Let each broker see its links differently each time, whatever the other end sees."""
    failing, busy = random.random() * 0.5, random.random()

    def weather(broker: BrokerId) -> None:
        for view in ways.views[broker].values():
            view.is_up = random.random() >= failing
            view.queue_length = random.choice(QUEUES) if random.random() < busy else 0

    return weather


# What must hold; each check raises AssertionError.


def check_served_once(journey: Journey) -> None:
    """Nobody is served twice."""
    assert len(set(journey.served)) == len(journey.served), "a target was served twice"


def check_partition(ways: Ways, journey: Journey, targets: int) -> None:
    """No bit is lost or made: each target was served, or is known to be out of reach."""
    assert not ways.bits(journey.served) & journey.lost, "a target was served, and lost"
    assert ways.bits(journey.served) | journey.lost == targets, "a target has vanished"


def check_measure_falls(ways: Ways, journey: Journey) -> None:
    """With every hop, each target comes nearer, in one of the ways that cannot go on for ever."""
    for hop in journey.hops:
        for target in ways.scot.brokers_in(hop.copy.targets):
            before = _measure(ways, hop.source, target, hop.had_tried)
            after = _measure(ways, hop.target, target, hop.copy.tried)
            assert after < before, (hop, target, before, after)


def _measure(ways: Ways, at: BrokerId, target: BrokerId, tried: int) -> tuple[int, ...]:
    """Tree distance; clusters left to try; those not known to be of no use; crossings left.

    Left to try are those that are neither tried nor this one: a copy that went back to a tried
    cluster may find there, where links look otherwise, one that was not tried.
    """
    if at == target:
        return (0, 0, 0, 0)
    everywhere = (1 << ways.width) - 1
    return (
        ways.scot.acyclic.distance(at.region, target.region),
        (everywhere & ~tried & ~(1 << at.cluster)).bit_count(),
        (everywhere & ~(tried >> ways.width)).bit_count(),
        int(at.cluster != target.cluster),
    )


def check_shortest(ways: Ways, source: BrokerId, journey: Journey) -> None:
    """Every path is a shortest path of the graph."""
    for target, length in journey.paths.items():
        assert length == ways.scot.distance(source, target), (source, target, length)


def check_reason(ways: Ways, hop: Hop) -> None:
    """The reason of a copy fits what its sender sees."""
    scot, (link, part, tried, reason) = ways.scot, hop.copy
    views = ways.views[hop.source]
    own, other = hop.source, link.link
    region = scot.region_masks[own.region]
    overloaded = {each for each, view in views.items() if view.is_overloaded}
    down = {each for each, view in views.items() if not view.is_up}
    assert link.is_up, "a copy goes onto a link that is down"
    if not link.is_icol:
        assert not part & ~scot.branch_masks[own.region, other.region], "a target lies elsewhere"
        assert tried == 0, "clusters of another region were tried"
        assert reason is (Reason.WAITS if other in overloaded else Reason.TARGET)
        return
    assert other.region == own.region
    if reason in (Reason.LATE, Reason.EARLY):
        assert other not in overloaded
        assert tried == hop.had_tried
        assert not part & ~scot.cluster_masks[other.cluster], "another cluster's target crosses"
        beyond = part & ~region
        assert (reason is Reason.EARLY) == bool(beyond)
        if beyond:
            assert not tried, "it crosses early where it was sent around"
            for each in scot.acyclic.neighbours(own.region):
                branch = scot.branch_masks[own.region, each]
                assert not beyond & branch or hop.had & branch == beyond & branch, "half a branch"
        return
    untried = [
        each
        for each in scot.secondary_neighbours(own)
        if not hop.had_tried >> each.cluster & 1 and each not in down
    ]
    if reason is Reason.WAITS:
        assert other in overloaded
        assert tried == hop.had_tried
        assert all(each in overloaded for each in untried), "it waits where it could go around"
        return
    assert tried >> own.cluster & 1, "it goes around and forgets where it was"
    assert tried & hop.had_tried == hop.had_tried
    if reason is Reason.AROUND_OVERLOAD:
        assert other not in overloaded
        assert other in untried, "it goes around to a cluster that was tried"
        assert overloaded, "it goes around, and nothing is overloaded"
    else:
        assert reason is Reason.AROUND_FAULT
        assert down, "it goes around a fault, and there is none"
        if other not in untried:
            useless = (hop.had_tried >> ways.width) >> other.cluster & 1
            assert not untried, "it goes back although a cluster was not tried"
            assert not useless, "it goes back to where it is known to be of no use"
