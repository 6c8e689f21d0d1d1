"""How many rows a filter would match, before anybody subscribes: by the brokers' own index."""

from collections.abc import Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from octopis.core.filters import Filter
from octopis.core.matching import BitsetIndex
from octopis.pipeline.ingest.folder import Data
from octopis.pipeline.spark.session import ship
from octopis.scenario.publications import attributes_of


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the data a filter matches."""

    filter: str
    rows: int
    matches: int

    @property
    def share(self) -> float:
        """The share of all rows."""
        return self.matches / self.rows if self.rows else 0.0


def estimate(spark: SparkSession, data: Data, filter_: Filter) -> Estimate:
    """Return how many rows of the data a filter matches. All of them are looked at."""
    index: BitsetIndex[int, int] = BitsetIndex()
    index.add_many([(0, filter_, 0)])
    shipped = ship(spark, index)

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows, _ = shipped().match_numbers(attributes_of(batch.column("attributes")))
            yield pa.RecordBatch.from_pydict({"rows": [len(batch)], "matches": [len(rows)]})

    attributes = data.frame.select(F.struct(*data.columns).alias("attributes"))
    counted = attributes.mapInArrow(match, "rows long, matches long")
    total = counted.agg(F.sum("rows").alias("rows"), F.sum("matches").alias("matches")).first()
    assert total is not None
    return Estimate(
        filter=str(filter_), rows=int(total["rows"] or 0), matches=int(total["matches"] or 0)
    )
