"""The whole evaluation: workload, ground truth, simulations and metrics on Spark, then the report.

Everything that is done lies in the folder, so that an evaluation goes on where it was.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from octopis.core.topology import SCOT
from octopis.errors import SweepFailed
from octopis.evaluation import sensitivity
from octopis.evaluation.agenda import Agenda, OnProgress, items, run_name, run_s
from octopis.evaluation.exact import distances, tree_lengths
from octopis.evaluation.experiments import SIZES, Experiment, Point, points
from octopis.evaluation.folders import Folders, Request
from octopis.evaluation.measures import Measures, read_measures
from octopis.files import whole_folder, write_json
from octopis.pipeline.ingest.folder import is_ingested, read_data
from octopis.pipeline.ingest.headers import check_headers
from octopis.pipeline.ingest.ingest import ingest, ingest_synthetic
from octopis.pipeline.results.check import FINGERPRINT, fingerprints
from octopis.pipeline.results.metrics import write_results
from octopis.pipeline.runs.run_table import Run, RunTable
from octopis.pipeline.runs.sweep import sweep
from octopis.pipeline.scenarios.build import build_from, in_order
from octopis.pipeline.scenarios.truth import true_pairs
from octopis.pipeline.spark.traces import Traces
from octopis.scenario.costs import Profile
from octopis.scenario.folder import read_scenario
from octopis.trace import Level

TABLES = ("metrics", "cases", "queues", "fingerprints")
STRUCTURE = "structure.parquet"


class Evaluation:
    """One evaluation: what there is to do, and how it is done, stage by stage."""

    def __init__(
        self, folders: Folders, request: Request, profile: Profile, on_progress: OnProgress
    ) -> None:
        self.folders = folders
        self.request = request
        topology = request.overlay
        self.groups: dict[str, list[Point]] = {}
        """Runs that are measured together: an experiment with a seed."""
        for seed in range(1, request.seeds + 1):
            for point in points(request.size, seed, profile, topology):
                self.groups.setdefault(f"{point.experiment}-seed{seed}", []).append(point)
        self._bases = sensitivity.bases(request.size, profile, topology)
        varied = sensitivity.points(request.size, profile, topology)
        regular = [point.plan for group in self.groups.values() for point in group]
        self.groups[Experiment.SENSITIVITY.value] = varied
        self._built = [*regular, *self._bases]
        plans = [*self._built, *(point.plan for point in varied)]
        self._agenda = Agenda(items(folders, plans, self._built, self.groups))
        self._on_progress = on_progress

    @property
    def points(self) -> list[Point]:
        """All scenarios that are run."""
        return [point for group in self.groups.values() for point in group]

    def run(self, spark: SparkSession) -> None:
        """Do on Spark what is not done yet."""
        stages = {
            "quotes": self._quotes,
            "scenarios": self._scenarios,
            "ground truth": self._truth,
            "simulations": self._simulations,
            "metrics": self._metrics,
        }
        for stage, work in stages.items():
            with self._agenda.stage(stage, self._on_progress):
                work(spark)

    @property
    def is_measured(self) -> bool:
        """Whether only the report is left to make."""
        metrics = [self.folders.metrics(group) for group in self.groups]
        truths = [self.folders.truth(plan.name) for plan in self._built]
        return all(path.exists() for path in [*metrics, *truths])

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Tell that the report is being made."""
        with self._agenda.stage("report", self._on_progress):
            yield

    def measures(self) -> Measures:
        """Return what was measured."""
        return read_measures(self.folders, self.groups)

    def _quotes(self, spark: SparkSession) -> None:
        paths = [Path(path) for path in self.request.quotes]
        if self.folders.quotes.exists():
            return
        if len(paths) == 1 and is_ingested(paths[0]):
            with whole_folder(self.folders.quotes) as folder:
                shutil.copytree(paths[0], folder, dirs_exist_ok=True)
        elif paths:
            ingest(spark, paths, self.folders.quotes)
        else:
            days = SIZES[self.request.size].quote_days
            ingest_synthetic(spark, 1, days, self.folders.quotes)

    def _scenarios(self, spark: SparkSession) -> None:
        quotes = read_data(spark, self.folders.quotes)
        missing = [each for each in self._built if not self.folders.scenario(each.name).exists()]
        for seed in dict.fromkeys(plan.seed for plan in missing):
            with in_order(quotes, seed) as ordered:  # once for all scenarios of a seed
                for plan in missing:
                    if plan.seed == seed:
                        build_from(spark, ordered, plan, self.folders.scenario(plan.name))
        for point in self.points:
            if point.base and not (folder := self.folders.scenario(point.name)).exists():
                sensitivity.derive(point, self.folders.scenario(point.base), folder)

    def _truth(self, spark: SparkSession) -> None:
        for plan in self._built:
            if (path := self.folders.truth(plan.name)).exists():
                continue
            scenario = read_scenario(self.folders.scenario(plan.name))
            pairs = true_pairs(spark, scenario).select(F.lit(plan.name).alias("run"), "*")
            row = fingerprints(pairs).first()
            found = {name: row[name] if row else 0 for name in FINGERPRINT}
            write_json(path, found)

    def _simulations(self, spark: SparkSession) -> None:
        runs = [
            (point.plan, Run(run_name(point, algorithm), algorithm, self._scenario(point), None))
            for point in self.points
            for algorithm in point.algorithms
        ]
        # The longest first: then no core waits long for the other at the end.
        runs.sort(key=lambda each: -run_s(each[0], each[1].algorithm))
        table = RunTable(tuple(run for _, run in runs), Level.DELIVERIES)
        reports = sweep(spark, table, self.folders.runs)
        failed = [each for each in reports if each.state == "failed"]
        if failed:
            raise SweepFailed(tuple(each.run for each in failed), len(reports), failed[0].error)

    def _scenario(self, point: Point) -> Path:
        return self.folders.scenario(point.name).absolute()

    def _metrics(self, spark: SparkSession) -> None:
        for group, members in self.groups.items():
            if (out := self.folders.metrics(group)).exists():
                continue
            traces = [
                self.folders.trace(run_name(point, algorithm)).parent
                for point in members
                for algorithm in point.algorithms
            ]
            # Figure 11 alone shows the series, which takes longer than all the rest.
            has_series = members[0].experiment is Experiment.BURST
            wanted = (*TABLES, "stability") if has_series else TABLES
            measure(spark, traces, out, wanted, self.request.overlay.scot)


def check_quotes(paths: list[Path]) -> None:
    """Raise InvalidConfiguration where there are no quotes to read, before anything begins."""
    if paths and not (len(paths) == 1 and is_ingested(paths[0])):
        check_headers(paths)


def measure(
    spark: SparkSession, traces: list[Path], out: Path, wanted: tuple[str, ...], scot: SCOT
) -> None:
    """Leave the metrics of some runs on an overlay, and what must hold exactly, in a new folder."""
    with whole_folder(out) as folder:
        write_results(spark, traces, folder, wanted)
        subscriptions = Traces(spark, traces).table("subscriptions")
        assert subscriptions is not None, "traces of an evaluation hold their subscriptions"
        far = distances(spark, scot)
        pq.write_table(tree_lengths(subscriptions, far).toArrow(), folder / STRUCTURE)
