"""Batches that are staged and committed: published once, whoever commits again, whatever dies."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.settings import Durability
from octopis.core.routing import Algorithm
from octopis.errors import InvalidNotification, StoreFull
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until

A, B, C = line(3).brokers
KNOWN = "known"


def on_disk(folder: Path, brokers: int = 3, **options: Any) -> Any:
    return overlay(line(brokers), Algorithm.TNR, durability=Durability(str(folder), **options))


def rows(first: int, count: int) -> list[dict[str, int]]:
    return [{"n": number} for number in range(first, first + count)]


async def all_of(client: Any, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count:
        batch = await client.read("all", len(found), wait_s=10)
        assert batch.notifications, f"only {len(found)} have come"
        found += [each.attributes["n"] for each in batch.notifications]
    return found


def test_what_is_staged_is_published_when_it_is_committed_and_only_once(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live:
            async with client_of(live[A], secret=KNOWN) as task, client_of(live[C]) as reader:
                async with reader.subscribe("n >= 0", durable="all"):
                    await tables_hold(live, 1)
                await task.stage("q", 0, 0, 0, rows(1_000, 5))  # this attempt fails
                assert await task.stage("q", 0, 0, 1, rows(0, 700)) == 700
                assert await task.stage("q", 0, 1, 0, rows(700, 300)) == 300
                await task.commit_staged("q", 0, [(0, 1, 700), (1, 0, 300)])
                assert await all_of(reader, 1_000) == list(range(1_000))
                await task.stage("q", 0, 0, 2, rows(0, 700))  # the batch is run again
                await task.commit_staged("q", 0, [(0, 2, 700)])
                await task.stage("q", 1, 0, 0, rows(1_000, 10))
                await task.commit_staged("q", 1, [(0, 0, 10)])
                assert await all_of(reader, 1_010) == list(range(1_010))
                assert (await reader.read("all", 1_010)).end == 1_010
                staging = live[A].keeping.channels.staging  # type: ignore[union-attr]
                assert not staging.commits
                assert not staging._rows
                assert not staging.bytes

    run_live(work())


def test_a_batch_whose_rows_are_elsewhere_is_refused_and_can_be_written_again(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live, client_of(live[A]) as task:
            await task.stage("q", 0, 0, 0, rows(0, 5))
            with pytest.raises(InvalidNotification, match="5 of 6 rows of part 0"):
                await task.commit_staged("q", 0, [(0, 0, 6)])
            with pytest.raises(InvalidNotification, match="0 of 1 rows of part 3"):
                await task.commit_staged("q", 0, [(3, 0, 1)])
            await task.drop_staged("q", 0, [(0, 0)])
            with pytest.raises(InvalidNotification, match="0 of 5 rows"):
                await task.commit_staged("q", 0, [(0, 0, 5)])
            await task.stage("q", 0, 0, 0, rows(0, 5))
            await task.commit_staged("q", 0, [(0, 0, 5)])

    run_live(work())


def test_a_broker_that_dies_in_the_middle_of_a_commit_goes_on_with_it(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live:
            async with client_of(live[A], secret=KNOWN) as task, client_of(live[C]) as reader:
                async with reader.subscribe("n >= 0", durable="all"):
                    await tables_hold(live, 1)
                await task.stage("q", 0, 0, 0, rows(0, 2_000))
                keeping = live[A].keeping
                assert keeping is not None
                # The decision, and then some rows, are on disk; nothing more happens in this life.
                committing = live[A].committing
                assert committing is not None
                committing.go_on = lambda: None  # type: ignore[method-assign]
                (attempt,) = keeping.channels.staging._rows
                commit = keeping.channels.staging.decide(attempt.source, 0, [(0, 0, 2_000)])
                assert commit is not None
                committing._publish(commit)
                assert 0 < commit.done < 2_000
        async with ready(on_disk(tmp_path)) as live:
            async with client_of(live[A], secret=KNOWN) as task, client_of(live[C]) as reader:
                await task.stage("q", 0, 0, 1, rows(5_000, 3))
                await task.commit_staged("q", 0, [(0, 1, 3)])  # the first decision stands
                assert await all_of(reader, 2_000) == list(range(2_000))
                assert (await reader.read("all", 2_000)).end == 2_000

    run_live(work())


SMALL = 4 * 2**20
"""A quota of which batches may stage 838,860 bytes."""


def long_rows(first: int, count: int) -> list[tuple[dict[str, int], bytes]]:
    return [({"n": number}, b"x" * 1_000) for number in range(first, first + count)]


def test_a_batch_that_is_longer_than_may_be_staged_is_refused_and_leaves_room_for_others(
    tmp_path: Path,
):
    async def work() -> None:
        async with (
            ready(on_disk(tmp_path, 1, quota_bytes=SMALL)) as live,
            client_of(live[A], secret=KNOWN) as task,
        ):
            for attempt in range(3):  # each of them is dropped for the next
                with pytest.raises(InvalidNotification, match="838,860 bytes, 20% of durability"):
                    await task.stage("q", 0, 0, attempt, long_rows(0, 1_000))
            staging = live[A].keeping.channels.staging  # type: ignore[union-attr]
            assert staging.bytes <= 838_860
            for _ in range(2):  # what is sent again takes no more room
                await task.stage("q", 0, 0, 3, long_rows(0, 500))
            await task.commit_staged("q", 0, [(0, 3, 500)])
            assert not staging.bytes

    run_live(work())


def test_who_staged_first_goes_on_where_another_waits_for_room(tmp_path: Path):
    async def work() -> None:
        async with (
            ready(on_disk(tmp_path, 1, quota_bytes=SMALL)) as live,
            client_of(live[A]) as first,
            client_of(live[A]) as second,
        ):
            await first.stage("p", 0, 0, 0, long_rows(0, 400))
            await second.stage("q", 0, 0, 0, long_rows(0, 200))
            with pytest.raises(StoreFull, match="what others have staged"):
                await second.stage("q", 0, 1, 0, long_rows(200, 400))
            await first.stage("p", 0, 1, 0, long_rows(400, 300))
            await first.commit_staged("p", 0, [(0, 0, 400), (1, 0, 300)])
            await second.stage("q", 0, 1, 1, long_rows(200, 400))
            await second.commit_staged("q", 0, [(0, 0, 200), (1, 1, 400)])

    run_live(work())


async def fill(publisher: Any) -> None:
    """Publish little by little, until the broker takes no more."""
    for number in range(SMALL):
        await publisher.publish_many(long_rows(number, 50))


def test_a_batch_is_published_where_publishers_wait_for_who_writes_it(tmp_path: Path):
    async def work() -> None:
        async with (
            ready(on_disk(tmp_path, 1, quota_bytes=SMALL, wait_s=0.3)) as live,
            client_of(live[A], secret=KNOWN) as query,
            client_of(live[A]) as publisher,
        ):
            async with query.subscribe("n >= 0", durable="in", acks="manual"):
                pass
            async with query.subscribe("out >= 0", durable="out", acks="manual"):
                pass
            with pytest.raises(StoreFull):
                await fill(publisher)
            kept = live[A].keeping
            assert kept is not None
            assert kept.channels.is_blocked
            rows = [({"out": number}, b"x" * 500) for number in range(500)]
            await query.stage("q", 0, 0, 0, rows)
            await asyncio.wait_for(query.commit_staged("q", 0, [(0, 0, 500)]), 20)
            assert (await query.read("out", 0)).end == 500
            with pytest.raises(StoreFull):
                await publisher.publish({"n": 0})

    run_live(work())


def test_what_is_staged_and_never_committed_is_dropped_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def work() -> None:
        async with (
            ready(on_disk(tmp_path, 1, staged_s=0.5)) as live,
            client_of(live[A], secret=KNOWN) as task,
        ):
            await task.stage("q", 3, 1, 0, rows(0, 7))
            staging = live[A].keeping.channels.staging  # type: ignore[union-attr]
            await until(lambda: not staging.bytes)
            with pytest.raises(InvalidNotification, match=r"0 of 7 rows.* durability\.staged_s"):
                await task.commit_staged("q", 3, [(1, 0, 7)])

    with caplog.at_level(logging.WARNING):
        run_live(work())
    assert "7 rows of part 1 of batch 3 were staged and not committed" in caplog.text


def test_what_is_staged_counts_again_after_a_restart(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path, 1)) as live, client_of(live[A], secret=KNOWN) as task:
            await task.stage("q", 0, 0, 0, rows(0, 7))
            before = live[A].keeping.channels.staging.bytes  # type: ignore[union-attr]
        async with ready(on_disk(tmp_path, 1)) as live, client_of(live[A], secret=KNOWN) as task:
            assert live[A].keeping.channels.staging.bytes == before  # type: ignore[union-attr]
            await task.commit_staged("q", 0, [(0, 0, 7)])
            assert not live[A].keeping.channels.staging.bytes  # type: ignore[union-attr]

    run_live(work())


def test_what_comes_after_a_batch_is_decided_takes_no_room(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path, 1)) as live:
            async with client_of(live[A], secret=KNOWN) as task:
                staging = live[A].keeping.channels.staging  # type: ignore[union-attr]
                await task.stage("q", 3, 0, 0, rows(0, 10))
                await task.commit_staged("q", 3, [(0, 0, 10)])
                for batch in (2, 3):  # an attempt that was slower than another of its part
                    assert await task.stage("q", batch, 0, 1, rows(0, 10)) == 10
                    await task.commit_staged("q", batch, [(0, 1, 10)])
                    await task.stage("q", batch, 1, 1, rows(0, 10))
                    assert staging.bytes == 0
                await task.stage("q", 4, 0, 0, rows(10, 10))
                assert staging.bytes > 0

    run_live(work())


def test_a_batch_that_is_decided_while_the_last_one_is_held_back_waits_for_it(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path, 1)) as live, client_of(live[A], secret=KNOWN) as client:
            async with client.subscribe("n >= 0", durable="all", acks="manual"):
                pass
            committing, free = live[A].committing, live[A].committing._free  # type: ignore[union-attr]
            assert committing is not None
            committing._free = lambda _: 0
            staging = live[A].keeping.channels.staging  # type: ignore[union-attr]
            await client.stage("q", 1, 0, 0, rows(0, 3_000))
            first = asyncio.create_task(client.commit_staged("q", 1, [(0, 0, 3_000)]))
            await until(lambda: staging.commits)
            await client.stage("q", 2, 0, 0, rows(3_000, 100))
            second = asyncio.create_task(client.commit_staged("q", 2, [(0, 0, 100)]))
            await until(lambda: len(staging.commits) == 2)
            committing._free = free
            committing.go_on()
            await asyncio.gather(first, second)
            for batch in (2, 1):  # they are run again
                await client.stage("q", batch, 0, 1, rows(500, 7))
                await client.commit_staged("q", batch, [(0, 1, 7)])
            assert await all_of(client, 3_100) == list(range(3_100))
            assert (await client.read("all", 3_100)).end == 3_100
            assert staging.bytes == 0

    run_live(work())


def test_only_so_many_requests_wait_for_a_batch_that_is_held_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("octopis.broker.disk.committing._ASKED_MAX", 2)

    async def work() -> None:
        async with ready(on_disk(tmp_path, 1)) as live, client_of(live[A], secret=KNOWN) as client:
            committing = live[A].committing
            assert committing is not None
            free, committing._free = committing._free, lambda _: 0
            await client.stage("q", 1, 0, 0, rows(0, 10))
            asking = [
                asyncio.create_task(client.commit_staged("q", 1, [(0, 0, 10)])) for _ in range(5)
            ]
            await until(lambda: sum(each.done() for each in asking) == 3)
            committing._free = free
            committing.go_on()
            said = await asyncio.gather(*asking, return_exceptions=True)
            refused = [str(each) for each in said if isinstance(each, StoreFull)]
            assert len(refused) == 3
            assert "2 requests wait for batch 1 already" in refused[0]
            assert said.count(None) == 2

    run_live(work())


def test_how_many_queries_are_remembered_is_bounded_and_one_off_batches_take_no_place(
    tmp_path: Path,
):
    async def commit(client: Any, query: str, batch: int, *, one_off: bool = False) -> None:
        await client.stage(query, batch, 0, 0, rows(0, 1))
        await client.commit_staged(query, batch, [(0, 0, 1)], one_off=one_off)

    async def work() -> None:
        for life in range(2):
            async with (
                ready(on_disk(tmp_path, 1, queries_max=2)) as live,
                client_of(live[A], secret=KNOWN) as client,
            ):
                await commit(client, "p", life)
                for number in range(5):
                    await commit(client, f"once {life} {number}", 0, one_off=True)
                await commit(client, "q", life)
                with pytest.raises(InvalidNotification, match=r"2 queries .*\.queries_max"):
                    await commit(client, "r", 0)
                for query in ("p", "q", f"once {life} 4"):  # their answers were lost
                    await client.commit_staged(query, 0, [(0, 9, 1)])
                with pytest.raises(InvalidNotification, match="0 of 1 rows"):
                    await client.commit_staged("once 0 0", 0, [(0, 0, 1)], one_off=True)
                store = live[A].keeping.store  # type: ignore[union-attr]
                assert len(store.items("committed")) == 2
                assert len(store.items("committed once")) == 2

    run_live(work())
