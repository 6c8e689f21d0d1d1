"""Numbers of lines, worked out from where Spark has read the rows.

A block's first line has a number when the rows of the blocks before it have been counted: a small
table, of which the lines of any rows follow by one join.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.pipeline.ingest.judging import HEADER
from octopis.pipeline.ingest.settling import REPEATS
from octopis.pipeline.schemas import QUARANTINE

Counted = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a file: where its places begin, and how many lines are before it."""

    file: int
    block: int
    begin: int
    lines_before: int


class Tally:
    """What the judged rows of all files come to: counts by reason, and where blocks begin."""

    def __init__(
        self,
        counts: Iterable[Counted],
        names: Sequence[str],
        *,
        has_lines: bool = True,
    ) -> None:
        """Add up counts, as COUNTS has them, of files with these names; headers are no rows.

        Rows of a table have no lines.
        """
        self._names = names
        self._has_lines = has_lines
        found = sorted(counts, key=lambda row: (row["file"], row["block"], row["first"]))
        self.reasons: Counter[str] = Counter()
        for row in found:
            self.reasons[row["kind"]] += row["rows"]
        del self.reasons[HEADER]
        self._blocks = _blocks(found)

    def quarantined(self, spark: SparkSession, aside: DataFrame) -> DataFrame:
        """Return rows, as ASIDE has them, with their lines and why; no headers."""
        blocks = F.broadcast(self._frame(spark))
        earlier = blocks.select(*(F.col(name).alias(f"first_{name}") for name in blocks.columns))
        placed = aside.join(blocks, ["file", "block"], how="inner").join(
            earlier, ["first_file", "first_block"], how="left"
        )
        line = F.col("place") - F.col("begin") + F.col("lines_before") + 1
        first_line = F.col("first_place") - F.col("first_begin") + F.col("first_lines_before") + 1
        shown_line = F.col("line") if self._has_lines else F.lit(None).cast("long")
        if not self._has_lines:
            first_line = F.lit(None).cast("long")
        repeats = F.concat(
            F.lit("repeats "), F.concat_ws(", line ", "first_name", first_line.cast("string"))
        )
        return (
            placed.withColumn("line", line)
            .where(F.col("reason") != HEADER)
            .select(
                F.col("name").alias("file"),
                shown_line.alias("line"),
                F.when(F.col("reason") == REPEATS, repeats)
                .otherwise(F.col("reason"))
                .alias("reason"),
                "text",
            )
            .select(*QUARANTINE.fieldNames())
        )

    def _frame(self, spark: SparkSession) -> DataFrame:
        columns = {
            "file": pa.array([each.file for each in self._blocks], pa.int32()),
            "block": pa.array([each.block for each in self._blocks], pa.int64()),
            "begin": pa.array([each.begin for each in self._blocks], pa.int64()),
            "lines_before": pa.array([each.lines_before for each in self._blocks], pa.int64()),
            "name": pa.array([self._names[each.file] for each in self._blocks], pa.string()),
        }
        return spark.createDataFrame(pa.table(columns))


def _blocks(found: list[Counted]) -> list[Block]:
    """Return the blocks; `found` has counts and first places, by file and block."""
    firsts: dict[tuple[int, int], int] = {}
    rows: Counter[tuple[int, int]] = Counter()
    for row in found:
        key = row["file"], row["block"]
        firsts.setdefault(key, row["first"])
        rows[key] += row["rows"]
    blocks = []
    before: Counter[int] = Counter()
    for (file, block), first in firsts.items():
        blocks.append(Block(file, block, first, before[file]))
        before[file] += rows[file, block]
    return blocks
