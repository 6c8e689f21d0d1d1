"""The code on docs/streaming.md works as it is written there."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.durable_disk import broker_with_disk, desk

PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"
PLACE = "octopis://127.0.0.1:7400"


def test_the_code_of_the_page_runs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    read = PAGE.read_text(encoding="utf-8").partition("## Write")[0]
    (code,) = re.findall(r"```py\n(.*?)```", read, re.DOTALL)
    with broker_with_disk(tmp_path / "disk") as url, desk(url) as at_broker:
        at_broker.make("risk", "price > 50 AND symbol LIKE 'I%'")
        at_broker.publish({"symbol": name, "price": 60} for name in ("IBM", "AAPL", "INTC"))
        placed = code.replace(PLACE, url)
        for name in ("trades", "checkpoint"):
            placed = placed.replace(f'"{name}"', f'"{tmp_path / name}"')
        exec(compile(placed, str(PAGE), "exec"), {})  # noqa: S102 - our own page
    rows = spark.read.parquet(str(tmp_path / "trades")).orderBy("_position").collect()
    assert [tuple(row) for row in rows] == [("IBM", 60.0, 1), ("INTC", 60.0, 2)]
    printed = capsys.readouterr().out
    assert "read=2" in printed
    assert "symbol -> INTC" in printed
