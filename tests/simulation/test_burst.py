"""The burst experiment at a tenth of its size, under the paper's profile, as the paper asks for it.

75 brokers, 500 subscribers, 100 publishers with 200 notifications each, and one high-rate publisher
with 10,000 at 100,000 a minute. With seed 6 it sits on an inner broker.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from octopis.core.matching import BitsetIndex, LinearIndex
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import from_catalogue
from octopis.scenario.costs import profile_named
from octopis.scenario.example import write_example
from octopis.scenario.folder import Scenario, read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.simulator.run import run
from octopis.trace import Level, RunSummary

LEVELS = dict.fromkeys(Algorithm, Level.FULL) | {Algorithm.BID: Level.DELIVERIES}
HIGH_RATE = "hrp"


class Experiment:
    """One scenario, run under each algorithm that a test asks for, once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plan = ScenarioPlan(
            routing=RoutingOptions(Algorithm.SNR),
            topology=from_catalogue("paper"),
            profile=profile_named("paper"),
            subscribers=500,
            publishers=100,
            notifications_each=200,
            per_minute=60,
            high_rate_notifications=10_000,
            high_rate_per_minute=100_000,
            seed=6,
        )
        write_example(plan, folder / "scenario")
        self.scenario = read_scenario(folder / "scenario")
        self._runs: dict[Algorithm, tuple[RunSummary, Path]] = {}

    def run(self, algorithm: Algorithm) -> tuple[RunSummary, Path]:
        if algorithm not in self._runs:
            trace = self.folder / algorithm.value
            level = LEVELS[algorithm]
            self._runs[algorithm] = run(self._under(algorithm), trace, level=level), trace
        return self._runs[algorithm]

    def _under(self, algorithm: Algorithm) -> Scenario:
        routing = msgspec.structs.replace(self.scenario.document.routing, algorithm=algorithm)
        document = msgspec.structs.replace(self.scenario.document, routing=routing)
        return replace(self.scenario, document=document)

    @cached_property
    def wanted(self) -> set[tuple[str, int, str]]:
        """Who must get what: publisher, sequence, subscription."""
        subscribers = self.scenario.subscribers
        entries = [(each.subscription, each.filter, each.broker) for each in subscribers]
        index, oracle = BitsetIndex(), LinearIndex()
        index.add_many(entries)
        oracle.add_many(entries)
        found = set()
        for batch in self.scenario.publications():
            matches = [sorted(names) for names in index.matches(batch.attributes)]
            assert matches[::200] == oracle.matches(batch.attributes[::200])
            for publisher, sequence, names in zip(
                batch.publishers, batch.sequences, matches, strict=True
            ):
                publisher_name = self.scenario.publishers[publisher].name
                found.update((publisher_name, sequence, name) for name in names)
        return found


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return Experiment(tmp_path_factory.mktemp("burst"))


def identities(table: pa.Table, *columns: str) -> Iterator[tuple[object, ...]]:
    return zip(*(table[column].to_pylist() for column in columns), strict=True)


def test_high_rate_publisher_is_wanted_in_all_clusters_and_only_elsewhere(experiment: Experiment):
    scenario = experiment.scenario
    (publisher,) = [each for each in scenario.publishers if each.high_rate]
    assert scenario.topology.scot.is_inner(publisher.broker)
    hosts = {each.subscription: each.broker for each in scenario.subscribers}
    wanting = {hosts[name] for who, _, name in experiment.wanted if who == HIGH_RATE}
    assert publisher.broker not in wanting
    assert {broker.cluster for broker in wanting} == set(scenario.topology.scot.clusters)


@pytest.mark.parametrize("algorithm", Algorithm)
def test_nothing_is_lost_and_nothing_comes_twice(experiment: Experiment, algorithm: Algorithm):
    summary, trace = experiment.run(algorithm)
    table = pq.read_table(trace / "deliveries.parquet")
    made = list(identities(table, "publisher", "sequence", "subscription"))
    assert len(made) == len(experiment.wanted) == summary.deliveries > 200_000
    assert set(made) == experiment.wanted
    hosts = {each.subscription: each.broker.short for each in experiment.scenario.subscribers}
    assert set(identities(table, "subscription", "broker")) <= set(hosts.items())
    assert (summary.state, summary.deliveries_lost, summary.queue_bounds) == ("complete", 0, [])
    assert summary.notifications == 100 * 200 + 10_000


def mean_queue_length(trace: Path) -> float:
    """Return the mean length, over windows, of the queues that carried the high-rate publisher."""
    ims = pq.read_table(trace / "ims.parquet", columns=["source", "target", "publisher"])
    path = set(identities(ims.filter(pc.equal(ims["publisher"], HIGH_RATE)), "source", "target"))
    queues = pq.read_table(trace / "queues.parquet")
    lengths = [
        length
        for source, target, length in identities(queues, "source", "target", "queue_length")
        if (source, target) in path
    ]
    return sum(lengths) / len(lengths)


def test_dynamic_routing_shortens_the_queues_on_the_way_of_the_high_rate_publisher(
    experiment: Experiment,
):
    static, dynamic = (
        mean_queue_length(experiment.run(algorithm)[1])
        for algorithm in (Algorithm.SNR, Algorithm.DNR)
    )
    assert 0 < dynamic < static


def test_every_case_of_dynamic_routing_occurs(experiment: Experiment):
    summary, trace = experiment.run(Algorithm.DNR)
    assert set(summary.dnr_cases) == {"I", "II", "III"}
    reasons = pq.read_table(trace / "ims.parquet", columns=["reason"])["reason"]
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(reasons).to_pylist()}
    assert {case: counts[case] for case in summary.dnr_cases} == summary.dnr_cases
    assert counts["pending"] > 0
    assert experiment.run(Algorithm.SNR)[0].dnr_cases == {}
