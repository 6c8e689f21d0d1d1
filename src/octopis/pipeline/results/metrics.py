"""What is measured, from traces of simulated and live runs alike, and written as tables.

Most tables have one row for each run. Times are nanoseconds. Sums are of integers, so that no
result depends on how rows were cut.
"""

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from octopis.files import whole_folder
from octopis.pipeline.results.check import hash_sums, summed_fingerprints
from octopis.pipeline.spark.session import cached
from octopis.pipeline.spark.traces import Traces
from octopis.trace import RunSummary

BLOCK = 1_000
SECOND_NS = 1_000_000_000
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

USUAL = ("metrics", "cases", "queues", "stability", "queue_series")
"""Tables that everybody gets; `fingerprints` is for who asks."""


def write_results(
    spark: SparkSession, folders: list[Path], out: Path, wanted: Collection[str] = USUAL
) -> list[dict[str, object]]:
    """Measure the traces, leave the wanted tables in a new folder, return the rows of metrics."""
    traces = Traces(spark, folders)
    rows: list[dict[str, object]] = []
    with whole_folder(out) as folder, measured(spark, traces, wanted) as tables:
        for name, frame in tables.items():
            table = frame.toArrow()  # small: a row for each run, queue, window or 1,000 deliveries
            pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
            pa_csv.write_csv(table, folder / f"{name}.csv")
            if name == "metrics":
                rows = table.to_pylist()
    return rows


@contextmanager
def measured(
    spark: SparkSession, traces: Traces, wanted: Collection[str]
) -> Iterator[dict[str, DataFrame]]:
    """Give the wanted tables, as far as the traces tell; each is computed when it is asked for."""
    links, queues = traces.table("links"), traces.table("queues")
    deliveries = traces.table("deliveries")
    tables = {"cases": case_counts(spark, traces.summaries)}
    if links is not None:
        tables["queues"] = queue_metrics(links, traces.summary_frame())
    if queues is not None:
        tables["queue_series"] = queue_series(queues)
    if deliveries is not None:
        tables["stability"] = stability_series(deliveries)
    with ExitStack() as stack:
        counts = None
        if deliveries is not None:
            hashed = "fingerprints" in wanted
            counts = stack.enter_context(cached(delay_counts(deliveries, hashed=hashed)))
            if hashed:
                tables["fingerprints"] = summed_fingerprints(counts)
        tables["metrics"] = run_metrics(traces, counts)
        yield {name: tables[name] for name in wanted if name in tables}


def run_metrics(traces: Traces, counts: DataFrame | None = None) -> DataFrame:
    """Return one row of metrics for each run; null where its level does not tell.

    `counts` are the runs' `delay_counts`, if these were made already.
    """
    metrics = traces.summary_frame()
    subscriptions, publications = traces.table("subscriptions"), traces.table("publications")
    deliveries = traces.table("deliveries")
    if subscriptions is not None:
        metrics = metrics.join(subscription_metrics(subscriptions), "run", how="left")
    if publications is not None:
        metrics = metrics.join(matching_metrics(publications), "run", how="left")
    if deliveries is not None:
        counted = delay_counts(deliveries) if counts is None else counts
        metrics = metrics.join(metrics_of_counts(counted), "run", how="left")
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


def delay_metrics(deliveries: DataFrame) -> DataFrame:
    """Return means, quantiles and the share within a second, for each run."""
    return metrics_of_counts(delay_counts(deliveries))


def delay_counts(deliveries: DataFrame, *, hashed: bool = False) -> DataFrame:
    """Return what deliveries of each run and about the same delay have in common.

    One pass over the deliveries says everything that is asked of them later. Delays are cut to
    four digits, so that this is a small table whatever the number of deliveries. With `hashed`
    it also has the sums of which fingerprints are made.
    """
    digits = F.floor(F.log10(F.greatest(F.abs("delay_ns"), F.lit(1)))) - 3
    unit = F.pow(F.lit(10), F.greatest(digits, F.lit(0)))
    rounded = (F.floor(F.col("delay_ns") / unit) * unit).cast("long")
    return deliveries.groupBy("run", rounded.alias("rounded_ns")).agg(
        F.count("delay_ns").alias("timed"),
        F.sum("delay_ns").alias("delay_sum"),
        F.max("delay_ns").alias("delay_max"),
        F.count_if(F.col("delay_ns") <= SECOND_NS).alias("within"),
        F.count("*").alias("rows"),
        F.sum("hops").alias("hops_sum"),
        F.max("hops").alias("hops_max"),
        *(hash_sums() if hashed else ()),
    )


def metrics_of_counts(counts: DataFrame) -> DataFrame:
    """Return the metrics that `delay_counts` tell.

    A table of counts takes the place of a sort for the quantiles, and every way of cutting the
    rows gives the same answer.
    """
    ascending = Window.partitionBy("run").orderBy("rounded_ns")
    whole = Window.partitionBy("run")
    share = F.try_divide(F.sum("timed").over(ascending), F.sum("timed").over(whole))
    ranked = counts.withColumn("below", share)
    return ranked.groupBy("run").agg(
        F.sum("timed").alias("deliveries_timed"),
        F.try_divide(F.sum("delay_sum"), F.sum("timed")).alias("notification_delay_mean_ns"),
        *(
            F.min(F.when(F.col("below") >= share, F.col("rounded_ns"))).alias(
                f"notification_delay_{name}_ns"
            )
            for name, share in QUANTILES.items()
        ),
        F.max("delay_max").alias("notification_delay_max_ns"),
        F.try_divide(F.sum("within"), F.sum("timed")).alias("delivered_within_1s_share"),
        (F.sum("hops_sum") / F.sum("rows")).alias("path_length_mean"),
        F.max("hops_max").alias("path_length_max"),
    )


def stability_series(deliveries: DataFrame, block: int = BLOCK) -> DataFrame:
    """Return the longest delay of each block of deliveries, in the order they came, for each run.

    Numbering millions of rows in one window would be the work of one task. So the rows are
    numbered within each second, and the seconds before are counted and added up.
    """
    seconds = deliveries.select(
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
    """Return the mean of whole numbers: their sum is exact, so the order does not matter.

    It is null where there is none, as in columns that a live broker cannot know.
    """
    return F.try_divide(F.sum(value), F.count(value))
