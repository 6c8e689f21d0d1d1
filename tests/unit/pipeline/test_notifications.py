from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from octopis.pipeline.ingest.quotes import synthetic_quotes
from octopis.pipeline.scenarios import notifications as room
from octopis.pipeline.scenarios.notifications import (
    NUMBER,
    NumberedRows,
    notifications,
    part_starts,
    write_notifications,
)
from octopis.pipeline.scenarios.subscriptions import shuffled
from octopis.scenario.clients import Clients, attribute_types
from octopis.scenario.publications import count_notifications
from octopis.scenario.tables import part_files
from support.traces import small_plan

KIND = pa.struct([("x", pa.int64())])
SCHEMA = "publisher string, sequence long, intended_ns long, attributes struct<x: long>"


def test_publishers_take_turns_with_the_quotes_and_start_again(spark: SparkSession):
    plan = small_plan(publishers=2, notifications_each=4, high_rate_notifications=3)
    quotes = shuffled(synthetic_quotes(spark, 1, 2), 1).where(F.col(NUMBER) < 5)
    rows_to_publish = NumberedRows(quotes, 5, attribute_types(plan))
    rows = (
        notifications(spark, plan, Clients(plan), rows_to_publish).orderBy("intended_ns").collect()
    )
    assert len(rows) == 11
    shown = {
        publisher: [row["attributes"]["symbol"] for row in rows if row["publisher"] == publisher]
        for publisher in ("p0000", "p0001", "hrp")
    }
    in_order = [row["symbol"] for row in quotes.orderBy(NUMBER).collect()]
    assert shown["p0000"] == in_order[:4]
    assert shown["p0001"] == [*in_order[4:], *in_order[:3]]
    assert shown["hrp"] == [None] * 3
    feed = [row["attributes"]["tick"] for row in rows if row["publisher"] == "hrp"]
    assert feed == [0, 1, 2]
    steps = [row["intended_ns"] for row in rows if row["publisher"] == "p0000"]
    assert {after - before for before, after in pairwise(steps)} == {10**9}
    assert rows[0]["attributes"].asDict().keys() == {each.name for each in attribute_types(plan)}


def test_parts_are_the_same_however_the_frame_was_cut(spark: SparkSession, tmp_path: Path):
    found = []
    for number, parts in enumerate((1, 7)):
        rows = spark.range(0, 70_000, 1, parts).selectExpr(
            "'p' as publisher",
            "id as sequence",
            "id as intended_ns",
            "struct(id as x) as attributes",
        )
        target = tmp_path / f"{number}.parquet"
        write_notifications(rows, [30_000, 60_000], target, KIND)
        found.append([path.read_bytes() for path in part_files(target)])
    sequences = [
        pq.read_table(part).column("sequence").to_pylist()
        for part in part_files(tmp_path / "0.parquet")
    ]
    bounds = pairwise((0, 30_000, 60_000, 70_000))
    assert sequences == [list(range(*each)) for each in bounds]
    assert found[0] == found[1]


def test_no_notification_is_an_empty_part(spark: SparkSession, tmp_path: Path):
    write_notifications(spark.createDataFrame([], SCHEMA), [], tmp_path / "n.parquet", KIND)
    assert count_notifications(tmp_path / "n.parquet") == 0


@pytest.mark.parametrize("burst", [0, 1_000])
def test_parts_are_about_equally_large(monkeypatch: pytest.MonkeyPatch, burst: int):
    plan = small_plan(publishers=7, notifications_each=500, high_rate_notifications=burst)
    clients = Clients(plan)
    times = [(clients.starts[:, None] + np.arange(500) * clients.step_ns).ravel()]
    times += [clients.high_rate_times()] if burst else []
    due = np.sort(np.concatenate(times))
    assert part_starts(plan, clients) == []
    monkeypatch.setattr(room, "PART_ROWS", 1_000)
    starts = part_starts(plan, clients)
    sizes = np.diff([0, *np.searchsorted(due, starts), len(due)])
    assert len(sizes) == (5 if burst else 4)
    assert sizes.sum() == len(due)
    assert sizes.max() - sizes.min() <= 2
