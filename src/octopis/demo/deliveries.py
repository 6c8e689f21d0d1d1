"""Every delivery of every round, against the ground truth, on Spark."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from octopis.core.routing import Algorithm
from octopis.demo.rounds import Round
from octopis.pipeline.results.check import LOST, TWICE, UNASKED, compare, out_of_order
from octopis.pipeline.results.metrics import delay_metrics
from octopis.pipeline.scenarios.truth import true_pairs
from octopis.scenario.folder import Scenario

DELIVERIES = pa.schema(
    [
        ("algorithm", pa.string()),
        ("publisher", pa.string()),
        ("sequence", pa.int64()),
        ("subscription", pa.string()),
        ("delivered_ns", pa.int64()),
        ("delay_ns", pa.int64()),
    ]
)
"""What subscribers' programs got, and when; `delay_ns` is from the intended time."""


@dataclass(frozen=True)
class RoundVerdict:
    """How the deliveries of one round compare with what was due."""

    due: int
    delivered: int
    lost: int
    twice: int
    unasked: int
    overtaken: int
    """Deliveries that came after a later notification of the same publisher."""

    delay_median_ms: float | None
    delay_p99_ms: float | None

    @property
    def faults(self) -> dict[str, int]:
        """What may not happen, and how often it did."""
        counts = {LOST: self.lost, TWICE: self.twice, UNASKED: self.unasked}
        return {name: count for name, count in counts.items() if count}


def write_deliveries(rounds: Sequence[Round], path: Path) -> None:
    """Write what all rounds delivered into one Parquet file."""
    tables = [_table(each) for each in rounds]
    pq.write_table(pa.concat_tables(tables), path, compression="zstd")


def check_deliveries(
    spark: SparkSession, scenario: Scenario, path: Path, algorithms: Iterable[Algorithm]
) -> dict[Algorithm, RoundVerdict]:
    """Return how the deliveries of each algorithm in the file compare with the ground truth."""
    deliveries = spark.read.parquet(str(path.absolute()))
    pairs = true_pairs(spark, scenario)
    runs = [(each.value, deliveries.where(F.col("algorithm") == each.value)) for each in algorithms]
    compared = _of_all((name, compare(pairs, rows)) for name, rows in runs)
    counts = compared.groupBy("run").agg(
        F.sum("wanted").alias("due"),
        F.sum("got").alias("delivered"),
        *(F.count_if(F.col("fault") == fault).alias(fault) for fault in (LOST, TWICE, UNASKED)),
    )
    overtaken = _of_all((name, out_of_order(rows)) for name, rows in runs)
    overtaken = overtaken.groupBy("run").agg(F.count("*").alias("overtaken"))
    delays = deliveries.select(
        F.col("algorithm").alias("run"), "delay_ns", F.lit(None).cast("short").alias("hops")
    )
    joined = counts.join(overtaken, "run", how="left").join(
        delay_metrics(delays), "run", how="left"
    )
    return {Algorithm(row["run"]): _verdict(row) for row in joined.collect()}


def _verdict(row: Row) -> RoundVerdict:
    median_ns, p99_ns = row["notification_delay_p50_ns"], row["notification_delay_p99_ns"]
    return RoundVerdict(
        int(row["due"]),
        int(row["delivered"]),
        int(row[LOST]),
        int(row[TWICE]),
        int(row[UNASKED]),
        int(row["overtaken"] or 0),
        None if median_ns is None else median_ns / 1e6,
        None if p99_ns is None else p99_ns / 1e6,
    )


def _of_all(frames: Iterable[tuple[str, DataFrame]]) -> DataFrame:
    named = [frame.select(F.lit(name).alias("run"), "*") for name, frame in frames]
    return reduce(DataFrame.unionByName, named)


def _table(played: Round) -> pa.Table:
    came = played.played
    columns = [
        [played.algorithm.value] * len(came.deliveries),
        [publisher for publisher, _, _ in came.deliveries],
        [sequence for _, sequence, _ in came.deliveries],
        [subscription for _, _, subscription in came.deliveries],
        came.delivered_ns,
        came.delays_ns,
    ]
    return pa.table(columns, schema=DELIVERIES)
