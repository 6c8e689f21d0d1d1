"""`octopis bench pipeline`: the data pipeline on Spark in local mode, two cores."""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.benchmarks.core.matching import bounds
from octopis.benchmarks.spark.figures import PipelineFigure, timed, worker_memory
from octopis.benchmarks.spark.made_trace import write_made_trace
from octopis.benchmarks.spark.parts import Part
from octopis.benchmarks.spark.readings import any_data
from octopis.benchmarks.spark.streaming import sink_rows_per_s, source_figures
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import from_catalogue
from octopis.pipeline.ingest.folder import read_data
from octopis.pipeline.ingest.ingest import ingest, ingest_synthetic
from octopis.pipeline.ingest.quotes import DAYS
from octopis.pipeline.results.metrics import write_results
from octopis.pipeline.runs.run_table import Run, RunTable
from octopis.pipeline.runs.sweep import sweep
from octopis.pipeline.scenarios.build import build
from octopis.pipeline.scenarios.truth import (
    PAIRS_TABLE,
    Oracle,
    read_notifications,
    write_matches,
    write_truth,
)
from octopis.pipeline.schemas import PAIRS
from octopis.pipeline.spark.session import open_spark
from octopis.scenario.folder import read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.stock import daily_quotes
from octopis.scenario.tables import Subscriber
from octopis.trace import Level

MASTER = "local[2]"
SUBSCRIPTIONS = 10_000
PUBLISHERS = 134
NOTIFICATIONS_EACH = 1_000
DELIVERIES = 20_000_000
STREAMED = 2_000_000
WRITTEN = 500_000
NAIVE_SHARE = 10
RUNS = 8
_KINDS = {"string": pa.string(), "double": pa.float64(), "bigint": pa.int64()}


def run(
    scale: float,
    seed: int,
    settings: Mapping[str, str] | None = None,
    only: Collection[Part] = tuple(Part),
) -> Iterator[PipelineFigure]:
    """Yield the figures of some parts one after the other, at a share of the full size."""
    in_session = {
        Part.INGEST: _ingest,
        Part.TRUTH: _truth,
        Part.METRICS: _metrics,
        Part.READINGS: any_data,
        Part.STREAMING: _streaming,
    }
    with TemporaryDirectory(prefix="octopis-bench-") as parent:
        folder = Path(parent)
        if set(only) - {Part.SWEEP}:
            with open_spark(MASTER, settings) as spark:
                for part, figures in in_session.items():
                    if part in only:
                        yield from figures(spark, folder, scale, seed)
        if Part.SWEEP in only:
            yield _sweep(folder, scale, seed, settings)


def _ingest(spark: SparkSession, folder: Path, scale: float, seed: int) -> Iterator[PipelineFigure]:
    columns = daily_quotes(seed, max(2, round(DAYS * scale)))
    names = ("date", "symbol", "open", "high", "low", "close", "volume")
    lines = map(",".join, zip(*(map(str, columns[name]) for name in names), strict=True))
    text = "\n".join([",".join(names), *lines])
    (folder / "quotes.csv").write_text(text, encoding="utf-8")
    took_s = timed(lambda: ingest(spark, [folder / "quotes.csv"], folder / "ingested"))
    yield PipelineFigure("ingest", f"{len(columns['date']):,} rows", took_s, "s", "at most 15")


def _truth(spark: SparkSession, folder: Path, scale: float, seed: int) -> Iterator[PipelineFigure]:
    ingest_synthetic(spark, seed, DAYS if scale > 0.1 else 12, folder / "quotes")
    plan = ScenarioPlan(
        routing=RoutingOptions(Algorithm.SNR),
        topology=from_catalogue("paper"),
        subscribers=round(SUBSCRIPTIONS * scale),
        publishers=PUBLISHERS,
        notifications_each=max(NAIVE_SHARE, round(NOTIFICATIONS_EACH * scale)),
        seed=seed,
    )
    size = f"{plan.publishers * plan.notifications_each:,} x {plan.subscribers:,}"
    quotes = read_data(spark, folder / "quotes")
    took_s = timed(lambda: build(spark, quotes, plan, folder / "s"))
    yield PipelineFigure("workload", size, took_s, "s")
    scenario = read_scenario(folder / "s")
    with worker_memory() as peak:
        took_s = timed(lambda: write_truth(spark, scenario, folder / "truth"))
    whole = spark.read.parquet(str(folder / "truth" / PAIRS_TABLE)).count()
    yield PipelineFigure("ground truth", size, took_s, "s", "at most 60")
    yield PipelineFigure(
        "ground truth, pairs", f"{whole:,} pairs", 1e6 * took_s / whole, "us per pair"
    )
    yield PipelineFigure(
        "ground truth, Python workers together", size, peak.mb, "MB", "at most 3,000"
    )

    # Both plans on the same tenth of the notifications; the naive one makes only the pairs.
    tenth = read_notifications(spark, scenario).where(f"sequence % {NAIVE_SHARE} = 0").persist()
    tenth.count()
    oracle = Oracle.of(scenario.subscribers)
    ours = folder / "ours"
    ours.mkdir()
    ours_s = timed(lambda: write_matches(spark, tenth, oracle, ours))
    naive = naive_pairs(spark, tenth, scenario.subscribers)
    naive_s = timed(lambda: naive.write.parquet(str(folder / "naive.parquet")))
    count = spark.read.parquet(str(ours / PAIRS_TABLE)).count()
    assert count == spark.read.parquet(str(folder / "naive.parquet")).count()
    tenth.unpersist()
    size = f"{count:,} pairs"
    yield PipelineFigure("pairs by the index, a tenth", size, 1e6 * ours_s / count, "us per pair")
    yield PipelineFigure("pairs by cross join, a tenth", size, 1e6 * naive_s / count, "us per pair")
    yield PipelineFigure("cross join over index, both a tenth", size, naive_s / ours_s, "times")
    ratio = (naive_s / count) / (took_s / whole)
    yield PipelineFigure(
        "cross join over ground truth, per pair", size, ratio, "times", "at least 10"
    )


