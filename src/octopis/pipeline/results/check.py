"""The deliveries of a trace against the ground truth of its scenario: row by row, or as a whole.

`check` names every delivery that is lost, came twice, was not asked for or came out of order.
`fingerprints` only tell whether two tables hold the same rows, in one pass over each and without
joining them: how many rows there are, and two sums over a hash of each, do not depend on their
order. That two different tables agree by chance is one case in 2^64.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from octopis.errors import InvalidConfiguration
from octopis.pipeline.scenarios.truth import read_notifications, true_pairs
from octopis.pipeline.schemas import PAIRS
from octopis.pipeline.spark.traces import open_trace, read_trace
from octopis.scenario.folder import Scenario
from octopis.trace import RunSummary

LOST = "lost"
TWICE = "delivered twice"
UNASKED = "not asked for"
UNORDERED = "out of order"
FAULTS = (LOST, TWICE, UNASKED, UNORDERED)
SHOWN = 5
_KEY = PAIRS.fieldNames()
FINGERPRINT = ("rows", "hash_xor", "hash_sum")
"""What a fingerprint consists of."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How many deliveries are wrong in which way, and the first of each."""

    due: int | None
    """None where nobody has said what was due: then no fault that follows from it is counted."""
    delivered: int
    faults: dict[str, int]
    examples: list[dict[str, Any]]


def check(
    spark: SparkSession, trace: Path, scenario: Scenario | None, shown: int = SHOWN
) -> Verdict:
    """Compare a trace with what its scenario asks for.

    A live run has a scenario where one was played; without it, only what came twice or out of
    order can be told. Raises InvalidConfiguration where the run is not one of the scenario.
    """
    summary = open_trace(trace)
    deliveries = read_trace(spark, trace, "deliveries").select(*_KEY, "delivered_ns")
    kinds: tuple[str, ...] = FAULTS
    if scenario is None:
        kinds = (TWICE, UNORDERED)
        compared = repeated(deliveries)
    else:
        _check_origin(trace, summary, scenario)
        if summary.source == "live":
            deliveries = as_in_scenario(deliveries, read_notifications(spark, scenario))
        compared = compare(true_pairs(spark, scenario), deliveries)
    unordered = out_of_order(deliveries)
    totals = (
        compared.groupBy("fault")
        .agg(F.count("*").alias("pairs"), F.sum("wanted").alias("due"), F.sum("got").alias("came"))
        .collect()
    )
    counts = {row["fault"]: int(row["pairs"]) for row in totals}
    counts[UNORDERED] = unordered.count()
    faults = {fault: counts.get(fault, 0) for fault in kinds}
    return Verdict(
        None if scenario is None else sum(int(row["due"]) for row in totals),
        sum(int(row["came"]) for row in totals),
        faults,
        _first(compared, unordered, shown) if any(faults.values()) else [],
    )


def _check_origin(trace: Path, summary: RunSummary, scenario: Scenario) -> None:
    if summary.source == "simulator" and summary.scenario_digest != scenario.digest:
        raise InvalidConfiguration(f"{trace} was not run from {scenario.folder}: it differs")
    if summary.source == "live" and summary.notifications != scenario.notification_count:
        raise InvalidConfiguration(
            f"{summary.notifications:,} notifications were published in {trace}, and "
            f"{scenario.folder} has {scenario.notification_count:,}: "
            "play the scenario once, and nothing else, to check it"
        )


def as_in_scenario(deliveries: DataFrame, notifications: DataFrame) -> DataFrame:
    """Return live deliveries with the scenario's numbers of notifications.

    Clients number what they publish from 1 on, in the scenario's order.
    """
    in_order = Window.partitionBy("publisher").orderBy("sequence")
    numbers = notifications.select(
        "publisher",
        F.col("sequence").alias("in_scenario"),
        F.row_number().over(in_order).cast("long").alias("sequence"),
    )
    return deliveries.join(numbers, ["publisher", "sequence"], how="left").select(
        "publisher",
        F.coalesce("in_scenario", "sequence").alias("sequence"),
        "subscription",
        "delivered_ns",
    )


def repeated(deliveries: DataFrame) -> DataFrame:
    """Count how often each delivery came, where nobody knows which were due."""
    counted = deliveries.groupBy(*_KEY).agg(F.count("*").alias("got"))
    fault = F.when(F.col("got") > 1, TWICE)
    return counted.select(*_KEY, F.lit(0).alias("wanted"), "got", fault.alias("fault"))


def compare(pairs: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Count for each notification and subscription how often it was due and came.

    One aggregation over both tables says everything: no join of millions with millions.
    """
    due = pairs.select(*_KEY, F.lit(1).alias("wanted"), F.lit(0).alias("got"))
    came = deliveries.select(*_KEY, F.lit(0).alias("wanted"), F.lit(1).alias("got"))
    counted = (
        due.unionByName(came)
        .groupBy(*_KEY)
        .agg(F.sum("wanted").alias("wanted"), F.sum("got").alias("got"))
    )
    fault = (
        F.when(F.col("wanted") == 0, UNASKED)
        .when(F.col("got") == 0, LOST)
        .when(F.col("got") > 1, TWICE)
    )
    return counted.select(*_KEY, "wanted", "got", fault.alias("fault"))


def out_of_order(deliveries: DataFrame) -> DataFrame:
    """Return deliveries that came after a later notification of the same publisher."""
    so_far = (
        Window.partitionBy("subscription", "publisher")
        .orderBy("delivered_ns", "sequence")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    latest = deliveries.withColumn("latest", F.max("sequence").over(so_far))
    return latest.where(F.col("sequence") < F.col("latest")).select(
        *_KEY, "delivered_ns", F.lit(UNORDERED).alias("fault")
    )


def fingerprints(pairs: DataFrame) -> DataFrame:
    """Return one row for each `run`: its number of pairs, and the two sums."""
    counted = pairs.groupBy("run").agg(F.count("*").alias("rows"), *hash_sums())
    return counted.select("run", *FINGERPRINT).orderBy("run")


def hash_sums() -> list[Column]:
    """Return the two sums over a group of pairs."""
    hashed = F.xxhash64(*PAIRS.fieldNames())
    # Half of the bits: so many fit that no table on a disk can overflow.
    half = F.shiftrightunsigned(hashed, 32)
    return [F.bit_xor(hashed).alias("hash_xor"), F.sum(half).alias("hash_sum")]


def summed_fingerprints(groups: DataFrame) -> DataFrame:
    """Return the fingerprints of runs of which groups have `rows` and the two sums already."""
    sums = F.sum("rows"), F.bit_xor("hash_xor"), F.sum("hash_sum")
    named = [each.alias(name) for each, name in zip(sums, FINGERPRINT, strict=True)]
    return groups.groupBy("run").agg(*named).select("run", *FINGERPRINT).orderBy("run")


def _first(compared: DataFrame, unordered: DataFrame, shown: int) -> list[dict[str, Any]]:
    """Return the first faults of each kind; a second pass, which only faults have to pay for."""
    wrong = compared.where(F.col("fault").isNotNull()).select("fault", *_KEY)
    wrong = wrong.unionByName(unordered.select("fault", *_KEY))
    place = F.row_number().over(Window.partitionBy("fault").orderBy(*_KEY))
    first = wrong.withColumn("place", place).where(F.col("place") <= shown).drop("place")
    rows = [row.asDict() for row in first.collect()]
    return sorted(rows, key=lambda row: (FAULTS.index(row["fault"]), *(row[key] for key in _KEY)))
