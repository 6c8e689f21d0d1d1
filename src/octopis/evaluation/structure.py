"""What follows from the overlay's structure alone, and must hold exactly in every run."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.topology import SCOT


def distances(spark: SparkSession, scot: SCOT) -> DataFrame:
    """Return for each broker how far the others are: the longest way, and the mean."""
    others = max(1, len(scot.brokers) - 1)
    rows = []
    for broker in scot.brokers:
        ways = [scot.distance(broker, other) for other in scot.brokers]
        rows.append({"broker": broker.short, "furthest": max(ways), "mean": sum(ways) / others})
    return spark.createDataFrame(pa.Table.from_pylist(rows))


def tree_lengths(subscriptions: DataFrame, far: DataFrame) -> DataFrame:
    """Return for each run how many subscription trees are not of shortest paths, and messages.

    A tree is one of shortest paths if no broker is further from its root than in the graph, and
    the mean is the graph's as well.
    """
    longer = (F.col("tree_length_max") != F.col("furthest")) | (
        F.col("tree_length_mean") != F.col("mean")
    )
    return (
        subscriptions.join(F.broadcast(far), "broker", how="inner")
        .groupBy("run")
        .agg(
            F.count("*").alias("trees"),
            F.count_if(longer).alias("trees_longer"),
            F.min("ims").alias("subscription_ims_min"),
            F.max("ims").alias("subscription_ims_max"),
        )
        .orderBy("run")
    )
