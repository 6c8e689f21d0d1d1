"""Spark writes to real brokers: each row is a notification, published once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from pyspark.sql import DataFrame, SparkSession

from octopis.broker.settings import Durability
from octopis.client.client import connect
from octopis.core.routing import Algorithm
from support.live import in_a_thread, line, overlay


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    folder = tmp_path_factory.mktemp("disk")
    durable = overlay(line(2), Algorithm.TNR, durability=Durability(str(folder)))
    with in_a_thread(durable) as found:
        yield list(found.values())


def kept(url: str, name: str, filter_: str) -> None:
    """Begin to keep what matches."""

    async def work() -> None:
        async with connect(url) as client:
            async with client.subscribe(filter_, durable=name):
                await client.settled()

    uvloop.run(work())


def read(url: str, name: str, count: int, *, wait_s: float = 20) -> list[Any]:
    """Return so many of what was kept, and make sure that there are no more."""

    async def work() -> list[Any]:
        found: list[Any] = []
        async with connect(url) as client:
            while len(found) < count:
                batch = await client.read(name, len(found), wait_s=wait_s)
                assert batch.notifications, f"only {len(found)} of {count} have come"
                found += batch.notifications
            assert (await client.read(name, len(found), wait_s=0.3)).end == count
        return found

    return uvloop.run(work())


def stream_of(spark: SparkSession, folder: Path, frame: DataFrame) -> DataFrame:
    """Return a stream of what is in a frame, from files."""
    frame.write.mode("append").parquet(str(folder))
    return spark.readStream.schema(frame.schema).parquet(str(folder))


def run(stream: DataFrame, url: str, checkpoint: Path, **options: str) -> Any:
    """Write what is there now, and return the query."""
    query = (
        stream.writeStream.format("octopis")
        .options(address=url, checkpointLocation=str(checkpoint), **options)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_rows_of_a_stream_are_published_once_also_where_a_batch_runs_again(
    spark: SparkSession, urls: list[str], tmp_path: Path
):
    kept(urls[1], "stream", "n >= 0")
    frame = spark.range(5_000).selectExpr("id AS n", "CAST(id AS STRING) AS name")
    stream = stream_of(spark, tmp_path / "in", frame)
    run(stream, urls[0], tmp_path / "c")
    found = read(urls[1], "stream", 5_000)
    assert sorted(each.attributes["n"] for each in found) == list(range(5_000))
    assert all(each.attributes["name"] == str(each.attributes["n"]) for each in found)
    # Spark has not noted that the batch is done: it runs it again.
    (tmp_path / "c" / "commits" / "0").unlink()
    (tmp_path / "c" / "commits" / ".0.crc").unlink(missing_ok=True)
    run(
        stream_of(spark, tmp_path / "in", frame.selectExpr("n + 5000 AS n", "name")),
        urls[0],
        tmp_path / "c",
    )
    assert {each.attributes["n"] for each in read(urls[1], "stream", 10_000)} == set(range(10_000))
