"""The embedded default: seeded quotes of the usual shape, derived on Spark like any others."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from octopis.pipeline.ingest.quotes import derived
from octopis.pipeline.schemas import RAW_COLUMNS
from octopis.scenario.stock import daily_quotes

DAYS = 268
"""With 500 symbols about as many quotes as the US market's largest 500 have in a year."""


def synthetic_quotes(spark: SparkSession, seed: int, days: int = DAYS) -> DataFrame:
    """Return the quotes of 500 symbols that walk at random."""
    columns = daily_quotes(seed, days)
    table = pa.table({name: columns[name] for name in RAW_COLUMNS})
    return derived(spark.createDataFrame(table))
