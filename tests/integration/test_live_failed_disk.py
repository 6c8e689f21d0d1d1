"""A disk that fails to sync under a live broker: all who wait for it are told, and it stays up."""

import asyncio
import errno
import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.settings import Durability
from octopis.client.client import Client
from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm
from octopis.core.wire.moving import LeaveDurable
from octopis.errors import StoreFailed
from octopis.store.files import RealFiles
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until

A, B = line(2).brokers
EVERYTHING = parse_filter("TRUE")


def on_disk(folder: Path, brokers: int = 1, **options: Any) -> Any:
    return overlay(line(brokers), Algorithm.TNR, durability=Durability(str(folder), **options))


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Let syncs fail from now on in the folder of a broker."""
    broken: set[str] = set()
    sync = RealFiles.fdatasync

    def fails(self: RealFiles, file: int) -> None:
        if any(f"/{each}/" in str(Path(f"/proc/self/fd/{file}").readlink()) for each in broken):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(self, file)

    monkeypatch.setattr(RealFiles, "fdatasync", fails)
    yield broken.add
    broken.clear()


def all_that_waits(client: Client, epoch: int) -> list[Coroutine[Any, Any, Any]]:
    """Return one of each request whose answer waits for the disk."""
    return [
        client.publish({"n": 1}),
        client.stage("p", 0, 0, 0, [{"n": 1}]),
        client.commit_staged("q", 0, [(0, 0, 1)]),
        client.drop_staged("r", 0, [(0, 0)]),
        client.open_durable("new", EVERYTHING),
        client.ack("all", epoch, 0),
        client.ask_durable(LeaveDurable, "moved", "b,0", 1, True),
        client.drop_durable("unwanted"),
    ]


async def told_of(requests: list[Coroutine[Any, Any, Any]]) -> None:
    """Make sure that each is refused, as the disk has failed."""
    told = await asyncio.wait_for(asyncio.gather(*requests, return_exceptions=True), 20)
    for each in told:
        assert isinstance(each, StoreFailed)
        assert "start the broker again" in str(each)


def test_all_who_wait_for_the_disk_are_told_that_it_has_failed(
    tmp_path: Path, breaks: Callable[[str], None]
):
    async def work() -> None:
        async with ready(on_disk(tmp_path, 2)) as live, client_of(live[A]) as client:
            epoch = (await client.open_durable("all", EVERYTHING)).epoch
            for name in ("moved", "unwanted"):
                await client.open_durable(name, EVERYTHING)
            await client.publish({"n": 0})
            await client.stage("q", 0, 0, 0, [{"n": 1}])
            breaks("a,0")
            for _ in range(2):  # those that wait when it fails, and those that come later
                await told_of(all_that_waits(client, epoch))
            found = await client.read("all", 0)
            assert [each.attributes for each in found.notifications] == [{"n": 0}]

    run_live(work())


def test_who_waits_for_a_batch_that_is_held_back_is_told_that_the_disk_has_failed(
    tmp_path: Path, breaks: Callable[[str], None]
):
    async def work() -> None:
        async with (
            ready(on_disk(tmp_path)) as live,
            client_of(live[A]) as client,
            client_of(live[A]) as other,
        ):
            committing = live[A].committing
            assert committing is not None
            committing._free = lambda _: 0
            await client.stage("q", 0, 0, 0, [{"n": 1}])
            commit = asyncio.create_task(client.commit_staged("q", 0, [(0, 0, 1)]))
            await until(lambda: committing._asked)
            assert not commit.done()
            breaks("a,0")
            await told_of([commit, other.publish({"n": 1})])  # type: ignore[list-item]

    run_live(work())


def test_a_broker_whose_disk_has_failed_keeps_its_links_and_acknowledges_nothing(
    tmp_path: Path, breaks: Callable[[str], None]
):
    async def work() -> None:
        async with (
            ready(on_disk(tmp_path, 2, expire_s=2.0)) as live,
            client_of(live[A]) as writer,
            client_of(live[B]) as reader,
        ):
            await reader.open_durable("there", EVERYTHING)
            await tables_hold(live, 1)
            await writer.publish({"n": 0})
            keeping, sender = live[B].keeping, live[A].keeping.channels.sender  # type: ignore[union-attr]
            assert keeping is not None
            await until(lambda: not sender.kept)
            link = live[B].links[A].connection
            async with reader.subscribe("n > 0") as stream:
                await tables_hold(live, 2)
                breaks("b,0")
                await writer.publish({"n": 1})
                await until(lambda: keeping.failure)
                await writer.publish({"n": 2})
                assert [(await anext(stream)).attributes["n"] for _ in range(2)] == [1, 2]
            assert [each.attributes for each in (await reader.read("there", 0)).notifications] == [
                {"n": 0}
            ]
            await asyncio.sleep(1.5)  # a few ticks, and what is sent again
            assert live[B].links[A].connection is link
            assert not live[B].broken.done()
            assert sender.kept == 2

    run_live(work())
