"""The paper's experiments as scenarios: sizes, seeds and algorithms.

A *point* is one scenario of one experiment; it is run under each of its algorithms: the paper's
three, and target routing (TNR), which is ours.
"""

from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import NamedTopology, from_catalogue
from octopis.scenario.costs import Profile
from octopis.scenario.document import QueueOptions
from octopis.scenario.plan import ScenarioPlan

OF_THE_PAPER = (Algorithm.BID, Algorithm.SNR, Algorithm.DNR)
ALL = (*OF_THE_PAPER, Algorithm.TNR)
OVERLAY = "paper"
QUEUES = QueueOptions(capacity_messages=1_000_000, policy="stop")
"""Nothing may be dropped: a run ends when everything is delivered."""


class Experiment(StrEnum):
    """What is varied."""

    SUBSCRIBERS = "subscribers"
    PUBLISHERS = "publishers"
    BURST = "burst"
    SEVERAL = "several"
    """Several high-rate publishers at once."""
    SENSITIVITY = "sensitivity"


class EvaluationSize(StrEnum):
    """How large the experiments are."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The numbers of all experiments at one size."""

    subscribers: tuple[int, ...]
    subscribers_notifications: int
    publishers: tuple[int, ...]
    publishers_subscribers: int
    publishers_notifications: int
    burst_subscribers: int
    burst_notifications: int
    burst_high_rate: int
    several: tuple[int, ...]
    """Further numbers of high-rate publishers; one is the burst itself."""
    quote_days: int
    """Of 500 synthetic quotes each."""


SIZES = {
    EvaluationSize.FULL: Sizes(
        subscribers=(500, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000),
        subscribers_notifications=1_000,
        publishers=(100, 200, 300, 400, 500),
        publishers_subscribers=3_000,
        publishers_notifications=500,
        burst_subscribers=5_000,
        burst_notifications=2_000,
        burst_high_rate=100_000,
        several=(2, 3, 5),
        quote_days=268,
    ),
    EvaluationSize.QUICK: Sizes(
        subscribers=(125, 250, 500, 1_000),
        subscribers_notifications=20,
        publishers=(20, 60, 100),
        publishers_subscribers=300,
        publishers_notifications=50,
        burst_subscribers=500,
        burst_notifications=200,
        burst_high_rate=10_000,
        several=(5,),
        quote_days=60,
    ),
}
PUBLISHERS = 100
RATES = (100_000, 80_000, 60_000)
"""The high-rate publisher's, per minute."""


@dataclass(frozen=True)
class Point:
    """One scenario: `x` is what its experiment varies."""

    experiment: Experiment
    x: int
    plan: ScenarioPlan
    algorithms: tuple[Algorithm, ...] = ALL
    variation: str = ""
    """In the sensitivity table, what differs from the profile."""
    base: str = ""
    """There, the scenario that it is made from."""

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.plan.name

    @property
    def seed(self) -> int:
        """The seed of everything that is drawn."""
        return self.plan.seed


def points(
    size: EvaluationSize, seed: int, profile: Profile, topology: NamedTopology | None = None
) -> list[Point]:
    """Return the paper's experiments for one seed, without the sensitivity table."""
    sizes, base = SIZES[size], base_plan(profile, seed, topology)
    return [
        *(_subscribers(sizes, base, count) for count in sizes.subscribers),
        *(_publishers(sizes, base, count) for count in sizes.publishers),
        *(Point(Experiment.BURST, rate, _burst(sizes, base, rate)) for rate in RATES),
        # The claim about several is one about dynamic against static routing.
        *(
            Point(Experiment.SEVERAL, count, _burst(sizes, base, RATES[0], count), ALL[1:])
            for count in several(sizes, base.topology)
        ),
    ]


def several(sizes: Sizes, topology: NamedTopology) -> list[int]:
    """Return the numbers of high-rate publishers: each needs a cluster of its own."""
    clusters = len(topology.scot.clusters)
    return sorted({min(count, clusters) for count in sizes.several} - {1})


def base_plan(
    profile: Profile, seed: int = 1, topology: NamedTopology | None = None
) -> ScenarioPlan:
    """Return what all scenarios have in common; the overlay is the paper's by default."""
    return ScenarioPlan(
        routing=RoutingOptions(Algorithm.SNR, congestion_threshold=10.0, window_ms=50),
        topology=topology or from_catalogue(OVERLAY),
        profile=profile,
        queues=QUEUES,
        publishers=PUBLISHERS,
        per_minute=60,
        seed=seed,
    )


def _subscribers(sizes: Sizes, base: ScenarioPlan, count: int) -> Point:
    plan = replace(
        base,
        name=f"subscribers-{count}-seed{base.seed}",
        subscribers=count,
        notifications_each=sizes.subscribers_notifications,
    )
    return Point(Experiment.SUBSCRIBERS, count, plan)


def _publishers(sizes: Sizes, base: ScenarioPlan, count: int) -> Point:
    plan = replace(
        base,
        name=f"publishers-{count}-seed{base.seed}",
        subscribers=sizes.publishers_subscribers,
        publishers=count,
        notifications_each=sizes.publishers_notifications,
        per_minute=100,
    )
    return Point(Experiment.PUBLISHERS, count, plan)


def _burst(sizes: Sizes, base: ScenarioPlan, rate: int, count: int = 1) -> ScenarioPlan:
    name = f"burst-{rate}" if count == 1 else f"burst-{rate}-by-{count}"
    return replace(
        base,
        name=f"{name}-seed{base.seed}",
        subscribers=sizes.burst_subscribers,
        notifications_each=sizes.burst_notifications,
        high_rate_notifications=sizes.burst_high_rate,
        high_rate_per_minute=rate,
        high_rate_publishers=count,
    )
