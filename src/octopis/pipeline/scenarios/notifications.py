"""Notifications: rows that made no subscription, given to publishers with intended times."""

import shutil
from bisect import bisect_left
from functools import reduce
from operator import add
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.pipeline.ingest.mapping import OURS
from octopis.pipeline.schemas import quoted
from octopis.scenario.clients import FEED, Clients, tick_columns
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.publications import COLUMNS, NOTIFICATION_COLUMNS
from octopis.scenario.tables import TIME_NS_MAX

PART_ROWS = 100_000
PARTS_MAX = 256
"""Notifications of a part, about, and how many parts there are at most."""

NUMBER, PUBLISHER, SEQUENCE, START_NS, _WHO = (
    f"{OURS}{name}" for name in ("number", "publisher", "sequence", "start_ns", "who")
)
"""Columns beside the attributes of rows, which may have any names."""


class NumberedRows(NamedTuple):
    """Rows to publish, numbered from 0, and which attributes notifications have."""

    frame: DataFrame
    size: int
    attributes: pa.StructType


def notifications(
    spark: SparkSession, plan: ScenarioPlan, clients: Clients, rows: NumberedRows
) -> DataFrame:
    """Return the notifications of all publishers.

    A publisher's notification number n is row n of its own run of rows; when all have been
    published, they start again.
    """
    regular = _regular(spark, plan, clients, rows)
    return with_high_rate(spark, regular, plan, clients, rows.attributes)


def with_high_rate(
    spark: SparkSession,
    regular: DataFrame,
    plan: ScenarioPlan,
    clients: Clients,
    attributes: pa.StructType,
) -> DataFrame:
    """Add the notifications of the high-rate publishers, if there are any."""
    frame = regular
    for name in clients.high_rate_names:
        frame = frame.unionByName(_high_rate(spark, plan, clients, name, attributes))
    return frame.select(*NOTIFICATION_COLUMNS)


def _regular(
    spark: SparkSession, plan: ScenarioPlan, clients: Clients, rows: NumberedRows
) -> DataFrame:
    publishers = spark.createDataFrame(
        pa.table(
            {
                _WHO: pa.array(range(plan.publishers), pa.int64()),
                PUBLISHER: pa.array(clients.names, pa.string()),
                START_NS: pa.array(clients.starts, pa.int64()),
            }
        )
    )
    each = max(1, plan.notifications_each)
    due = spark.range(plan.publishers * plan.notifications_each).select(
        F.floor(F.col("id") / each).cast("long").alias(_WHO),
        (F.col("id") % each).alias(SEQUENCE),
        (F.col("id") % max(1, rows.size)).alias(NUMBER),
    )
    return (
        due.join(F.broadcast(publishers), _WHO, how="inner")
        .join(rows.frame, NUMBER, how="inner")
        .select(
            F.col(PUBLISHER).alias("publisher"),
            F.col(SEQUENCE).alias("sequence"),
            (F.col(START_NS) + F.col(SEQUENCE) * clients.step_ns).alias("intended_ns"),
            gathered(rows.attributes, rows.frame.columns),
        )
    )


def _high_rate(
    spark: SparkSession,
    plan: ScenarioPlan,
    clients: Clients,
    name: str,
    attributes: pa.StructType,
) -> DataFrame:
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
        gathered(attributes, list(FEED)),
    )


def gathered(attributes: pa.StructType, present: list[str]) -> Column:
    """Gather the columns that are there into a struct of all; the others are null, so absent."""
    kinds = {
        pa.string(): "string",
        pa.float64(): "double",
        pa.int64(): "long",
        pa.bool_(): "boolean",
    }
    return F.struct(
        *(
            (F.col(quoted(field.name)) if field.name in present else F.lit(None))
            .cast(kinds[field.type])
            .alias(field.name)
            for field in attributes
        )
    ).alias("attributes")


def part_starts(plan: ScenarioPlan, clients: Clients) -> list[int]:
    """Return when all parts of the table but the first begin: about equally large parts.

    They follow from the plan alone, so that the parts are the same however Spark has cut its work.
    """
    each = plan.notifications_each
    bursts = len(clients.high_rate_names)
    burst_ns = clients.high_rate_times() if bursts else np.zeros(0, np.int64)
    total = plan.publishers * each + bursts * len(burst_ns)
    parts = min(PARTS_MAX, -(-total // PART_ROWS))

    def due_before(time_ns: int) -> int:
        sent = np.clip(-((clients.starts - time_ns) // clients.step_ns), 0, each)
        return int(sent.sum()) + bursts * int(np.searchsorted(burst_ns, time_ns))

    times = range(TIME_NS_MAX)
    return [bisect_left(times, total * part // parts, key=due_before) for part in range(1, parts)]


def write_notifications(
    published: DataFrame, starts: list[int], target: Path, attributes: pa.StructType
) -> None:
    """Write notifications as a folder of parts, each in order and the same to the byte always.

    A part is the work of one task; the driver only gives the files their names.
    """
    part = reduce(add, ((F.col("intended_ns") >= start).cast("int") for start in starts), F.lit(0))
    draft = target.with_name("parts")
    (
        published.select(*NOTIFICATION_COLUMNS, part.alias("part"))
        .repartition(len(starts) + 1, "part")
        .sortWithinPartitions("part", "intended_ns", "publisher", "sequence")
        .write.partitionBy("part")
        .parquet(str(draft))
    )
    target.mkdir()
    for folder in draft.glob("part=*"):
        number = int(folder.name.partition("=")[2])
        for piece, file in enumerate(sorted(folder.glob("*.parquet"))):  # one, unless Spark is told
            file.rename(target / f"part-{number:05d}-{piece:05d}.parquet")
    shutil.rmtree(draft)
    if not any(target.iterdir()):
        schema = pa.schema([*COLUMNS.items(), ("attributes", attributes)])
        pq.write_table(schema.empty_table(), target / "part-00000-00000.parquet")
