import random

import pytest
from pyspark.sql import DataFrame, SparkSession

from octopis.pipeline.results.check import fingerprints

PAIRS = [(f"p{n % 3}", n, f"s{n % 7}") for n in range(200)]


def frame(spark: SparkSession, pairs: list[tuple[str, int, str]]) -> DataFrame:
    rows = [("run", *pair) for pair in pairs]
    return spark.createDataFrame(
        rows, "run string, publisher string, sequence long, subscription string"
    )


def fingerprint(spark: SparkSession, pairs: list[tuple[str, int, str]]) -> tuple[int, ...]:
    (row,) = fingerprints(frame(spark, pairs)).collect()
    return tuple(row)


def test_order_and_partitions_do_not_matter(spark: SparkSession):
    mixed = random.Random(1).sample(PAIRS, len(PAIRS))  # noqa: S311 - nothing secret
    (spread,) = fingerprints(frame(spark, mixed).repartition(7)).collect()
    assert tuple(spread) == fingerprint(spark, PAIRS)
    assert spread["rows"] == 200


@pytest.mark.parametrize(
    "wrong",
    [
        PAIRS[1:],
        [*PAIRS, PAIRS[0]],
        [PAIRS[0], PAIRS[0], *PAIRS[2:]],
        [PAIRS[0], PAIRS[0], PAIRS[0], *PAIRS[1:]],
        [("p9", *PAIRS[0][1:]), *PAIRS[1:]],
        [("p0", 999, "s0"), *PAIRS[1:]],
    ],
    ids=["lost", "twice", "lost and twice", "three times", "another publisher", "another number"],
)
def test_every_fault_changes_it(spark: SparkSession, wrong: list[tuple[str, int, str]]):
    assert fingerprint(spark, wrong) != fingerprint(spark, PAIRS)


def test_runs_are_told_apart(spark: SparkSession):
    rows = [("a", "p", 1, "s"), ("b", "p", 1, "s"), ("b", "p", 2, "s")]
    pairs = spark.createDataFrame(
        rows, "run string, publisher string, sequence long, subscription string"
    )
    found = {row["run"]: row["rows"] for row in fingerprints(pairs).collect()}
    assert found == {"a": 1, "b": 2}
