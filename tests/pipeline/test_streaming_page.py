"""The code that pages show of streaming works as it is written there.

What docs/streaming.md shows of writing is run in test_streaming_sink.py.
"""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from octopis.client.sync_client import connect_sync
from support.durable_disk import broker_with_disk, desk

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "streaming.md"
README = ROOT / "README.md"
PLACE = "octopis://127.0.0.1:7400"


def blocks(text: str) -> list[str]:
    return re.findall(r"```py\n(.*?)```", text, re.DOTALL)


def test_the_code_of_the_page_runs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    read = PAGE.read_text(encoding="utf-8").partition("## Write")[0]
    code, observed = blocks(read)
    with broker_with_disk(tmp_path / "disk") as url, desk(url) as at_broker:
        at_broker.make("risk", "price > 50 AND symbol LIKE 'I%'")
        at_broker.publish({"symbol": name, "price": 60} for name in ("IBM", "AAPL", "INTC"))
        placed = code.replace(PLACE, url)
        for name in ("trades", "checkpoint"):
            placed = placed.replace(f'"{name}"', f'"{tmp_path / name}"')
        exec(compile(placed, str(PAGE), "exec"), {})  # noqa: S102 - our own page
        at_broker.publish([{"symbol": "IBM", "price": 60, "size": "large"}])
        trades = spark.readStream.format("octopis").option("subscription", "risk")
        names = {"trades": trades.schema("size LONG, _refused STRING").load(url)}
        exec(compile(observed, str(PAGE), "exec"), names)  # noqa: S102 - our own page
        writer = names["watched"].writeStream.format("noop")
        query = writer.option("checkpointLocation", str(tmp_path / "watched")).start()
        try:
            query.processAllAvailable()
            assert query.lastProgress["observedMetrics"]["octopis"]["refused"] == 1
        finally:
            query.stop()
    rows = spark.read.parquet(str(tmp_path / "trades")).orderBy("_position").collect()
    assert [tuple(row) for row in rows] == [("IBM", 60.0, 1), ("INTC", 60.0, 2)]
    printed = capsys.readouterr().out
    assert "read=2" in printed
    assert "symbol -> INTC" in printed


def test_the_six_lines_of_readme_read_and_write(spark: SparkSession, tmp_path: Path):
    (code,) = [block for block in blocks(README.read_text(encoding="utf-8")) if "octopis" in block]
    assert len(code.splitlines()) == 6
    with (
        broker_with_disk(tmp_path / "disk") as url,
        desk(url) as at_broker,
        connect_sync(url) as client,
    ):
        at_broker.make("risk", "price > 50")
        with client.subscribe("above > 0", timeout_s=60) as alerts:
            placed = code.replace(PLACE, url).replace('"checkpoint"', f'"{tmp_path / "kept"}"')
            before = {query.id for query in spark.streams.active}
            exec(compile(placed, str(README), "exec"), {"spark": spark})  # noqa: S102 - our own page
            (query,) = [each for each in spark.streams.active if each.id not in before]
            try:
                at_broker.publish({"symbol": "IBM", "price": price} for price in (84.5, 12, 51))
                query.processAllAvailable()
                found = [next(alerts).attributes for _ in range(2)]
            finally:
                query.stop()
            assert alerts.next(timeout=0.5) is None
    assert found == [{"alert": "IBM", "above": 34.5}, {"alert": "IBM", "above": 1.0}]
