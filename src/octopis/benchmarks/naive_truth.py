"""The plan that comes to mind first: a cross join, with the filters as one expression."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.benchmarks.matching import bounds
from octopis.pipeline.schemas import PAIRS, QUOTES
from octopis.scenario.tables import Subscriber

_KINDS = {"string": pa.string(), "double": pa.float64(), "bigint": pa.int64()}


def naive_pairs(
    spark: SparkSession, notifications: DataFrame, subscribers: list[Subscriber]
) -> DataFrame:
    """Return the same pairs as `pipeline.truth.pairs`; all filters must be plain ranges."""
    ranges = [bounds(each.filter) for each in subscribers]
    columns = {"subscription": pa.array([each.subscription for each in subscribers])}
    for field in QUOTES:
        kind = _KINDS[field.dataType.simpleString()]
        for end, place in (("low", 0), ("high", 1)):
            values = [each[field.name][place] if field.name in each else None for each in ranges]
            columns[f"{field.name}_{end}"] = pa.array(values, kind)
    wanted = spark.createDataFrame(pa.table(columns))
    holds = F.lit(True)
    for name in QUOTES.fieldNames():
        value = F.col(f"attributes.{name}")
        inside = value.between(F.col(f"{name}_low"), F.col(f"{name}_high"))
        holds &= F.col(f"{name}_low").isNull() | inside
    return notifications.join(F.broadcast(wanted), holds, how="inner").select(*PAIRS.fieldNames())
