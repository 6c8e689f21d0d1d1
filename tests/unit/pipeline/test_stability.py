from random import Random

from pyspark.sql import SparkSession

from octopis.pipeline.results.metrics import stability_series


def test_series_is_the_longest_delay_of_each_block_in_order_of_arrival(spark: SparkSession):
    random = Random(1)  # noqa: S311 - repeatable on purpose
    rows = [
        (run, random.randrange(5_000_000_000), random.randrange(10**9), 1)
        for run, count in (("a", 257), ("b", 30))
        for _ in range(count)
    ]
    frame = spark.createDataFrame(rows, "run string, delivered_ns long, delay_ns long, hops int")
    found = {
        (row["run"], row["block"]): (row["deliveries"], row["end_ns"], row["delay_max_ns"])
        for row in stability_series(frame.repartition(5), block=10).collect()
    }
    wanted = {}
    for run in ("a", "b"):
        own = sorted(row[1:3] for row in rows if row[0] == run)
        for start in range(0, len(own), 10):
            part = own[start : start + 10]
            wanted[run, start // 10] = (len(part), part[-1][0], max(delay for _, delay in part))
    assert found == wanted