def naive_pairs(
    spark: SparkSession, notifications: DataFrame, subscribers: list[Subscriber]
) -> DataFrame:
    """Return the pairs of the ground truth by the plan that comes to mind first: a cross join.

    All filters must be plain ranges.
    """
    ranges = [bounds(each.filter) for each in subscribers]
    columns = {"subscription": pa.array([each.subscription for each in subscribers])}
    attributes: Any = notifications.schema["attributes"].dataType
    for field in attributes:
        kind = _KINDS[field.dataType.simpleString()]
        for end, place in (("low", 0), ("high", 1)):
            values = [each[field.name][place] if field.name in each else None for each in ranges]
            columns[f"{field.name}_{end}"] = pa.array(values, kind)
    wanted = spark.createDataFrame(pa.table(columns))
    holds = F.lit(True)
    for name in attributes.names:
        value = F.col(f"attributes.{name}")
        inside = value.between(F.col(f"{name}_low"), F.col(f"{name}_high"))
        holds &= F.col(f"{name}_low").isNull() | inside
    return notifications.join(F.broadcast(wanted), holds, how="inner").select(*PAIRS.fieldNames())


def _metrics(
    spark: SparkSession, folder: Path, scale: float, seed: int
) -> Iterator[PipelineFigure]:
    count = round(DELIVERIES * scale)
    trace = write_made_trace(folder / "trace", count, seed)
    took_s = timed(lambda: write_results(spark, [trace], folder / "metrics"))
    yield PipelineFigure("metrics", f"{count:,} deliveries", took_s, "s", "at most 60")


def _streaming(
    spark: SparkSession,
    folder: Path,
    scale: float,
    seed: int,  # noqa: ARG001 - as others have it
) -> Iterator[PipelineFigure]:
    found = source_figures(spark, folder / "streaming", max(2_000, round(STREAMED * scale)))
    size = f"{found.rows:,} rows of 10 columns"
    goal = "at least 200,000"
    yield PipelineFigure("streaming source, large batches", size, found.rows_per_s, "rows/s", goal)
    size = f"{len(found.small_s)} batches of 1 row"
    middle = median(found.small_s)
    yield PipelineFigure("streaming source, small batches", size, middle, "s", "at most 0.4")
    rows = max(2_000, round(WRITTEN * scale))
    rows_per_s = sink_rows_per_s(spark, folder / "sink", rows)
    size = f"{rows:,} rows read and published"
    goal = "at least 40,000"
    yield PipelineFigure("streaming source and sink", size, rows_per_s, "rows/s", goal)


def _sweep(
    folder: Path, scale: float, seed: int, settings: Mapping[str, str] | None
) -> PipelineFigure:
    plans = [
        ScenarioPlan(
            routing=RoutingOptions(Algorithm.SNR),
            name=f"run{number}",
            topology=from_catalogue("paper"),
            subscribers=max(50, round(3_000 * scale)),
            publishers=100,
            notifications_each=max(2, round(200 * scale)),
            seed=seed,
        )
        for number in range(RUNS)
    ]
    runs = tuple(Run(f"{plan.name}-snr", Algorithm.SNR, None, plan) for plan in plans)
    table = RunTable(runs, Level.DELIVERIES)
    took_s = {}
    for cores in (1, 2):
        with open_spark(f"local[{cores}]", settings) as spark:
            spark.range(2).count()
            took_s[cores] = timed(partial(sweep, spark, table, folder / f"sweep{cores}"))
    size = f"{RUNS} equal runs, {took_s[1]:.1f} s on 1 core, {took_s[2]:.1f} s on 2"
    return PipelineFigure(
        "sweep, 2 cores over 1", size, 100 * took_s[2] / took_s[1], "%", "at most 60"
    )
