"""The stability series: the maximum delay of each 1,000 deliveries, in the order they came.

Numbering millions of rows in one window would be the work of one task. So the rows are numbered
within each second, and the seconds before are counted and added up.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from octopis.pipeline.metrics import SECOND_NS

BLOCK = 1_000


def stability_series(delays: DataFrame, block: int = BLOCK) -> DataFrame:
    """Return `run`, `block`, its deliveries, when the last came, and the longest delay."""
    seconds = delays.select(
        "run",
        F.floor(F.col("delivered_ns") / SECOND_NS).alias("second"),
        "delivered_ns",
        "delay_ns",
    )
    earlier = Window.partitionBy("run").orderBy("second").rowsBetween(Window.unboundedPreceding, -1)
    before = (
        seconds.groupBy("run", "second")
        .count()
        .select("run", "second", F.coalesce(F.sum("count").over(earlier), F.lit(0)).alias("before"))
    )
    # Rows that are equal in both are equal in everything that the series shows.
    in_order = Window.partitionBy("run", "second").orderBy("delivered_ns", "delay_ns")
    numbered = seconds.withColumn("number", F.row_number().over(in_order) - 1).join(
        F.broadcast(before), ["run", "second"], how="inner"
    )
    return (
        numbered.groupBy("run", F.floor((F.col("before") + F.col("number")) / block).alias("block"))
        .agg(
            F.count("*").alias("deliveries"),
            F.max("delivered_ns").alias("end_ns"),
            F.max("delay_ns").alias("delay_max_ns"),
        )
        .orderBy("run", "block")
    )
