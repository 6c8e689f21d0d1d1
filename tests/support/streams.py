"""Queries of Spark's that read a durable subscription, which belongs to one test alone."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octopis.pipeline.spark.session import sentence


def condition(name: str) -> str:
    return f"n >= 0 AND test = {name.removeprefix('test-')}"


def numbered(name: str, *numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"test": int(name.removeprefix("test-")), "n": n, **more} for n in numbers]


class Query:
    """A streaming query of one subscription into a folder of Parquet files."""

    def __init__(self, spark: SparkSession, url: str, name: str, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self.schema = "n LONG, _position LONG"
        self.options: dict[str, Any] = {"address": url, "subscription": name}

    def run(self, **options: Any) -> Any:
        """Read all that there is, and return the query, which has ended."""
        said = self.options | options
        frame = self._spark.readStream.format("octopis").options(**said).schema(self.schema).load()
        writer = frame.writeStream.format("parquet").option("path", str(self._folder / "out"))
        checkpointed = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        query = checkpointed.trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    def fails(self, **options: Any) -> str:
        """Return our sentence of a query that fails."""
        with pytest.raises(PySparkException) as failure:
            self.run(**options)
        return sentence(failure.value)

    @property
    def rows(self) -> list[tuple[int, int]]:
        frame = self._spark.read.parquet(str(self._folder / "out")).orderBy("_position")
        return [(row._position, row.n) for row in frame.collect()]
