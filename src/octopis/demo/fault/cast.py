"""Who takes part when a broker is killed: a publisher, subscribers, and the broker on the way.

The publisher and its farthest subscriber sit in one cluster, at the ends of a longest path; the
victim is the broker in the middle of that path, and hosts nobody. The other subscribers sit at the
tree's other ends and beside the publisher, in other clusters: some behind the victim, some not.
"""

from dataclasses import dataclass

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, Notification, Value
from octopis.core.routing import Algorithm
from octopis.core.topology import (
    SCOT,
    AcyclicFactor,
    ConnectivityFactor,
    NamedTopology,
    from_catalogue,
)
from octopis.explain.explainer import explain
from octopis.explain.question import AskedSubscriber, Question

FILTER = "symbol = 'OCTO'"


def attributes(number: int) -> dict[str, Value]:
    """Return what the publisher says for the n-th time; every subscriber wants it."""
    return {"symbol": "OCTO", "price": 100.0 + number % 50}


@dataclass(frozen=True)
class FaultPlan:
    """On what the scene is played, and for how long."""

    topology: NamedTopology
    per_s: int
    kill_s: float
    """When the broker is killed, after publishing began."""

    least_s: float
    """Publishing goes on until the broker is back, but at least so long."""


FULL = FaultPlan(from_catalogue("figure-3"), per_s=200, kill_s=2.0, least_s=6.0)
SMALL = FaultPlan(
    NamedTopology(
        "line",
        "Three regions in a row, in two clusters.",
        SCOT(AcyclicFactor.from_edges([("a", "b"), ("b", "c")]), ConnectivityFactor.complete(2)),
    ),
    per_s=100,
    kill_s=0.5,
    least_s=1.5,
)


@dataclass(frozen=True)
class Cast:
    """The brokers that matter in the scene."""

    topology: NamedTopology
    host: BrokerId
    """The publisher's."""

    victim: BrokerId
    subscribers: tuple[BrokerId, ...]
    """A subscriber each."""

    behind: frozenset[BrokerId]
    """Those of them whose shortest way leads through the victim."""

    cut_off_by_snr: tuple[BrokerId, ...]
    """Those whom SNR does not reach while the victim is dead."""

    @property
    def scot(self) -> SCOT:
        """The overlay."""
        return self.topology.scot

    def names_behind(self) -> str:
        """Return who is behind the victim, for a sentence."""
        return " and ".join(str(each) for each in self.subscribers if each in self.behind)


def cast_of(topology: NamedTopology) -> Cast:
    """Choose who takes part, in an overlay of at least three regions and two clusters."""
    scot = topology.scot
    tree = scot.acyclic
    near, far = tree.longest_path_ends
    length = tree.distance(near, far)
    way = sorted(
        (each for each in scot.regions if _on_the_way(scot, near, each, far)),
        key=tree.distances(near).__getitem__,
    )
    host, victim = BrokerId(near, 0), BrokerId(way[(length + 1) // 2], 0)
    ends = [each for each in scot.regions if len(tree.neighbours(each)) == 1]
    others = [each for each in ends if each not in (near, far)]
    subscribers = (
        BrokerId(far, 0),
        *(BrokerId(each, at % len(scot.clusters)) for at, each in enumerate(others, 1)),
        BrokerId(near, 1),
    )
    paths = explain(question_of(scot, host, subscribers), Algorithm.TNR).paths
    behind = frozenset(each for each in subscribers if victim in paths[each.short][:-1])
    lost = explain(question_of(scot, host, subscribers, victim), Algorithm.SNR).lost
    cut_off = tuple(each for each in subscribers if each.short in lost)
    return Cast(topology, host, victim, subscribers, behind, cut_off)


def question_of(
    scot: SCOT, host: BrokerId, subscribers: tuple[BrokerId, ...], *dead: BrokerId
) -> Question:
    """Return what the routing core is asked about the scene's notifications."""
    asked = tuple(AskedSubscriber(each.short, each, parse_filter(FILTER)) for each in subscribers)
    said = Notification.checked(attributes(0))
    return Question(scot, host, said, asked, dead=frozenset(dead))


def _on_the_way(scot: SCOT, near: str, region: str, far: str) -> bool:
    distance = scot.acyclic.distance
    return distance(near, region) + distance(region, far) == distance(near, far)
