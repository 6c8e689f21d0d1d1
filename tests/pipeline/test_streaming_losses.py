"""What a durable subscription does not have any more: told, and counted if it does not matter."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from octopis.broker.settings import Durability
from octopis.core.delivery.lasting.records import Policy
from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm
from octopis.errors import ConnectionFailed, DataLost, InvalidSubscription
from octopis.pipeline.streaming import progress
from octopis.pipeline.streaming.columns import Columns
from octopis.pipeline.streaming.connection import Gone
from octopis.pipeline.streaming.home import Home
from octopis.pipeline.streaming.offsets import Offset
from octopis.pipeline.streaming.options import Mode, stream_options
from octopis.pipeline.streaming.ranges import Range, read_range
from octopis.pipeline.streaming.reader import reopened
from support.cutting import Cut, cutting_proxy
from support.damage import flip
from support.durable_disk import Desk, broker_with_disk, desk
from support.live import client_of, in_a_thread, line, overlay, ready, run_live
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


def test_a_batch_of_a_subscription_that_was_made_anew_is_told_and_passed_over(
    query: Query, at_broker: Desk, name: str, tmp_path: Path
):
    before = at_broker.make(name, condition(name)).epoch
    at_broker.publish(numbered(name, 1, 2))
    query.run()
    for file in (tmp_path / "checkpoint" / "commits").iterdir():  # as if the batch had not ended
        file.unlink()
    shutil.rmtree(tmp_path / "out")
    at_broker.drop(name)
    epoch = at_broker.make(name, condition(name)).epoch
    told = query.fails()
    assert f"is of epoch {before}, and it is of epoch {epoch}" in told
    assert "set failOnDataLoss to false" in told
    at_broker.publish(numbered(name, 3))
    done = query.run(failOnDataLoss=False)
    assert query.rows == [(1, 3)]
    assert progress(done)[0].lost == 1, "nobody knows how many it had"


def test_a_gap_that_is_longer_than_a_batch_is_counted_once(
    query: Query, at_broker: Desk, name: str
):
    at_broker.make(name, condition(name))
    at_broker.publish(numbered(name, 0))
    query.run()
    at_broker.publish(numbered(name, *range(1, 60)))
    at_broker.ack(name, 51)
    done = query.run(failOnDataLoss=False, maxOffsetsPerTrigger=5)
    told = [json.loads(each["sources"][0]["latestOffset"]) for each in done.recentProgress]
    assert [each["lost"] for each in told] == [50, 50]
    assert [each["numInputRows"] for each in done.recentProgress] == [5, 4]
    assert progress(done)[0].missing == 0, "the last batch has no gap"
    assert [n for _, n in query.rows] == [0, *range(51, 60)]


def test_what_is_damaged_within_a_batch_is_told_and_what_is_behind_it_is_read(
    spark: SparkSession, name: str, tmp_path: Path
):
    disk = tmp_path / "disk"
    with broker_with_disk(disk) as url, desk(url) as at_broker:
        at_broker.make(name, condition(name))
        at_broker.publish(numbered(name, 1, 2))
        long = {f"text{number}": "x" * 60_000 for number in range(18)}  # one fills an answer
        at_broker.publish(numbered(name, 3, mark="damaged here", **long) + numbered(name, 4, 5))
        query = Query(spark, url, name, tmp_path)
        (folder,) = (each.parent for each in disk.rglob("*.log"))
        flip(folder, b"damaged here")
        told = query.fails()
        assert "1 notifications of" in told
        assert "between the positions 1 and 5" in told
        assert "are damaged" in told
        query = Query(spark, url, name, tmp_path / "anew")
        done = query.run(failOnDataLoss=False)
        assert [n for _, n in query.rows] == [1, 2, 4, 5]
        (seen,) = progress(done)
        assert (seen.rows, seen.missing, seen.lost) == (4, 1, 0)


def test_a_task_goes_on_after_each_break_of_its_connection(name: str, tmp_path: Path):
    def rows(planned: Range, address: str) -> list[int]:
        said = {"address": address, "subscription": name}
        columns = Columns(StructType([StructField("n", LongType())]), Mode.PERMISSIVE)
        batches = read_range(planned, stream_options(said), columns)
        return [row["n"] for batch in batches for row in batch.to_pylist()]

    async def work() -> None:
        durability = Durability(str(tmp_path / "disk"))
        async with ready(overlay(line(1), Algorithm.TNR, durability=durability)) as live:
            (broker,) = live.values()
            async with cutting_proxy(broker) as proxy, client_of(broker) as client:
                wanted = parse_filter(condition(name), "sql")
                info = await client.open_durable(name, wanted, None)
                await client.publish_many(numbered(name, *range(20_000)))
                proxy.arm(*(Cut(size) for size in (5_000, *range(60_000, 600_000, 60_000))))
                planned = Range(Offset(name, info.epoch, 0), 20_000)
                found = await asyncio.to_thread(rows, planned, proxy.url)
                assert found == list(range(20_000))
                assert proxy.cuts_done > 5

    run_live(work())


def test_what_may_live_at_a_broker_that_is_away_is_not_gone(name: str, tmp_path: Path):
    durability = Durability(str(tmp_path / "disk"))
    nobody = "127.0.0.1:1"
    with in_a_thread(overlay(line(2), Algorithm.TNR, durability=durability)) as urls:
        here, there = urls["a,0"], urls["b,0"].removeprefix("octopis://")
        options = stream_options({"address": here, "subscription": name})

        def ask(address: str) -> None:
            home = Home(address, "", patience_s=0.2)
            home.ask(lambda connection: reopened(connection, options))

        with pytest.raises(ConnectionFailed, match=r"can be reached at .*:1: .*no durable subscri"):
            ask(f"{here},{nobody}")
        with pytest.raises(Gone):
            ask(f"{here},{there}")
        with desk(here, secret="theirs") as others:  # noqa: S106 - of this test
            others.make(name, condition(name))
        with pytest.raises(InvalidSubscription, match="is another's"):
            ask(f"{here},{there}")
