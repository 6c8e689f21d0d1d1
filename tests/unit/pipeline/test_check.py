import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from octopis.errors import InvalidConfiguration
from octopis.pipeline.results.check import LOST, TWICE, UNASKED, UNORDERED, check, fingerprints
from octopis.scenario.folder import Scenario, read_scenario
from support.traces import make_scenario, make_trace, rewrite


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return read_scenario(make_scenario(tmp_path / "s"))


@pytest.fixture
def trace(scenario: Scenario, tmp_path: Path) -> Path:
    return make_trace(scenario.folder, tmp_path / "trace")


def test_sound_trace_has_no_fault(spark: SparkSession, scenario: Scenario, trace: Path):
    verdict = check(spark, trace, scenario)
    assert verdict.due == verdict.delivered > 0
    assert set(verdict.faults.values()) == {0}
    assert verdict.examples == []


def test_each_fault_is_found_and_shown(spark: SparkSession, scenario: Scenario, trace: Path):
    changed: dict[str, tuple] = {}

    def spoil(rows: pa.Table) -> pa.Table:
        plain = rows.to_pylist()
        key = ("publisher", "sequence", "subscription")
        lost = plain.pop(0)
        twice = plain[0]
        unasked = {**plain[1], "subscription": lost["subscription"], "sequence": 999}
        last = max(
            plain[2:], key=lambda row: (row["sequence"], row["publisher"], row["subscription"])
        )
        # The same subscriber gets an earlier one of the same publisher later: made, not found.
        first = {**last, "sequence": -1, "delivered_ns": last["delivered_ns"] + 1}
        for name, row in ((LOST, lost), (TWICE, twice), (UNASKED, unasked), (UNORDERED, first)):
            changed[name] = tuple(row[part] for part in key)
        return pa.Table.from_pylist([*plain, twice, unasked, first], rows.schema)

    rewrite(trace, "deliveries", spoil)
    verdict = check(spark, trace, scenario)
    assert verdict.faults == {LOST: 1, TWICE: 1, UNASKED: 2, UNORDERED: 1}
    shown = {
        (row["fault"], row["publisher"], row["sequence"], row["subscription"])
        for row in verdict.examples
    }
    assert {(name, *row) for name, row in changed.items()} <= shown
    assert len(verdict.examples) == 5


def test_trace_of_another_scenario_is_refused(spark: SparkSession, trace: Path, tmp_path: Path):
    other = read_scenario(make_scenario(tmp_path / "other", seed=2))
    with pytest.raises(InvalidConfiguration, match="was not run from"):
        check(spark, trace, other)


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
