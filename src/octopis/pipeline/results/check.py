"""The deliveries of a trace against the ground truth of its scenario: row by row, or as a whole.

`check` names every delivery that is lost, came twice, was not asked for or came out of order.
`fingerprints` only tell whether two tables hold the same rows, in one pass over each and without
joining them: how many rows there are, and two sums over a hash of each, do not depend on their
order. That two different tables agree by chance is one case in 2^64.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from octopis.errors import InvalidConfiguration
from octopis.pipeline.scenarios.truth import true_pairs
from octopis.pipeline.schemas import PAIRS
from octopis.pipeline.spark.session import cached
from octopis.pipeline.spark.traces import open_trace, read_trace
from octopis.scenario.folder import Scenario

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

    due: int
    delivered: int
    faults: dict[str, int]
    examples: list[dict[str, Any]]


def check(spark: SparkSession, trace: Path, scenario: Scenario, shown: int = SHOWN) -> Verdict:
    """Compare a trace with what its scenario asks for."""
    summary = open_trace(trace)
    if summary.scenario_digest != scenario.digest:
        raise InvalidConfiguration(f"{trace} was not run from {scenario.folder}: it differs")
    deliveries = read_trace(spark, trace, "deliveries").select(*_KEY, "delivered_ns")
    with (
        cached(compare(true_pairs(spark, scenario), deliveries)) as compared,
        cached(out_of_order(deliveries)) as unordered,
    ):
        totals = compared.agg(
            F.sum("wanted").alias("due"),
            F.sum("got").alias("delivered"),
            *(F.count_if(F.col("fault") == fault).alias(fault) for fault in FAULTS[:3]),
        ).first()
        assert totals is not None
        faults = {fault: int(totals[fault] or 0) for fault in FAULTS[:3]}
        faults[UNORDERED] = unordered.count()
        examples = [
            row
            for fault in FAULTS
            if faults[fault]
            for row in _first(unordered if fault == UNORDERED else compared, fault, shown)
        ]
    return Verdict(int(totals["due"] or 0), int(totals["delivered"] or 0), faults, examples)


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
    hashed = F.xxhash64(*PAIRS.fieldNames())
    return (
        pairs.select("run", hashed.alias("hash"))
        .groupBy("run")
        .agg(
            F.count("*").alias("rows"),
            F.bit_xor("hash").alias("hash_xor"),
            # Half of the bits: so many fit that no table on a disk can overflow.
            F.sum(F.shiftrightunsigned("hash", 32)).alias("hash_sum"),
        )
        .select("run", *FINGERPRINT)
        .orderBy("run")
    )


def _first(frame: DataFrame, fault: str, shown: int) -> list[dict[str, Any]]:
    rows = frame.where(F.col("fault") == fault).orderBy("publisher", "sequence", "subscription")
    return [row.asDict() for row in rows.select("fault", *_KEY).limit(shown).collect()]
