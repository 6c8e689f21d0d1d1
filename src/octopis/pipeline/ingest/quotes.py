"""Synthetic quotes, where nobody has real ones: seeded, of the usual shape, and derived alike."""

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from octopis.pipeline.ingest.folder import Data, attributes_of
from octopis.pipeline.ingest.mapping import quotes_mapping
from octopis.pipeline.ingest.rules import typed_rules
from octopis.pipeline.ingest.settling import changes
from octopis.scenario.stock import daily_quotes

DAYS = 268
"""With 500 symbols about as many quotes as the US market's largest 500 have in a year."""


def synthetic_quotes(spark: SparkSession, seed: int, days: int = DAYS) -> Data:
    """Return the quotes of 500 symbols that walk at random."""
    mapping = quotes_mapping()
    rules = typed_rules(mapping)
    columns = daily_quotes(seed, days)
    table = pa.table({rule.name: columns[rule.name] for rule in rules.read})
    rows = table.sort_by([(name, "ascending") for name in rules.key]).combine_chunks()
    (batch,) = rows.to_batches()
    for rule in rules.changes:
        rows = rows.append_column(rule.name, changes(batch, rule, rules.key))
    derived = {rule.name: F.expr(rule.said.derive or "").cast("double") for rule in rules.derived}
    known = attributes_of(rules)
    frame = spark.createDataFrame(rows).withColumns(derived).select(*known)
    return Data(frame, known, mapping.key, mapping.whole, mapping.name)
