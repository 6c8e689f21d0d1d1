from pyspark.sql import SparkSession

from octopis.pipeline.ingest.synthetic import synthetic_quotes
from octopis.pipeline.schemas import QUOTES


def test_seeded_quotes_have_the_usual_shape(spark: SparkSession):
    quotes = synthetic_quotes(spark, seed=3, days=3)
    rows = quotes.orderBy("symbol", "date").collect()
    assert quotes.columns == QUOTES.fieldNames()
    assert len(rows) == 1500
    assert sum(row["change_percent"] is None for row in rows) == 500
    again = synthetic_quotes(spark, seed=3, days=3).orderBy("symbol", "date").collect()
    other = synthetic_quotes(spark, seed=4, days=3).orderBy("symbol", "date").collect()
    assert rows == again
    assert rows != other
