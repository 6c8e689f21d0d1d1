"""What was measured, run by run: the tables that Spark left, beside what each run was."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from octopis.core.routing import Algorithm
from octopis.evaluation.agenda import run_name
from octopis.evaluation.experiments import Experiment, Point
from octopis.evaluation.folders import Folders
from octopis.pipeline.results.check import FINGERPRINT

SECOND_NS = 1_000_000_000
STABLE_S = 1.0
"""The overlay is back to normal when no delivery takes longer than this any more."""


@dataclass(frozen=True)
class Series:
    """The stability series of a run: when each 1,000 deliveries ended, and their longest delay."""

    end_s: list[float]
    delay_max_s: list[float]

    @property
    def stabilised_s(self) -> float | None:
        """When the last delivery over STABLE_S came; None if that was at the very end."""
        late = [place for place, delay in enumerate(self.delay_max_s) if delay > STABLE_S]
        if late and late[-1] == len(self.end_s) - 1:
            return None
        return self.end_s[late[-1]] if late else 0.0


@dataclass(frozen=True)
class Measure:
    """One run: which, and its row of metrics. Times are nanoseconds, as in the tables."""

    point: Point
    algorithm: Algorithm
    values: dict[str, Any]
    series: Series | None = None
    cases: dict[str, int] = field(default_factory=dict)
    is_exact: bool = False
    """Whether it delivered just what the ground truth asks for."""

    def __getitem__(self, name: str) -> float:
        return float(self.values[name])


class Measures:
    """All runs of an evaluation."""

    def __init__(self, measures: Iterable[Measure]) -> None:
        self.all = list(measures)

    def of(
        self,
        experiment: Experiment,
        algorithm: Algorithm | None = None,
        *,
        seed: int | None = None,
        x: int | None = None,
        variation: str | None = None,
    ) -> list[Measure]:
        """Return the runs of an experiment, ordered by what it varies."""
        found = [
            each
            for each in self.all
            if each.point.experiment is experiment
            and algorithm in {None, each.algorithm}
            and seed in {None, each.point.seed}
            and x in {None, each.point.x}
            and variation in {None, each.point.variation}
        ]
        return sorted(found, key=lambda each: (each.point.x, each.point.seed, each.algorithm.value))

    @property
    def seeds(self) -> list[int]:
        """The seeds of the paper's experiments."""
        return sorted({each.point.seed for each in self.all})

    def mean(self, value: str, runs: list[Measure]) -> float:
        """Return the mean of a value over some runs."""
        return mean(run[value] for run in runs)


def read_measures(folders: Folders, groups: dict[str, list[Point]]) -> Measures:
    """Read what Spark left in the folder of an evaluation."""
    found: list[Measure] = []
    for group, members in groups.items():
        tables = {
            path.stem: pq.read_table(path) for path in folders.metrics(group).glob("*.parquet")
        }
        rows = {row["run"]: row for row in tables["metrics"].to_pylist()}
        structure = {row["run"]: row for row in tables["structure"].to_pylist()}
        prints = {row["run"]: row for row in tables["fingerprints"].to_pylist()}
        series = _series(tables.get("stability"), rows)
        queues = _high_rate_queues(tables["queues"])
        for point in members:
            truth = msgspec.json.decode(folders.truth(point.base or point.name).read_bytes())
            for algorithm in point.algorithms:
                run = run_name(point, algorithm)
                values = rows[run] | structure[run] | queues.get(run, {})
                got = {name: prints[run][name] for name in FINGERPRINT} if run in prints else None
                found.append(
                    Measure(
                        point,
                        algorithm,
                        values,
                        series.get(run),
                        _cases(tables["cases"], run),
                        got == truth if got else not truth["rows"],
                    )
                )
    return Measures(found)


def _series(stability: pa.Table | None, rows: dict[str, Any]) -> dict[str, Series]:
    if stability is None:
        return {}
    found = {}
    for run, row in rows.items():
        part = stability.filter(pc.equal(stability.column("run"), run)).sort_by("block")
        ends = [(end - row["begin_ns"]) / SECOND_NS for end in part.column("end_ns").to_pylist()]
        delays = [delay / SECOND_NS for delay in part.column("delay_max_ns").to_pylist()]
        found[run] = Series(ends, delays)
    return found


def _high_rate_queues(queues: pa.Table) -> dict[str, dict[str, float]]:
    """Return the mean length of the queues that carried a high-rate publisher, for each run."""
    carried = queues.filter(pc.greater(queues.column("high_rate_ims"), 0))
    means = carried.group_by("run").aggregate(
        [("queue_length_mean", "mean"), ("queue_length_mean", "sum"), ("run", "count")]
    )
    return {
        row["run"]: {
            "high_rate_queue_mean": row["queue_length_mean_mean"],
            "high_rate_queued": row["queue_length_mean_sum"],
            "high_rate_links": row["run_count"],
        }
        for row in means.to_pylist()
    }


def _cases(cases: pa.Table, run: str) -> dict[str, int]:
    return {row["case"]: row["count"] for row in cases.to_pylist() if row["run"] == run}
