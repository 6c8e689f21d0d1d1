import time

from pyspark.sql import SparkSession

from octopis.pipeline.spark.progress import watched


def test_tasks_are_counted_while_they_run(spark: SparkSession):
    def wait(batches):
        for batch in batches:
            time.sleep(1)
            yield batch

    seen = []
    with watched(spark, lambda done, total: seen.append((done, total))):
        spark.range(0, 6, 1, 6).mapInArrow(wait, "id long").collect()
    count = len(seen)
    assert {total for _, total in seen} == {6}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert max(done for done, _ in seen) >= 1
    spark.range(2).count()
    assert len(seen) == count, "nobody is told once the work is done"
