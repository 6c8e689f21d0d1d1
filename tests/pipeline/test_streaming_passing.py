"""Without a disk: read at most once, where that is what was said."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from octopis.client.sync_client import connect_sync
from octopis.core.routing import Algorithm
from octopis.pipeline.streaming import passing
from octopis.pipeline.streaming.options import stream_options
from support.live import in_a_thread, line, overlay


def test_an_overlay_without_a_disk_is_read_at_most_once(spark: SparkSession, tmp_path: Path):
    with in_a_thread(overlay(line(1), Algorithm.TNR)) as urls, connect_sync(urls["a,0"]) as client:
        reader = spark.readStream.format("octopis").option("filter", "n >= 0").schema("n LONG")
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


def test_a_batch_that_fills_the_buffer_does_not_end_the_stream(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(passing, "BYTES_MAX", 10_000)
    with in_a_thread(overlay(line(1), Algorithm.TNR)) as urls, connect_sync(urls["a,0"]) as client:
        said = {"address": urls["a,0"], "subscription": "", "filter": "n >= 0"}
        reader = passing.PassingReader(stream_options(said), StructType().add("n", "long"))
        start, limit, done = reader.initialOffset(), reader.getDefaultReadLimit(), None
        found: list[int] = []
        try:
            # As Spark does: a batch is committed when the next one has data.
            for burst, payload in ((1, b""), (40, b"x" * 1_000)):
                client.publish_many([({"n": n}, payload) for n in range(burst)])
                wanted, until = len(found) + burst, time.monotonic() + 20
                while reader._caught().end < len(found) + min(burst, 10):  # as many as have room
                    assert time.monotonic() < until
                while len(found) < wanted:
                    assert time.monotonic() < until, f"stuck after {len(found)} rows"
                    end = reader.latestOffset(start, limit)
                    if end == start:
                        continue
                    if done is not None:
                        reader.commit(done)
                    for part in reader.partitions(start, end):
                        found += [n for rows in reader.read(part) for n in rows["n"].to_pylist()]
                    start = done = end
            assert found == [0, *range(40)]
            assert reader.reportLatestOffset()["lost"] == 0
        finally:
            reader.stop()


def test_what_waits_for_spark_has_a_bound_in_bytes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(passing, "BYTES_MAX", 10_000)
    with in_a_thread(overlay(line(1), Algorithm.TNR)) as urls, connect_sync(urls["a,0"]) as client:
        said = {"address": urls["a,0"], "subscription": "", "filter": "n >= 0"}
        catch = passing._Catch(stream_options(said))
        try:
            client.publish_many([({"n": n}, b"x" * 1_000) for n in range(50)])
            seen, until = 0, time.monotonic() + 30
            while seen < 50:
                assert time.monotonic() < until
                end = catch.wait(seen)
                assert catch._bytes <= 12_000
                assert end - seen <= 10
                catch.between(seen, end)
                catch.forget(end)
                seen = end
            assert (catch.end, catch.gaps, catch._bytes) == (50, 0, 0)
        finally:
            catch.close()
