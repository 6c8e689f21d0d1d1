"""Without a disk: refused with a reason, or read at most once where that is what was said."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octopis.client.sync_client import connect_sync
from octopis.core.routing import Algorithm
from octopis.pipeline.spark.session import sentence
from support.live import in_a_thread, line, overlay


def test_an_overlay_without_a_disk_is_refused_or_read_at_most_once(
    spark: SparkSession, tmp_path: Path
):
    with in_a_thread(overlay(line(1), Algorithm.TNR)) as urls, connect_sync(urls["a,0"]) as client:
        reader = spark.readStream.format("octopis").option("filter", "n >= 0").schema("n LONG")
        lasting = reader.option("subscription", "risk").load(urls["a,0"])
        refused = lasting.writeStream.format("noop")
        with pytest.raises(PySparkException) as failure:
            refused.option("checkpointLocation", str(tmp_path / "a")).start().awaitTermination()
        told = sentence(failure.value)
        assert "--durable" in told
        assert "at most once" in told

        frame = reader.option("subscription", "").load(urls["a,0"])
        found: list[int] = []
        for numbers in (range(10), range(20, 30)):
            before = len(found)
            writer = frame.writeStream.foreachBatch(
                lambda batch, _: found.extend(row.n for row in batch.collect())
            )
            query = writer.option("checkpointLocation", str(tmp_path / "b")).start()
            try:
                while not client.status()["subscriptions"]:
                    assert query.exception() is None
                client.publish_many([{"n": n} for n in numbers])
                while len(found) < before + len(numbers):
                    assert query.exception() is None
                    query.processAllAvailable()
            finally:
                query.stop()
            while client.status()["subscriptions"]:  # the source says goodbye when it is ended
                assert query.exception() is None
            client.publish({"n": 99})  # while none runs: nobody keeps it
        assert found == [*range(10), *range(20, 30)]
