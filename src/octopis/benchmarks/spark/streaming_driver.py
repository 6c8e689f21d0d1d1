"""A Spark program to be killed: it reads a stream, writes it back, and into a table.

`python -m octopis.benchmarks.spark.streaming_driver OPTIONS` says `begun` once both queries are
started, and notes in a file when both have progressed. When its standard input ends, it takes all
that is there, and says what the table holds.
"""

import os
import sys
from pathlib import Path
from select import select

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from octopis.pipeline.spark.session import open_spark

MASTER = "local[2,4]"
"""Two cores, and a task may fail three times."""

PROGRESSED = "progressed"
"""The file in which a driver notes its process, when its queries have progressed."""


class Options(msgspec.Struct, frozen=True):
    """Where the broker is, and how much is read at a time."""

    address: str
    folder: str
    per_trigger: int


def stream(spark: SparkSession, options: Options, subscription: str) -> DataFrame:
    """Return the numbers that a durable subscription has, and their doubles."""
    numbers = (
        spark.readStream.format("octopis")
        .option("address", options.address)
        .option("subscription", subscription)
        .option("maxOffsetsPerTrigger", options.per_trigger)
        .option("minPartitions", 2)
        .schema("n LONG")
        .load()
    )
    return numbers.select("n", (2 * F.col("n")).alias("twice"))


def writers(spark: SparkSession, options: Options) -> list[DataStreamWriter]:
    """Return what writes the stream back, and what writes it into a table."""
    folder = Path(options.folder)
    back = stream(spark, options, "to-sink").withColumn("part", F.lit("out"))
    return [
        back.writeStream.format("octopis")
        .option("address", options.address)
        .option("checkpointLocation", str(folder / "sink")),
        stream(spark, options, "to-table")
        .writeStream.format("parquet")
        .option("path", str(folder / "table"))
        .option("checkpointLocation", str(folder / "files")),
    ]


def table_told(spark: SparkSession, options: Options) -> bytes:
    """Return what the table holds, as JSON."""
    table = spark.read.parquet(str(Path(options.folder) / "table"))
    row = table.agg(F.count("n"), F.count_distinct("n"), F.sum("twice")).collect()[0]
    return msgspec.json.encode(list(row))


def _wait_for_end(queries: list[StreamingQuery], progressed: Path) -> None:
    """Wait until standard input ends, and say once that each query has noted a batch.

    A query that fails ends this, and is started again. A driver that is killed while Spark writes
    the very first offset leaves a folder that Spark does not start from again, whatever the source
    and the sink: so whoever kills waits for progress after the very first start.
    """
    has_said = False
    while not select([sys.stdin], [], [], 0.1)[0]:
        _raise_failure(queries)
        if not has_said and all(query.recentProgress for query in queries):
            progressed.write_text(str(os.getpid()), encoding="utf-8")
            has_said = True


def _raise_failure(queries: list[StreamingQuery]) -> None:
    for query in queries:
        if (failure := query.exception()) is not None:
            raise failure


def main() -> None:
    """Run until standard input ends, or somebody kills this."""
    options = msgspec.json.decode(sys.argv[1], type=Options)
    with open_spark(MASTER, {"spark.driver.memory": "1g"}) as spark:
        queries: list[StreamingQuery] = [each.start() for each in writers(spark, options)]
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        _wait_for_end(queries, Path(options.folder) / PROGRESSED)
        for query in queries:
            query.stop()
        for writer in writers(spark, options):
            writer.trigger(availableNow=True).start().awaitTermination()
        sys.stdout.write(table_told(spark, options).decode() + "\n")


if __name__ == "__main__":
    main()
