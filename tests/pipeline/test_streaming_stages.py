"""Where Spark's tasks stage rows: under which names, for how long, and how patiently."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import Durability
from octopis.client.address import parse_addresses
from octopis.client.client import connect
from octopis.core.routing import Algorithm
from octopis.core.wire.frames import encode
from octopis.pipeline.streaming.staging import STAGES_MAX, Attempt, Place, staging_at
from support.live import in_a_thread, line, overlay
from support.sinks import kept, read, run, save, stream_of


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    folder = tmp_path_factory.mktemp("disk")
    durable = overlay(line(2), Algorithm.TNR, durability=Durability(str(folder)))
    with in_a_thread(durable) as found:
        yield list(found.values())


def numbers_of(found: list[Any]) -> dict[str, list[int]]:
    """Return the numbers of each publisher, in the order in which they came."""
    numbers: dict[str, list[int]] = {}
    for each in found:
        numbers.setdefault(each.publisher, []).append(each.sequence)
    return numbers


def test_publisher_and_number_name_each_row_of_all_parts_and_batches(
    spark: SparkSession, urls: list[str], tmp_path: Path
):
    kept(urls[1], "named", "kind = 'named'")
    for number in range(2):
        frame = spark.range(40).selectExpr("'named' AS kind", f"id + {40 * number} AS n")
        stream_of(spark, tmp_path / "in", frame.coalesce(1))
    stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1)
    query = run(stream.parquet(str(tmp_path / "in")).repartition(4), urls[0], tmp_path / "c")
    assert query.lastProgress["batchId"] == 1
    numbers = numbers_of(read(urls[1], "named", 80))
    assert len(numbers) < 8  # a worker stages several parts, in several batches
    for found in numbers.values():
        assert found == list(range(1, len(found) + 1))


def test_an_attempt_that_does_not_come_behind_the_last_begins_under_another_name(urls: list[str]):
    kept(urls[1], "tried", "kind = 'tried'")
    place = Place(parse_addresses(urls[0])[0], "one query")
    staged = []
    for part, refused in ((0, False), (2, True), (2, False), (1, False), (3, False)):
        with staging_at(place, "tried") as stage:
            attempt = Attempt("tried", 0, part)
            stage.begin(attempt)
            stage.limits()
            first = stage.numbered + 1
            row = {"kind": "tried", "part": part}
            rows = [(row, b"", stage.publisher, first + n, 0) for n in range(2)]
            stage.stage(attempt, 0, encode(rows))
            stage.wait()
        if not refused:
            staged.append((part, attempt.number, 2))
    with staging_at(place, "tried", keeps=False) as stage:
        stage.commit("tried", 0, sorted(staged))
    found = read(urls[1], "tried", 8)
    assert [each.attributes["part"] for each in found] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert sorted(numbers_of(found).values()) == [[1, 2], [1, 2], [1, 2, 3, 4]]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[tuple[str, LiveBroker]]:
    """Run one broker with a disk, which nobody else uses."""
    lives: list[Any] = []
    durable = overlay(line(1), Algorithm.TNR, durability=Durability(str(tmp_path / "disk")))
    with in_a_thread(durable, lives.append) as found:
        (url,), (broker,) = found.values(), lives[0].values()
        yield url, broker


def has_clients(broker: LiveBroker, count: int) -> None:
    """Wait until a broker has so many clients, for less long than it keeps one who is gone."""
    until = time.monotonic() + 4
    while (found := len(broker.clients)) != count:
        assert time.monotonic() < until, f"{found} clients, not {count}"
        time.sleep(0.05)


def test_a_frame_that_was_written_leaves_nobody_at_the_broker(
    spark: SparkSession, alone: tuple[str, LiveBroker]
):
    url, broker = alone
    for _ in range(3):
        save(spark.range(4).selectExpr("id AS n").repartition(2), url)
    with pytest.raises(PySparkException, match="FAILFAST"):
        save(spark.sql("SELECT double('NaN') AS n"), url, mode="FAILFAST")
    has_clients(broker, 0)


def test_a_worker_keeps_the_stages_of_those_queries_that_it_wrote_for_last(
    alone: tuple[str, LiveBroker],
):
    url, broker = alone
    place = Place(parse_addresses(url)[0], "one for all")

    def staged(number: int, *, keeps: bool = True) -> str:
        with staging_at(place, f"query {number}", keeps=keeps) as stage:
            stage.limits()
            return stage.name

    names = {number: staged(number) for number in range(STAGES_MAX)}
    assert staged(0) == names[0]
    staged(STAGES_MAX)  # for which that of query 1 goes
    has_clients(broker, STAGES_MAX)
    assert names[1] not in broker.clients
    assert names[0] in broker.clients
    for number in (0, *range(2, STAGES_MAX + 1)):
        staged(number, keeps=False)
    has_clients(broker, 0)


SMALL = 4 * 2**20
"""A quota of which batches may stage 838,860 bytes."""


async def fill(url: str, broker: LiveBroker) -> None:
    """Publish at a neighbour until a broker's disk is full of what nobody has acknowledged."""
    assert broker.keeping is not None
    async with connect(url) as client:
        for _ in range(SMALL // 25_000 * 4):
            if broker.keeping.channels.is_full:
                return
            await client.publish_many([({"fill": n}, b"x" * 1_000) for n in range(25)])
    raise AssertionError("the disk is not full")


async def read_slowly(url: str, count: int) -> list[int]:
    """Acknowledge a little at a time, until so many rows of Spark's have come, and no more do."""
    numbers: list[int] = []
    async with connect(url) as client:
        (info,) = await client.durables()
        position = info.acked
        while True:
            wait_s = 20 if len(numbers) < count else 0.5
            batch = await client.read("slow", position, 200, wait_s=wait_s)
            if not batch.notifications:
                return numbers
            found = [each.attributes for each in batch.notifications]
            numbers += [int(each["n"]) for each in found if "n" in each]
            position += len(found)
            await client.ack("slow", info.epoch, position)


def test_a_full_disk_and_a_slow_reader_slow_a_query_down_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path
):
    """A query writes more than fits, to a disk that is full when it begins."""
    lives: list[Any] = []
    disk = Durability(str(tmp_path / "disk"), quota_bytes=SMALL)
    with in_a_thread(overlay(line(2), Algorithm.TNR, durability=disk), lives.append) as found:
        full, other = found.values()
        broker = next(iter(lives[0].values()))
        refused: list[object] = []
        refusal = broker.keeping.staging_refusal
        broker.keeping.staging_refusal = lambda: (refused.append(refusal()), refused[-1])[1]
        kept(full, "slow", "n >= 0 OR fill >= 0")
        uvloop.run(fill(other, broker))
        for number in range(7):
            frame = spark.range(700 * number, 700 * (number + 1)).selectExpr(
                "id AS n", "repeat('x', 1000) AS _payload"
            )
            stream = stream_of(spark, tmp_path / "in", frame.coalesce(1))
        files = spark.readStream.schema(stream.schema).option("maxFilesPerTrigger", 1)
        query = (
            files.parquet(str(tmp_path / "in"))
            .writeStream.format("octopis")
            .options(address=full, checkpointLocation=str(tmp_path / "c"))
            .trigger(availableNow=True)
            .start()
        )
        until = time.monotonic() + 60
        while not any(refused):
            assert query.isActive, query.exception()
            assert time.monotonic() < until, "the query has not come as far as the disk"
            time.sleep(0.05)
        numbers = uvloop.run(read_slowly(full, 4_900))
        assert sorted(numbers) == list(range(4_900))
        query.awaitTermination()
        assert query.lastProgress["batchId"] == 6
