"""The same seed gives the same tables, on any number of partitions and in any order."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from octopis.pipeline.ingest.folder import read_data
from octopis.pipeline.ingest.ingest import ingest
from octopis.pipeline.ingest.quotes import synthetic_quotes
from octopis.pipeline.results.check import compare
from octopis.pipeline.results.metrics import run_metrics
from octopis.pipeline.scenarios.build import build
from octopis.pipeline.scenarios.truth import (
    PAIRS_TABLE,
    TARGETS_TABLE,
    Oracle,
    pairs,
    read_notifications,
    write_matches,
)
from octopis.pipeline.spark.traces import Traces, read_trace
from octopis.scenario.folder import FILES, read_scenario
from octopis.scenario.tables import part_files
from support.quotes import HEADER, csv_rows, write_lines
from support.traces import make_scenario, make_trace, small_plan

PARTITIONS = (1, 2, 7)


def on_partitions(spark: SparkSession, count: int, make) -> list:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(count))
    try:
        return make(count)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def rows_of(frame: DataFrame) -> list:
    return sorted(map(tuple, frame.collect()), key=str)


def test_scenario_is_the_same_to_the_byte(spark: SparkSession, tmp_path: Path):
    quotes = synthetic_quotes(spark, 1, 8)
    rows = quotes.frame.persist()
    plan = small_plan(high_rate_notifications=20)

    def files(count: int) -> list[bytes]:
        folder = tmp_path / str(count)
        ordered = rows.orderBy("close" if count == 2 else "date")
        build(spark, quotes._replace(frame=ordered.repartition(count)), plan, folder)
        return [part.read_bytes() for name in FILES for part in part_files(folder / name)]

    first, *others = [on_partitions(spark, count, files) for count in PARTITIONS]
    rows.unpersist()
    assert all(other == first for other in others)


def test_quotes_are_the_same_in_any_order_of_rows(spark: SparkSession, tmp_path: Path):
    rows = csv_rows(symbols=4, days=6)
    write_lines(tmp_path / "forward.csv", HEADER, *rows)
    write_lines(tmp_path / "backward.csv", HEADER, *reversed(rows))
    found = []
    for count, name in zip(PARTITIONS, ("forward", "backward", "forward"), strict=True):

        def quotes(count: int, name: str = name) -> list:
            out = tmp_path / f"{count}"
            ingest(spark, [tmp_path / f"{name}.csv"], out)
            return rows_of(read_data(spark, out).frame)

        found.append(on_partitions(spark, count, quotes))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 24


def test_truth_is_the_same(spark: SparkSession, tmp_path: Path):
    scenario = read_scenario(make_scenario(tmp_path / "s"))
    oracle = Oracle.of(scenario.subscribers)
    notifications = read_notifications(spark, scenario)

    def truth(count: int) -> list:
        folder = tmp_path / str(count)
        folder.mkdir()
        write_matches(spark, notifications.repartition(count), oracle, folder)
        tables = [pq.read_table(folder / name) for name in (PAIRS_TABLE, TARGETS_TABLE)]
        return [sorted(table.to_pylist(), key=str) for table in tables]

    first, *others = [on_partitions(spark, count, truth) for count in PARTITIONS]
    assert first[0]
    assert all(other == first for other in others)


@pytest.mark.parametrize("count", PARTITIONS)
def test_metrics_and_comparison_are_the_same(spark: SparkSession, tmp_path: Path, count: int):
    scenario = read_scenario(make_scenario(tmp_path / "s", high_rate_notifications=50))
    trace = make_trace(scenario.folder, tmp_path / "t")

    def measured(_count: int) -> list:
        deliveries = read_trace(spark, trace, "deliveries")
        truth = pairs(spark, read_notifications(spark, scenario), Oracle.of(scenario.subscribers))
        faults = compare(truth, deliveries).where("fault is not null")
        return [rows_of(run_metrics(Traces(spark, [trace]))), rows_of(faults)]

    assert on_partitions(spark, count, measured) == on_partitions(spark, 3, measured)
