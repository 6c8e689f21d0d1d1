"""What is measured, from traces of simulated and live runs alike: one row for each run.

Times are nanoseconds. Sums are of integers, so that no result depends on how rows were cut.

The stability series: the maximum delay of each 1,000 deliveries, in the order they came.

Numbering millions of rows in one window would be the work of one task. So the rows are numbered
within each second, and the seconds before are counted and added up.
"""

from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from octopis.errors import InvalidConfiguration
from octopis.pipeline.spark.trace_folder import open_trace, read_trace
from octopis.trace import Level, RunSummary

BLOCK = 1_000


def stability_series(delays: DataFrame, block: int = BLOCK) -> DataFrame:
    """Return `run`, `block`, its deliveries, when the last came, and the longest delay."""
    seconds = delays.select(
        "run",
        F.floor(F.col("delivered_ns") / SECOND_NS).alias("second"),
        "delivered_ns",
        "delay_ns",
    )
    earlier = Window.partitionBy("run").orderBy("second").rowsBetween(Window.unboundedPreceding, -1)
    before = (
        seconds.groupBy("run", "second")
        .count()
        .select("run", "second", F.coalesce(F.sum("count").over(earlier), F.lit(0)).alias("before"))
    )
    # Rows that are equal in both are equal in everything that the series shows.
    in_order = Window.partitionBy("run", "second").orderBy("delivered_ns", "delay_ns")
    numbered = seconds.withColumn("number", F.row_number().over(in_order) - 1).join(
        F.broadcast(before), ["run", "second"], how="inner"
    )
    return (
        numbered.groupBy("run", F.floor((F.col("before") + F.col("number")) / block).alias("block"))
        .agg(
            F.count("*").alias("deliveries"),
            F.max("delivered_ns").alias("end_ns"),
            F.max("delay_ns").alias("delay_max_ns"),
        )
        .orderBy("run", "block")
    )


SECOND_NS = 1_000_000_000
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

SUMMARY_COLUMNS = (
    "scenario",
    "algorithm",
    "seed",
    "source",
    "state",
    "brokers",
    "subscriptions",
    "notifications",
    "deliveries",
    "deliveries_lost",
    "subscription_ims",
    "subscription_duplicates",
    "notification_ims",
    "sync_ims",
    "queue_length_max",
    "begin_ns",
    "end_ns",
)
"""What a run's summary counts exactly, whatever its level."""


class Traces:
    """Traces that were opened, each whole and with a name of its own."""

    def __init__(self, spark: SparkSession, folders: list[Path]) -> None:
        self._spark = spark
        self.summaries: dict[str, RunSummary] = {}
        self._folders: dict[str, Path] = {}
        for folder in folders:
            name = folder.absolute().name
            if name in self._folders:
                raise InvalidConfiguration(
                    f"{self._folders[name]} and {folder} have the same name: rename one"
                )
            self.summaries[name] = open_trace(folder)
            self._folders[name] = folder

    def table(self, table: str) -> DataFrame | None:
        """Return a table of all runs that have it, with `run` in front; None if none has."""
        frames = [
            read_trace(self._spark, self._folders[run], table).select(F.lit(run).alias("run"), "*")
            for run, summary in self.summaries.items()
            if table in Level(summary.level).tables
        ]
        return reduce(DataFrame.unionByName, frames) if frames else None

    def summary_frame(self) -> DataFrame:
        """Return one row of facts and counts for each run."""
        rows = [
            {"run": run, **{name: getattr(summary, name) for name in SUMMARY_COLUMNS}}
            for run, summary in self.summaries.items()
        ]
        return self._spark.createDataFrame(pa.Table.from_pylist(rows))


def run_metrics(traces: Traces) -> DataFrame:
    """Return one row of metrics for each run; null where its level does not tell."""
    metrics = traces.summary_frame()
    subscriptions = traces.table("subscriptions")
    publications, deliveries = traces.table("publications"), traces.table("deliveries")
    if subscriptions is not None:
        metrics = metrics.join(subscription_metrics(subscriptions), "run", how="left")
    if publications is not None and deliveries is not None:
        metrics = metrics.join(matching_metrics(publications), "run", how="left")
        delays = notification_delays(deliveries, publications)
        metrics = metrics.join(delay_metrics(delays), "run", how="left")
    return metrics.orderBy("run")


def subscription_metrics(subscriptions: DataFrame) -> DataFrame:
    """Return delay until the last broker has stored a subscription, and lengths of its tree."""
    delay = F.col("settled_ns") - F.col("subscribed_ns")
    # Means of means in a fixed order would need a sort; whole millionths add up in any order.
    tree = F.round(F.col("tree_length_mean") * 1_000_000).cast("long")
    return subscriptions.groupBy("run").agg(
        _mean(delay).alias("subscription_delay_mean_ns"),
        F.max(delay).alias("subscription_delay_max_ns"),
        (_mean(tree) / 1_000_000).alias("tree_length_mean"),
        F.max("tree_length_max").alias("tree_length_max"),
    )


