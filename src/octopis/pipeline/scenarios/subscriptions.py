"""Subscriptions from quantiles and frequent values, so that each matches about the wanted share.

A sample of the rows is sent to the executors. Each subscription is drawn there from the seed
and its own number, so that it is the same whichever task makes it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from octopis.core.filters import print_filter
from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.folder import Data
from octopis.pipeline.ingest.mapping import OURS
from octopis.pipeline.scenarios.notifications import NUMBER
from octopis.pipeline.schemas import quoted
from octopis.pipeline.spark.session import ship, task_count
from octopis.scenario.drawing import DrawnFilters

SAMPLE_MAX = 40_000
SAMPLE_SHARE = 3
"""A third of the rows, at most SAMPLE_MAX, makes the subscriptions; the rest is published."""

TOLERANCE = 0.05
"""How far a subscription's share of the sample may be from the wanted one, or else by one row."""

ROWS_MATCHED_MIN = 5
PART_BITS = 10
"""So many bits of a row's hash say in which part of the order it stands."""

_TRIES = 500

_ORDER, _PART, _BEFORE = (f"{OURS}{name}" for name in ("order", "part", "before"))


def shuffled(data: Data, seed: int) -> DataFrame:
    """Number the rows, in an order that the seed alone decides: those that are whole, if asked.

    Numbering all in one window would be the work of one task. So they are numbered within each of
    many parts of the order, and the parts before, of which only the sizes matter, are added up.
    """
    key = [F.col(quoted(name)) for name in data.key or data.attributes]
    order = F.xxhash64(F.lit(seed), *key).alias(_ORDER)
    keyed = (data.frame.dropna() if data.whole else data.frame).select("*", order)
    keyed = keyed.withColumn(_PART, F.shiftright(_ORDER, 64 - PART_BITS))
    earlier = Window.orderBy(_PART).rowsBetween(Window.unboundedPreceding, -1)
    before = F.coalesce(F.sum("count").over(earlier), F.lit(0)).alias(_BEFORE)
    sizes = keyed.groupBy(_PART).count().select(_PART, before)
    # A key may be null, and then be that of several rows.
    in_order = Window.partitionBy(_PART).orderBy(_ORDER, *key, *data.columns)
    number = F.row_number().over(in_order) - 1 + F.col(_BEFORE)
    return keyed.join(F.broadcast(sizes), _PART, how="inner").select(
        number.cast("long").alias(NUMBER), *data.columns
    )


def sample_size(count: int, selectivity: float, what: str = "rows") -> int:
    """Return how many of `count` rows make the subscriptions, or raise InvalidConfiguration."""
    size = min(SAMPLE_MAX, count // SAMPLE_SHARE)
    if size * selectivity < ROWS_MATCHED_MIN:
        least = SAMPLE_SHARE * round(ROWS_MATCHED_MIN / selectivity + 1)
        raise InvalidConfiguration(
            f"{count} {what} are too few for a selectivity of {selectivity:g}: "
            f"it takes {least}, or subscriptions of your own"
        )
    return size


class Wanted(NamedTuple):
    """How many subscriptions are made, and of what share."""

    total: int
    selectivity: float
    seed: int
    by_value: frozenset[str] = frozenset()
    """The attributes of which they name values, and no ranges."""
    what: str = "rows"


def filter_texts(spark: SparkSession, sample: pa.Table, wanted: Wanted) -> DataFrame:
    """Return `number` and `filter` of the wanted subscriptions."""
    names = [name for name in sample.column_names if name != NUMBER]
    columns = {name: sample.column(name).to_pylist() for name in names}
    maker = ship(spark, DrawnFilters(columns, wanted.selectivity, wanted.by_value))

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column("id").to_pylist()
            texts = [_text(maker(), wanted, number) for number in numbers]
            yield pa.RecordBatch.from_pydict({"number": numbers, "filter": texts})

    count = max(1, wanted.total)
    numbered = spark.range(0, wanted.total, 1, min(task_count(spark), count))
    return numbered.mapInArrow(make, "number long, filter string").select("number", "filter")


def _text(maker: DrawnFilters, wanted: Wanted, number: int) -> str:
    random = np.random.default_rng([wanted.seed, 2, number])
    share = wanted.selectivity
    allowed = max(TOLERANCE * share, 1 / maker.size)
    nearest = 0.0
    for _ in range(_TRIES):
        drawn = maker.draw(random)
        if abs(drawn.share - share) <= allowed:
            return print_filter(drawn.filter)
        nearest = min(nearest, drawn.share, key=lambda each: abs(each - share))
    raise InvalidConfiguration(
        f"no {_TRIES} draws gave a subscription of {share:g}: the {wanted.what} are too few, "
        f"or too much alike; the nearest was of {nearest:.3g}"
    )
