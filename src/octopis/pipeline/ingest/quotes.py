"""Synthetic quotes, where nobody has real ones: seeded, of the usual shape, and derived alike."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.pipeline.ingest.mapping import quotes_mapping
from octopis.pipeline.ingest.rules import typed_rules
from octopis.pipeline.ingest.settling import changes
from octopis.pipeline.schemas import QUOTES, RAW_COLUMNS
from octopis.scenario.stock import daily_quotes

DAYS = 268
"""With 500 symbols about as many quotes as the US market's largest 500 have in a year."""


def synthetic_quotes(spark: SparkSession, seed: int, days: int = DAYS) -> DataFrame:
    """Return the quotes of 500 symbols that walk at random."""
    rules = typed_rules(quotes_mapping())
    columns = daily_quotes(seed, days)
    table = pa.table({name: columns[name] for name in RAW_COLUMNS})
    rows = table.sort_by([(name, "ascending") for name in rules.key]).combine_chunks()
    (batch,) = rows.to_batches()
    for rule in rules.changes:
        rows = rows.append_column(rule.name, changes(batch, rule, rules.key))
    derived = {rule.name: F.expr(rule.said.derive or "").cast("double") for rule in rules.derived}
    return spark.createDataFrame(rows).withColumns(derived).select(*QUOTES.fieldNames())
