"""Subscriptions from the quantiles of quotes, so that each matches about the wanted share.

A sample of the quotes is sent to the executors. Each subscription is drawn there from the seed
and its own number, so that it is the same whichever task makes it.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from octopis.core.filters import print_filter
from octopis.errors import InvalidConfiguration
from octopis.pipeline.schemas import QUOTES
from octopis.pipeline.spark.session import ship, task_count
from octopis.scenario.stock import RangeFilters

SAMPLE_MAX = 40_000
SAMPLE_SHARE = 3
"""A third of the quotes, at most SAMPLE_MAX, makes the subscriptions; the rest is published."""

TOLERANCE = 0.05
"""How far a subscription's share of the sample may be from the wanted one, or else by one row."""

ROWS_MATCHED_MIN = 5
PART_BITS = 10
"""So many bits of a quote's hash say in which part of the order it stands."""

_TRIES = 500


def shuffled(quotes: DataFrame, seed: int) -> DataFrame:
    """Number the quotes that have all ten attributes, in an order that the seed alone decides.

    Numbering all in one window would be the work of one task. So they are numbered within each of
    many parts of the order, and the parts before, of which only the sizes matter, are added up.
    """
    order = F.xxhash64(F.lit(seed), "symbol", "date")
    keyed = quotes.dropna().select("*", order.alias("order"))
    keyed = keyed.withColumn("part", F.shiftright("order", 64 - PART_BITS))
    earlier = Window.orderBy("part").rowsBetween(Window.unboundedPreceding, -1)
    before = F.coalesce(F.sum("count").over(earlier), F.lit(0)).alias("before")
    sizes = keyed.groupBy("part").count().select("part", before)
    in_order = Window.partitionBy("part").orderBy("order", "symbol", "date")
    number = F.row_number().over(in_order) - 1 + F.col("before")
    return (
        keyed.join(F.broadcast(sizes), "part", how="inner")
        .select("*", number.cast("long").alias("number"))
        .select("number", *QUOTES.fieldNames())
    )


def sample_size(count: int, selectivity: float) -> int:
    """Return how many of `count` quotes make the subscriptions, or raise InvalidConfiguration."""
    size = min(SAMPLE_MAX, count // SAMPLE_SHARE)
    if size * selectivity < ROWS_MATCHED_MIN:
        least = SAMPLE_SHARE * round(ROWS_MATCHED_MIN / selectivity + 1)
        raise InvalidConfiguration(
            f"{count} quotes are too few for a selectivity of {selectivity:g}: "
            f"it takes {least} with a previous close"
        )
    return size


def filter_texts(
    spark: SparkSession, sample: pa.Table, count: int, selectivity: float, seed: int
) -> DataFrame:
    """Return `number` and `filter` of `count` subscriptions."""
    columns = {name: sample.column(name).to_pylist() for name in QUOTES.fieldNames()}
    maker = ship(spark, RangeFilters(columns, selectivity))

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column("id").to_pylist()
            texts = [_text(maker(), selectivity, seed, number) for number in numbers]
            yield pa.RecordBatch.from_pydict({"number": numbers, "filter": texts})

    numbered = spark.range(0, count, 1, min(task_count(spark), max(1, count)))
    return numbered.mapInArrow(make, "number long, filter string").select("number", "filter")


def _text(maker: RangeFilters, selectivity: float, seed: int, number: int) -> str:
    random = np.random.default_rng([seed, 2, number])
    allowed = max(TOLERANCE * selectivity, 1 / maker.size)
    for _ in range(_TRIES):
        drawn = maker.draw(random)
        if abs(drawn.share - selectivity) <= allowed:
            return print_filter(drawn.filter)
    raise InvalidConfiguration(
        f"no {_TRIES} draws gave a subscription of {selectivity:g}: the quotes are too few, "
        "or too much alike"
    )
