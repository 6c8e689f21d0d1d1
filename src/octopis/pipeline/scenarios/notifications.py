"""Notifications: quotes that made no subscription, given to publishers with intended times."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.pipeline.schemas import QUOTES
from octopis.scenario.clients import FEED, Clients, attribute_types, tick_columns
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.publications import NOTIFICATION_COLUMNS

ROW_GROUP = 65_536


def notifications(
    spark: SparkSession, plan: ScenarioPlan, clients: Clients, quotes: DataFrame, quote_count: int
) -> DataFrame:
    """Return the notifications of all publishers; `quotes` are numbered from 0.

    A publisher's notification number n is quote n of its own run of quotes; when all have been
    published, they start again.
    """
    frame = _regular(spark, plan, clients, quotes, quote_count)
    for name in clients.high_rate_names:
        frame = frame.unionByName(_high_rate(spark, plan, clients, name))
    return frame.orderBy("intended_ns", "publisher", "sequence").select(*NOTIFICATION_COLUMNS)


def _regular(
    spark: SparkSession, plan: ScenarioPlan, clients: Clients, quotes: DataFrame, quote_count: int
) -> DataFrame:
    publishers = spark.createDataFrame(
        pa.table(
            {
                "publisher_number": pa.array(range(plan.publishers), pa.int64()),
                "publisher": pa.array(clients.names, pa.string()),
                "start_ns": pa.array(clients.starts, pa.int64()),
            }
        )
    )
    each = max(1, plan.notifications_each)
    due = spark.range(plan.publishers * plan.notifications_each).select(
        F.floor(F.col("id") / each).cast("long").alias("publisher_number"),
        (F.col("id") % each).alias("sequence"),
        (F.col("id") % max(1, quote_count)).alias("number"),
    )
    return (
        due.join(F.broadcast(publishers), "publisher_number", how="inner")
        .join(quotes, "number", how="inner")
        .select(
            "publisher",
            "sequence",
            (F.col("start_ns") + F.col("sequence") * clients.step_ns).alias("intended_ns"),
            _attributes(plan, QUOTES.fieldNames()),
        )
    )


def _high_rate(spark: SparkSession, plan: ScenarioPlan, clients: Clients, name: str) -> DataFrame:
    count = plan.high_rate_notifications
    feed = {**tick_columns(count, clients.burst)}
    ticks = spark.createDataFrame(
        pa.table(
            {
                "sequence": pa.array(range(count), pa.int64()),
                "intended_ns": pa.array(clients.high_rate_times(), pa.int64()),
                **{name: pa.array(feed[name], kind) for name, kind in FEED.items()},
            }
        )
    )
    return ticks.select(
        F.lit(name).alias("publisher"),
        "sequence",
        "intended_ns",
        _attributes(plan, list(FEED)),
    )


def _attributes(plan: ScenarioPlan, present: list[str]) -> Column:
    """Gather the columns that are there into a struct of all; the others are null, so absent."""
    kinds = {pa.string(): "string", pa.float64(): "double", pa.int64(): "long"}
    return F.struct(
        *(
            (F.col(field.name) if field.name in present else F.lit(None))
            .cast(kinds[field.type])
            .alias(field.name)
            for field in attribute_types(plan)
        )
    ).alias("attributes")


def write_single_file(
    frame: DataFrame, parts: Path, target: Path, attributes: pa.StructType
) -> None:
    """Write a sorted frame as one Parquet file, the same to the byte however it was cut.

    Executors write parts, which are in order by their names; memory here holds a row group.
    """
    schema = pa.schema(
        [
            ("publisher", pa.string()),
            ("sequence", pa.int64()),
            ("intended_ns", pa.int64()),
            ("attributes", attributes),
        ]
    )
    frame.write.parquet(str(parts))
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for part in sorted(parts.glob("*.parquet")):
            with pq.ParquetFile(part) as file:
                for batch in file.iter_batches(ROW_GROUP):
                    waiting.append(batch)
                    rows += len(batch)
                    while rows >= ROW_GROUP:
                        table = pa.Table.from_batches(waiting)
                        writer.write_table(table[:ROW_GROUP].cast(schema), ROW_GROUP)
                        waiting, rows = table[ROW_GROUP:].to_batches(), rows - ROW_GROUP
        if rows:
            writer.write_table(pa.Table.from_batches(waiting).cast(schema), ROW_GROUP)
