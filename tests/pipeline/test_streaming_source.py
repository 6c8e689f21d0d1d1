"""Spark reads the overlay: real brokers with a disk, real queries, checkpoints and restarts."""

import json
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from octopis.broker.settings import Durability
from octopis.core.routing import Algorithm
from octopis.pipeline.spark.session import sentence
from octopis.pipeline.streaming import progress
from support.durable_disk import Desk, broker_with_disk, desk
from support.live import in_a_thread, line, overlay
from support.streams import Query, condition, numbered

_numbers = count(1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker_with_disk(tmp_path_factory.mktemp("disk")) as found:
        yield found


@pytest.fixture(scope="module")
def at_broker(url: str) -> Iterator[Desk]:
    with desk(url) as found:
        yield found


@pytest.fixture
def name() -> str:
    """A subscription that no other test has; its notifications have its number as `test`."""
    return f"test-{next(_numbers)}"


@pytest.fixture
def query(spark: SparkSession, url: str, name: str, tmp_path: Path) -> Query:
    return Query(spark, url, name, tmp_path)


def test_a_query_that_is_started_again_goes_on_and_releases_one_batch_behind(
    query: Query, at_broker: Desk, name: str
):
    at_broker.make(name, condition(name))
    at_broker.publish(numbered(name, *range(100)))
    first = query.run(maxOffsetsPerTrigger=40)
    assert [each["numInputRows"] for each in first.recentProgress] == [40, 40, 20]
    (seen,) = progress(first)
    assert (seen.read, seen.end, seen.behind, seen.rows, seen.lost) == (100, 100, 0, 20, 0)
    assert seen.committed in {40, 80}
    assert at_broker.info(name).acked < 100
    at_broker.publish(numbered(name, *range(100, 150)))
    query.run()
    assert query.rows == [(n + 1, n) for n in range(150)]
    assert at_broker.info(name).acked == 100


def test_a_new_query_makes_its_subscription_and_begins_there(
    query: Query, at_broker: Desk, name: str
):
    at_broker.publish(numbered(name, 1))
    query.run(filter=condition(name))
    at_broker.publish(numbered(name, 2, 3))
    query.run(filter=condition(name))
    assert query.rows == [(1, 2), (2, 3)]


def test_a_batch_that_is_run_again_has_the_same_rows_in_the_same_order(
    query: Query, at_broker: Desk, name: str, tmp_path: Path
):
    at_broker.make(name, condition(name))
    at_broker.publish(numbered(name, *range(30)))
    query.run(minPartitions=3)
    before = query.rows
    commits = tmp_path / "checkpoint" / "commits"
    for file in commits.iterdir():  # as if Spark had died before it noted that the batch is done
        file.unlink()
    shutil.rmtree(tmp_path / "out")
    at_broker.publish(numbered(name, 99))
    again = query.run()
    assert [each["numInputRows"] for each in again.recentProgress] == [30, 1]
    assert query.rows == [*before, (31, 99)]


def test_available_now_ends_where_the_subscription_ended_when_it_began(
    spark: SparkSession, url: str, at_broker: Desk, name: str, tmp_path: Path
):
    at_broker.make(name, condition(name))
    at_broker.publish(numbered(name, *range(20)))
    found: list[int] = []

    def take(batch: DataFrame, number: int) -> None:
        at_broker.publish(numbered(name, *range(100 * number + 100, 100 * number + 120)))
        found.extend(row.n for row in batch.orderBy("_position").collect())

    frame = spark.readStream.format("octopis").options(subscription=name, maxOffsetsPerTrigger=10)
    writer = frame.schema("n LONG, _position LONG").load(url).writeStream.foreachBatch(take)
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    writer.start().awaitTermination()
    assert found == list(range(20))
    assert at_broker.info(name).end == 60


def test_tasks_and_bytes_of_a_batch_are_as_wanted(query: Query, at_broker: Desk, name: str):
    at_broker.make(name, condition(name))
    at_broker.publish(numbered(name, *range(100), text="x" * 1_000))
    done = query.run(maxBytesPerTrigger=60_000)
    sizes = [each["numInputRows"] for each in done.recentProgress]
    assert sum(sizes) == 100
    assert all(30 <= size <= 60 for size in sizes[:-1])
    assert len(sizes) >= 2


def test_a_stream_that_runs_takes_what_comes(
    spark: SparkSession, url: str, at_broker: Desk, name: str, tmp_path: Path
):
    at_broker.make(name, condition(name))
    options = {"subscription": name, "filter": condition(name), "startingOffsets": "latest"}
    at_broker.publish(numbered(name, 1))
    frame = spark.readStream.format("octopis").options(**options).load(url)
    assert frame.columns[0] == "attributes"
    writer = frame.writeStream.format("memory").queryName(name.replace("-", "_"))
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        query.processAllAvailable()
        at_broker.publish(numbered(name, 2, price=1.5))
        query.processAllAvailable()
    finally:
        query.stop()
    (row,) = spark.table(name.replace("-", "_")).collect()
    assert row.attributes == {"test": name.removeprefix("test-"), "n": "2", "price": "1.5"}
    assert (row._position, row._sequence > 0, row._payload) == (2, True, b"")


def test_values_that_do_not_fit_are_null_and_told_and_counted(
    query: Query, at_broker: Desk, name: str, spark: SparkSession
):
    at_broker.make(name, condition(name))
    at_broker.publish(numbered(name, 1, price="dear") + numbered(name, 2, price=7))
    said = query.options
    read = spark.read.format("octopis").options(**said)
    rows = read.schema("n LONG, price DOUBLE, _refused STRING").load().orderBy("n").collect()
    assert [(row.price, row._refused) for row in rows] == [(None, '{"price":"dear"}'), (7.0, None)]
    query.schema = "n LONG, price DOUBLE"
    told = query.fails(mode="FAILFAST")
    assert "'price' at position 1 is 'dear'" in told


def read(spark: SparkSession, url: str, name: str, **options: Any) -> DataFrame:
    reader = spark.read.format("octopis").option("subscription", name).options(**options)
    return reader.schema("n LONG, _position LONG").load(url)


def test_a_batch_reads_a_range_and_acknowledges_nothing(
    spark: SparkSession, url: str, at_broker: Desk, name: str
):
    info = at_broker.make(name, condition(name))
    assert read(spark, url, name).count() == 0
    at_broker.publish(numbered(name, *range(1, 21)))
    whole = read(spark, url, name, minPartitions=4)
    assert whole.agg(F.sum("n"), F.count("n")).first()[:] == (210, 20)
    assert whole.select(F.spark_partition_id()).distinct().count() == 4
    ends = json.dumps({"subscription": name, "epoch": info.epoch, "position": 8})
    some = read(spark, url, name, startingOffsets='{"position": 5}', endingOffsets=ends)
    assert [row.n for row in some.orderBy("n").collect()] == [6, 7, 8]
    assert at_broker.info(name).acked == 0
    with pytest.raises(PySparkException) as failure:
        read(spark, url, name, endingOffsets='{"position": 21}').collect()
    assert "up to 20" in sentence(failure.value)
    with pytest.raises(PySparkException) as failure:
        read(spark, url, "nobody").collect()
    assert "no durable subscription 'nobody'" in sentence(failure.value)


def test_of_several_addresses_the_one_where_the_subscription_lives_is_found(
    spark: SparkSession, name: str, tmp_path: Path
):
    durability = Durability(str(tmp_path / "disk"))
    two = overlay(line(2), Algorithm.TNR, durability=durability)
    with in_a_thread(two) as urls, desk(urls["b,0"]) as there:
        there.make(name, condition(name))
        both = f"{urls['a,0']},{urls['b,0'].removeprefix('octopis://')}"
        query = Query(spark, both, name, tmp_path)
        for number in (1, 2):  # the second start has a checkpoint
            there.publish(numbered(name, number))
            query.run(minPartitions=2)
        assert query.rows == [(1, 1), (2, 2)]
        assert read(spark, both, name).count() == 1, "the first is released"


def test_a_subscription_with_an_owner_is_read_with_the_secret(
    query: Query, at_broker: Desk, url: str, name: str, tmp_path: Path
):
    with desk(url, secret="mine") as owner:  # noqa: S106 - of this test
        owner.make(name, condition(name))
    at_broker.publish(numbered(name, 1))
    assert "another's" in query.fails()
    (tmp_path / "secret").write_text("mine\n")
    query.run(secretFile=str(tmp_path / "secret"))
    assert query.rows == [(1, 1)]
