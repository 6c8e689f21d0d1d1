from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from octopis.pipeline.ingest.quotes import synthetic_quotes
from octopis.pipeline.scenarios.notifications import notifications, write_single_file
from octopis.pipeline.scenarios.subscriptions import shuffled
from octopis.scenario.clients import Clients, attribute_types
from support.traces import small_plan

KIND = pa.struct([("x", pa.int64())])
SCHEMA = "publisher string, sequence long, intended_ns long, attributes struct<x: long>"


def test_publishers_take_turns_with_the_quotes_and_start_again(spark: SparkSession):
    plan = small_plan(publishers=2, notifications_each=4, high_rate_notifications=3)
    quotes = shuffled(synthetic_quotes(spark, 1, 2), 1).where("number < 5")
    rows = notifications(spark, plan, Clients(plan), quotes, 5).collect()
    times = [row["intended_ns"] for row in rows]
    assert times == sorted(times)
    assert len(rows) == 11
    shown = {
        publisher: [row["attributes"]["symbol"] for row in rows if row["publisher"] == publisher]
        for publisher in ("p0000", "p0001", "hrp")
    }
    in_order = [row["symbol"] for row in quotes.orderBy("number").collect()]
    assert shown["p0000"] == in_order[:4]
    assert shown["p0001"] == [*in_order[4:], *in_order[:3]]
    assert shown["hrp"] == [None] * 3
    feed = [row["attributes"]["tick"] for row in rows if row["publisher"] == "hrp"]
    assert feed == [0, 1, 2]
    steps = [row["intended_ns"] for row in rows if row["publisher"] == "p0000"]
    assert {after - before for before, after in pairwise(steps)} == {10**9}
    assert rows[0]["attributes"].asDict().keys() == {each.name for each in attribute_types(plan)}


def test_single_file_is_the_same_however_the_frame_was_cut(spark: SparkSession, tmp_path: Path):
    files = []
    for number, parts in enumerate((1, 7)):
        rows = spark.range(0, 70_000, 1, parts).selectExpr(
            "'p' as publisher",
            "id as sequence",
            "id as intended_ns",
            "struct(id as x) as attributes",
        )
        target = tmp_path / f"{number}.parquet"
        write_single_file(rows, tmp_path / f"parts{number}", target, KIND)
        files.append(target)
    table = pq.read_table(files[0])
    assert table.column("sequence").to_pylist() == list(range(70_000))
    assert pq.ParquetFile(files[0]).metadata.row_group(0).num_rows == 65_536
    assert files[0].read_bytes() == files[1].read_bytes()


def test_no_notification_is_an_empty_file(spark: SparkSession, tmp_path: Path):
    empty = spark.createDataFrame([], SCHEMA)
    write_single_file(empty, tmp_path / "parts", tmp_path / "n.parquet", KIND)
    assert pq.read_table(tmp_path / "n.parquet").num_rows == 0