def matching_metrics(publications: DataFrame) -> DataFrame:
    """Return the time spent matching, summed over the brokers on the way, per notification."""
    return publications.groupBy("run").agg(
        _mean(F.col("matching_ns")).alias("matching_delay_mean_ns"),
        F.max("matching_ns").alias("matching_delay_max_ns"),
    )


def notification_delays(deliveries: DataFrame, publications: DataFrame) -> DataFrame:
    """Return each delivery's `delay_ns`, from the intended time of publication.

    It is null where the notification was still under way when its run ended.
    """
    intended = publications.select("run", "publisher", "sequence", "intended_ns")
    return deliveries.join(intended, ["run", "publisher", "sequence"], how="left").select(
        "run",
        "delivered_ns",
        "hops",
        (F.col("delivered_ns") - F.col("intended_ns")).alias("delay_ns"),
    )


def delay_metrics(delays: DataFrame) -> DataFrame:
    """Return means, quantiles and the share within a second.

    Quantiles are of delays cut to four digits: a table of counts then takes the place of a sort,
    and every way of cutting the rows gives the same answer.
    """
    digits = F.floor(F.log10(F.greatest(F.abs("delay_ns"), F.lit(1)))) - 3
    unit = F.pow(F.lit(10), F.greatest(digits, F.lit(0)))
    counts = (
        delays.withColumn("rounded_ns", (F.floor(F.col("delay_ns") / unit) * unit).cast("long"))
        .groupBy("run", "rounded_ns")
        .agg(
            F.count("delay_ns").alias("timed"),
            F.sum("delay_ns").alias("delay_sum"),
            F.max("delay_ns").alias("delay_max"),
            F.count_if(F.col("delay_ns") <= SECOND_NS).alias("within"),
            F.count("*").alias("rows"),
            F.sum("hops").alias("hops_sum"),
            F.max("hops").alias("hops_max"),
        )
    )
    ascending = Window.partitionBy("run").orderBy("rounded_ns")
    whole = Window.partitionBy("run")
    ranked = counts.withColumn("below", F.sum("timed").over(ascending) / F.sum("timed").over(whole))
    return ranked.groupBy("run").agg(
        F.sum("timed").alias("deliveries_timed"),
        (F.sum("delay_sum") / F.sum("timed")).alias("notification_delay_mean_ns"),
        *(
            F.min(F.when(F.col("below") >= share, F.col("rounded_ns"))).alias(
                f"notification_delay_{name}_ns"
            )
            for name, share in QUANTILES.items()
        ),
        F.max("delay_max").alias("notification_delay_max_ns"),
        (F.sum("within") / F.sum("timed")).alias("delivered_within_1s_share"),
        (F.sum("hops_sum") / F.sum("rows")).alias("path_length_mean"),
        F.max("hops_max").alias("path_length_max"),
    )


def queue_metrics(links: DataFrame, summaries: DataFrame) -> DataFrame:
    """Return for each output queue its longest length, and its mean from the run's begin on."""
    duration = F.nullif(F.col("end_ns") - F.col("begin_ns"), F.lit(0))
    return (
        links.drop("queue_length_mean")
        .join(summaries.select("run", "begin_ns", "end_ns"), "run", how="inner")
        .select(
            "run",
            "source",
            "target",
            "link_kind",
            "subscription_ims",
            "notification_ims",
            "high_rate_ims",
            "queue_length_max",
            (F.col("waited_ns") / duration).alias("queue_length_mean"),
            "dropped",
        )
        .orderBy("run", "source", "target")
    )


def queue_series(queues: DataFrame) -> DataFrame:
    """Return for each window how much waits in all output queues, and in the longest."""
    return (
        queues.groupBy("run", "window_end_ns")
        .agg(
            F.sum("queue_length").alias("queued"),
            F.max("queue_length").alias("queue_length_max"),
            F.count_if("overloaded").alias("overloaded"),
        )
        .orderBy("run", "window_end_ns")
    )


def case_counts(spark: SparkSession, summaries: dict[str, RunSummary]) -> DataFrame:
    """Return how often each case of dynamic routing came up."""
    rows = [
        (run, case, count)
        for run, summary in summaries.items()
        for case, count in sorted(summary.dnr_cases.items())
    ]
    return spark.createDataFrame(rows, "run string, case string, count long")


def _mean(value: Column) -> Column:
    """Return the mean of whole numbers: their sum is exact, so the order does not matter."""
    return F.sum(value) / F.count(value)
