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
from pyspark.sql.types import LongType, StructField, StructType

from octopis.broker.settings import Durability
from octopis.core.delivery.lasting.records import Policy
from octopis.core.routing import Algorithm
from octopis.errors import DataLost, InvalidSubscription
from octopis.pipeline.spark.session import sentence
from octopis.pipeline.streaming import progress
from octopis.pipeline.streaming.columns import Columns
from octopis.pipeline.streaming.offsets import Offset
from octopis.pipeline.streaming.options import Mode, stream_options
from octopis.pipeline.streaming.ranges import Range, read_range
from support.durable_disk import Desk, broker_with_disk, desk
from support.live import in_a_thread, line, overlay

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


def condition(name: str) -> str:
    return f"n >= 0 AND test = {name.removeprefix('test-')}"


def numbered(name: str, *numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"test": int(name.removeprefix("test-")), "n": n, **more} for n in numbers]


class Query:
    """A streaming query of one subscription into a folder of Parquet files."""

    def __init__(self, spark: SparkSession, url: str, name: str, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self.schema = "n LONG, _position LONG"
        self.options: dict[str, Any] = {"address": url, "subscription": name}

    def run(self, **options: Any) -> Any:
        """Read all that there is, and return the query, which has ended."""
        said = self.options | options
        frame = self._spark.readStream.format("octopis").options(**said).schema(self.schema).load()
        writer = frame.writeStream.format("parquet").option("path", str(self._folder / "out"))
        checkpointed = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        query = checkpointed.trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    def fails(self, **options: Any) -> str:
        """Return our sentence of a query that fails."""
        with pytest.raises(PySparkException) as failure:
            self.run(**options)
        return sentence(failure.value)

    @property
    def rows(self) -> list[tuple[int, int]]:
        frame = self._spark.read.parquet(str(self._folder / "out")).orderBy("_position")
        return [(row._position, row.n) for row in frame.collect()]


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


def test_a_subscription_that_is_gone_or_was_made_anew_is_data_loss(
    query: Query, at_broker: Desk, name: str
):
    at_broker.make(name, condition(name))
    at_broker.publish(numbered(name, 1, 2))
    query.run()
    at_broker.drop(name)
    assert "there is no durable subscription" in query.fails()
    at_broker.make(name, condition(name))
    told = query.fails()
    assert "made anew since the checkpoint" in told
    assert "failOnDataLoss" in told
    at_broker.publish(numbered(name, 3))
    query.run(failOnDataLoss=False)
    assert sorted(query.rows) == [(1, 1), (1, 3), (2, 2)]


def test_what_a_quota_dropped_is_data_loss(spark: SparkSession, name: str, tmp_path: Path):
    with broker_with_disk(tmp_path / "disk", quota_bytes=2**20) as url, desk(url) as at_broker:
        query = Query(spark, url, name, tmp_path)
        at_broker.make(name, condition(name), Policy.DROP_OLDEST)
        at_broker.publish(numbered(name, 0))
        query.run()
        for start in range(1, 5_001, 500):
            at_broker.publish(numbered(name, *range(start, start + 500), text="x" * 300))
        dropped = at_broker.info(name).dropped
        assert dropped
        told = query.fails()
        assert "are not there any more" in told
        assert "quota" in told
        done = query.run(failOnDataLoss=False)
        rows = query.rows
        assert progress(done)[0].lost == 5_001 - len(rows)
        assert rows[-1] == (5_001, 5_000)


def test_what_somebody_else_has_acknowledged_is_data_loss(query: Query, at_broker: Desk, name: str):
    at_broker.make(name, condition(name))
    at_broker.publish(numbered(name, 1, 2, 3))
    query.run()
    at_broker.publish(numbered(name, 4, 5, 6))
    at_broker.ack(name, 5)
    told = query.fails()
    assert "2 notifications" in told
    assert "acknowledged by somebody else" in told
    assert "failOnDataLoss" in told
    done = query.run(failOnDataLoss=False)
    assert query.rows == [(1, 1), (2, 2), (3, 3), (6, 6)]
    assert progress(done)[0].lost == 2


def test_a_subscription_that_is_gone_is_made_again_where_losses_do_not_matter(
    query: Query, at_broker: Desk, name: str
):
    at_broker.make(name, condition(name))
    at_broker.publish(numbered(name, 1, 2))
    query.run()
    at_broker.drop(name)
    query.run(failOnDataLoss=False, filter=condition(name))
    at_broker.publish(numbered(name, 3))
    query.run(failOnDataLoss=False)
    assert sorted(query.rows) == [(1, 1), (1, 3), (2, 2)]


def test_a_task_whose_subscription_is_dropped_meanwhile_says_what_is_lost(
    url: str, at_broker: Desk, name: str
):
    epoch = at_broker.make(name, condition(name)).epoch
    at_broker.publish(numbered(name, 1, 2))
    planned = Range(Offset(name, epoch, 0), 2)
    said = {"address": url, "subscription": name}
    columns = Columns(StructType([StructField("n", LongType())]), Mode.PERMISSIVE)

    def rows(**more: str) -> list[int]:
        batches = read_range(planned, stream_options(said | more), columns)
        return [row["n"] for batch in batches for row in batch.to_pylist()]

    assert rows() == [1, 2]
    at_broker.drop(name)
    with pytest.raises(DataLost, match=r"is no durable subscription .* here any more.*failOnData"):
        rows()
    assert rows(failOnDataLoss="false") == []
    with desk(url, secret="theirs") as others:  # noqa: S106 - of this test
        others.make(name, condition(name))
        with pytest.raises(InvalidSubscription, match="is another's"):
            rows(failOnDataLoss="false")


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
