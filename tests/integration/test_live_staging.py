"""Batches that are staged and committed: published once, whoever commits again, whatever dies."""

from pathlib import Path
from typing import Any

import pytest

from octopis.broker.settings import Durability
from octopis.core.routing import Algorithm
from octopis.errors import InvalidNotification
from support.live import client_of, line, overlay, ready, run_live, tables_hold

A, B, C = line(3).brokers
KNOWN = "known"


def on_disk(folder: Path) -> Any:
    return overlay(line(3), Algorithm.TNR, durability=Durability(str(folder)))


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
                assert not staging._pieces

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
                (attempt,) = keeping.channels.staging._pieces
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
