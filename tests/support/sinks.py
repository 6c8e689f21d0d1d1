"""Frames and streams that tests have Spark write to real brokers, and what arrives."""

from pathlib import Path
from typing import Any

import uvloop
from pyspark.sql import DataFrame, SparkSession

from octopis.client.client import connect


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


def save(frame: DataFrame, url: str, **options: str) -> None:
    frame.write.format("octopis").options(**options).mode("append").save(url)
