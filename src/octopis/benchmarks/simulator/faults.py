"""`octopis bench faults`: what arrives while brokers are dead, under each algorithm.

One scenario, many draws of dead brokers. What is expected is what living clients want of each
other, as far as living brokers connect their hosts.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow.parquet as pq

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import NamedTopology
from octopis.scenario.dead import draw_dead
from octopis.scenario.example import write_example
from octopis.scenario.folder import Scenario, read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.simulator.run import run as run_scenario

ORDER = (Algorithm.TNR, Algorithm.SNR, Algorithm.DNR, Algorithm.BID)


class Outcome(NamedTuple):
    """What came of one draw, or of many, under one algorithm."""

    expected: int
    made: int
    hops: int
    """Links that all deliveries came over."""
    distance: int
    """How many it would have been at least, had nobody been dead."""
    notification_ims: int

    @property
    def share(self) -> float:
        """The share of what was expected that was delivered."""
        return self.made / self.expected if self.expected else 1.0

    @property
    def hops_mean(self) -> float:
        """The mean length of a path."""
        return self.hops / self.made if self.made else 0.0

    @property
    def detour_mean(self) -> float:
        """How many links a path is longer than a shortest one of the whole overlay, on average."""
        return (self.hops - self.distance) / self.made if self.made else 0.0


def together(outcomes: list[Outcome]) -> Outcome:
    """Return what came of several draws."""
    return Outcome(*map(sum, zip(*outcomes, strict=True)))


def run(
    topology: NamedTopology, share: float, draws: int, seed: int
) -> Iterator[dict[Algorithm, Outcome]]:
    """Yield for each draw what came of it under every algorithm."""
    plan = ScenarioPlan(
        routing=RoutingOptions(Algorithm.TNR),
        topology=topology,
        subscribers=4 * len(topology.scot.brokers),
        publishers=len(topology.scot.brokers),
        notifications_each=4,
        seed=seed,
    )
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "scenario"
        write_example(plan, folder)
        scenario = read_scenario(folder)
        for draw in range(draws):
            faulty = scenario.with_dead(draw_dead(topology.scot, share, seed + draw))
            trace = Path(parent) / f"draw-{draw}"
            yield {each: outcome(faulty.with_algorithm(each), trace / each.value) for each in ORDER}


def outcome(scenario: Scenario, trace: Path) -> Outcome:
    """Run a scenario, and say what arrived."""
    summary = run_scenario(scenario, trace)
    scot = scenario.topology.scot
    homes = {publisher.name: publisher.broker for publisher in scenario.publishers}
    found = pq.read_table(trace / "deliveries.parquet", columns=["publisher", "broker", "hops"])
    distance = sum(
        scot.distance(homes[publisher], scot.broker(broker))
        for publisher, broker in zip(
            found["publisher"].to_pylist(), found["broker"].to_pylist(), strict=True
        )
    )
    return Outcome(
        summary.deliveries + summary.deliveries_lost,
        summary.deliveries,
        sum(found["hops"].to_pylist()),
        distance,
        summary.notification_ims,
    )
