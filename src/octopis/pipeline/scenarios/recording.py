"""Rows replayed as they were recorded: publishers by one attribute, times by another."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.folder import Data, KnownAttribute
from octopis.pipeline.ingest.mapping import OURS, Kind
from octopis.pipeline.scenarios.notifications import (
    NUMBER,
    PART_ROWS,
    PARTS_MAX,
    PUBLISHER,
    SEQUENCE,
    START_NS,
    gathered,
)
from octopis.pipeline.schemas import quoted
from octopis.pipeline.spark.session import cached
from octopis.scenario.clients import HIGH_RATE_PUBLISHER, Clients
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.publications import NOTIFICATION_COLUMNS
from octopis.scenario.tables import TIME_NS_MAX

PUBLISHERS_MAX = 100_000
_DAY_NS = 86_400_000_000_000
_BUCKETS = 4_096
_AT_NS, _WHO = f"{OURS}at_ns", f"{OURS}who"


class Replay(NamedTuple):
    """How rows are replayed: nothing is said where rates and publishers come from the plan."""

    publisher_by: str | None = None
    time_by: str | None = None
    speed: float = 1.0

    @property
    def is_asked_for(self) -> bool:
        """Whether rows are published as they were recorded."""
        return self.publisher_by is not None or self.time_by is not None

    def check(self, data: Data) -> None:
        """Raise InvalidConfiguration where the data does not have what is asked for."""
        if not 0 < self.speed < float("inf"):
            raise InvalidConfiguration(f"--speed must be above 0, not {self.speed:g}")
        if self.publisher_by is not None:
            data.check_attribute(self.publisher_by, "--publisher-by")
        if self.time_by is not None:
            kind = data.check_attribute(self.time_by, "--time-by").kind
            if kind not in (Kind.TIME, Kind.DATE):
                raise InvalidConfiguration(
                    f"--time-by: {self.time_by} is {kind.value}: ingest it with the type time, or "
                    "derive one, as by timestamp_seconds(...)"
                )


def known_rows(rows: DataFrame, replay: Replay) -> DataFrame:
    """Return the rows of which it is known who published them, and when."""
    for name in (replay.publisher_by, replay.time_by):
        if name is not None:
            rows = rows.where(F.col(quoted(name)).isNotNull())
    return rows


def publisher_names(rows: DataFrame, replay: Replay) -> list[str] | None:
    """Return who publishes, in order, or None where that follows from the plan."""
    if replay.publisher_by is None:
        return None
    names = rows.select(F.col(quoted(replay.publisher_by)).cast("string").alias("name")).distinct()
    found = sorted(row["name"] for row in names.limit(PUBLISHERS_MAX + 1).collect())
    if len(found) > PUBLISHERS_MAX:
        raise InvalidConfiguration(
            f"--publisher-by: {replay.publisher_by} has more than {PUBLISHERS_MAX:,} values"
        )
    if any(name.startswith(HIGH_RATE_PUBLISHER) or not name for name in found):
        raise InvalidConfiguration(
            f"--publisher-by: {replay.publisher_by} has a value that is empty, or begins with "
            f"{HIGH_RATE_PUBLISHER!r} as high-rate publishers do"
        )
    return found


@contextmanager
def replayed(  # noqa: PLR0913, PLR0917 - all that decides what is published
    spark: SparkSession,
    data: Data,
    replay: Replay,
    plan: ScenarioPlan,
    clients: Clients,
    attributes: pa.StructType,
) -> Iterator[tuple[DataFrame, list[int]]]:
    """Give the notifications of all rows, and when all parts of their table but the first begin.

    Each publisher's rows come in the order of their times, or of the plan's seed where they have
    none; `data` has its rows numbered.
    """
    rows = _named(spark, data.frame, replay, plan, clients)
    at_ns = F.lit(0) if replay.time_by is None else moment_ns(data, replay.time_by)
    in_order = Window.partitionBy(PUBLISHER).orderBy(_AT_NS, NUMBER)
    timed = rows.withColumn(_AT_NS, at_ns)
    due = timed.withColumn(SEQUENCE, (F.row_number().over(in_order) - 1).cast("long"))
    if replay.time_by is None:
        intended = F.col(START_NS) + F.col(SEQUENCE) * clients.step_ns
    else:
        first, last = _span(timed)
        _check_span(first, last, replay)
        since = (F.col(_AT_NS) - F.lit(first)) / F.lit(float(replay.speed))
        intended = F.round(since).cast("long")
    published = due.select(
        F.col(PUBLISHER).alias("publisher"),
        F.col(SEQUENCE).alias("sequence"),
        intended.alias("intended_ns"),
        gathered(attributes, list(data.attributes)),
    ).select(*NOTIFICATION_COLUMNS)
    with cached(published) as kept:
        yield kept, _starts(kept)


def _named(
    spark: SparkSession, rows: DataFrame, replay: Replay, plan: ScenarioPlan, clients: Clients
) -> DataFrame:
    """Add who publishes each row, and when that one starts."""
    publishers = F.broadcast(
        spark.createDataFrame(
            pa.table(
                {
                    _WHO: pa.array(range(len(clients.names)), pa.int64()),
                    PUBLISHER: pa.array(clients.names, pa.string()),
                    START_NS: pa.array(clients.starts, pa.int64()),
                }
            )
        )
    )
    if replay.publisher_by is None:
        numbered = rows.withColumn(_WHO, F.col(NUMBER) % max(1, plan.publishers))
        return numbered.join(publishers, _WHO, how="inner")
    name = F.col(quoted(replay.publisher_by)).cast("string")
    return rows.withColumn(PUBLISHER, name).join(publishers, PUBLISHER, how="inner")


def moment_ns(data: Data, name: str) -> Column:
    """Return an attribute that is a date or a time as nanoseconds since 1970."""
    known: KnownAttribute = data.attributes[name]
    value = F.col(quoted(name))
    if known.in_ns:
        return value
    if known.kind is Kind.DATE:
        return F.unix_date(F.to_date(value)).cast("long") * F.lit(_DAY_NS)
    return F.unix_micros(F.to_timestamp(value)) * F.lit(1000)


def _span(rows: DataFrame) -> tuple[int, int]:
    row = rows.agg(F.min(_AT_NS).alias("first"), F.max(_AT_NS).alias("last")).first()
    assert row is not None
    return int(row["first"] or 0), int(row["last"] or 0)


def _check_span(first: int, last: int, replay: Replay) -> None:
    if (last - first) / replay.speed > TIME_NS_MAX:
        least = -(-(last - first) // TIME_NS_MAX)
        days = (last - first) / _DAY_NS
        raise InvalidConfiguration(
            f"the rows span {days:,.0f} days, and a scenario lasts three years at most: "
            f"say --speed {least}, or more"
        )


def _starts(published: DataFrame) -> list[int]:
    """Return the times that cut the notifications into about equally large parts.

    They follow from how many are due in each of many spans of time, so from the rows alone.
    """
    row = published.agg(F.count("*").alias("rows"), F.max("intended_ns").alias("last")).first()
    assert row is not None
    parts = min(PARTS_MAX, -(-row["rows"] // PART_ROWS))
    if parts <= 1:
        return []
    width = int(row["last"]) // _BUCKETS + 1
    bucket = F.floor(F.col("intended_ns") / width).cast("int").alias("bucket")
    counts = np.zeros(_BUCKETS + 1, np.int64)
    for each in published.groupBy(bucket).count().collect():
        counts[each["bucket"]] = each["count"]
    before = np.cumsum(counts)
    wanted = [row["rows"] * part // parts for part in range(1, parts)]
    cuts = {(int(np.searchsorted(before, each)) + 1) * width for each in wanted}
    return sorted(cuts)
