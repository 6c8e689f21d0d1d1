"""Disks that are full, that fail to sync, and that have lost bits, under live brokers."""

import asyncio
import errno
import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from octopis.benchmarks.processes import free_ports
from octopis.broker.settings import Durability, Limits
from octopis.client.address import Address
from octopis.client.client import Client
from octopis.client.streams import Gap
from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm
from octopis.errors import StoreFailed, StoreFull
from octopis.overlay.deployment import running
from octopis.store.files import RealFiles
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until

A, B = line(2).brokers


def on_disk(folder: Path, brokers: int = 1, **options: Any) -> Any:
    return overlay(line(brokers), Algorithm.TNR, durability=Durability(str(folder), **options))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 5 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    options = ("-t", "tmpfs", "-o", "size=5m", "tmpfs", str(folder))
    try:
        subprocess.run(("mount", *options), check=True, capture_output=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError) as failure:
        pytest.skip(f"no file system can be mounted here: {failure}")
    yield folder
    subprocess.run(("umount", "-l", str(folder)), check=True)  # noqa: S607


def numbered(start: int, stop: int, size: int = 1_000) -> list[tuple[dict[str, int], bytes]]:
    return [({"n": n}, f"<{n}>".encode().ljust(size)) for n in range(start, stop)]


def test_publishers_are_told_of_a_full_disk_and_go_on_once_subscribers_have_made_room(
    small_disk: Path,
):
    async def work() -> None:
        # Segments of 1 MiB, and a quota that the disk does not have.
        async with ready(on_disk(small_disk, quota_bytes=16 * 2**20, wait_s=0.5)) as live:
            async with client_of(live[A]) as writer, client_of(live[A]) as reader:
                stream = reader.subscribe("TRUE", durable="all", acks="manual")
                await stream.open()
                accepted = await _publish_until_refused(writer)
                assert accepted > 1_000
                taken: list[int] = []
                async for each in stream:
                    taken.append(each.attributes["n"])  # type: ignore[arg-type]
                    if len(taken) == accepted:
                        break
                assert taken == list(range(accepted))
                await asyncio.wait_for(stream.ack(), 20)
                await until(lambda: not live[A].keeping.channels.is_blocked)  # type: ignore[union-attr]
                await writer.publish({"n": -1})
                async for each in stream:
                    if each.attributes["n"] == -1:
                        break
                await stream.close()

    run_live(work())


def test_a_sync_that_fails_refuses_publications_and_a_restart_has_all_that_was_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    is_broken = False
    sync = RealFiles.fdatasync

    def fails(self: RealFiles, file: int) -> None:
        if is_broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(self, file)

    monkeypatch.setattr(RealFiles, "fdatasync", fails)

    async def work() -> None:
        nonlocal is_broken
        async with ready(on_disk(tmp_path)) as live:
            async with client_of(live[A]) as client:
                async with client.subscribe("TRUE", durable="all", acks="manual"):
                    await client.publish_many(numbered(0, 100))
                is_broken = True
                for _ in range(2):
                    with pytest.raises(StoreFailed, match="start the broker again"):
                        await client.publish({"n": 100})
                found = await client.read("all", 0)
                assert [each.attributes["n"] for each in found.notifications] == list(range(100))
                assert (await client.status())["store"]["state"] == "failed"
        is_broken = False
        async with ready(on_disk(tmp_path)) as live, client_of(live[A]) as client:
            await client.publish({"n": 101})
            found = await client.read("all", 0)
            numbers = [each.attributes["n"] for each in found.notifications]
            # Whether what was refused is there nobody was told.
            assert [n for n in numbers if n != 100] == [*range(100), 101]

    run_live(work())


def flip_a_bit(folder: Path, text: bytes) -> None:
    """Change a bit of a record that is known by a text in it."""
    for path in folder.glob("*.log"):
        data = bytearray(path.read_bytes())
        place = data.find(text)
        if place >= 0:
            data[place] ^= 1
            path.write_bytes(bytes(data))
            return
    raise AssertionError(f"{text!r} is nowhere in {folder}")


def test_what_is_damaged_is_reported_and_all_else_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR)
    ports = free_ports(2)
    both = overlay(
        line(2),
        Algorithm.TNR,
        durability=Durability(str(tmp_path)),
        addresses={broker: Address(port=port) for broker, port in zip((A, B), ports, strict=True)},
        limits=Limits(redial_s_max=0.1, drain_s=1.0, sync_s=0.5),
    )
    gaps: list[Gap] = []

    async def fill() -> None:
        async with ready(both) as live, client_of(live[A]) as writer, client_of(live[B]) as reader:
            await writer.open_durable("here", parse_filter("TRUE"))
            await reader.open_durable("there", parse_filter("TRUE"))
            await tables_hold(live, 2)
            await writer.publish_many(numbered(0, 50, 20))
            await until(lambda: live[B].keeping.channels.durables.get("there").end == 50)  # type: ignore[union-attr]
        async with running(both, [A]) as live, client_of(live[A], retry_s=5) as writer:
            await writer.publish_many(numbered(50, 150, 20))  # kept for the other, who is away

    async def serve() -> None:
        async with ready(both) as live, client_of(live[A]) as writer, client_of(live[B]) as reader:
            assert (await writer.status())["store"]["damages"] == 1
            assert (await reader.status())["store"]["damages"] == 1
            await writer.publish({"n": 150})
            here = await _numbers(writer, "here", gaps)
            assert here == [*range(70), *range(71, 151)]
            assert [gap.dropped for gap in gaps] == [1]
            there = await _numbers(reader, "there", gaps)
            assert there == [*range(20), *range(21, 70), *range(71, 151)]
            assert [gap.dropped for gap in gaps] == [1, 1]

    run_live(fill())
    flip_a_bit(tmp_path / "a,0", b"<70>")
    flip_a_bit(tmp_path / "b,0", b"<20>")
    run_live(serve())
    said = [record.getMessage() for record in caplog.records if "has lost records" in record.msg]
    assert len(said) == 2


def test_a_damaged_record_does_not_end_a_broker_that_makes_room_around_it(tmp_path: Path):
    async def work() -> None:
        # Segments of 64 KiB, in each of which three records are needed for long.
        async with (
            ready(on_disk(tmp_path, quota_bytes=2**20)) as live,
            client_of(live[A]) as client,
        ):
            opened = [
                await client.open_durable("all", parse_filter("TRUE")),
                await client.open_durable("few", parse_filter("k = 0")),
            ]
            store = live[A].keeping.store  # type: ignore[union-attr]
            for n in range(0, 700, 50):
                rows = [({"k": i % 20}, f"<{i}>".encode().ljust(1_000)) for i in range(n, n + 50)]
                await client.publish_many(rows)
                if n + 50 == 700:
                    flip_a_bit(tmp_path / "a,0", b"<20>")
                await client.ack("all", opened[0].epoch, n + 50)
            await until(lambda: store.used_bytes <= 2**19)
            assert not live[A].broken.done()
            found = await client.read("few", 0)
            numbers = [bytes(each.payload).strip() for each in found.notifications]
            assert numbers == [b"<%d>" % i for i in range(0, 700, 20) if i != 20]
            await client.ack("few", opened[1].epoch, found.end)
            await until(lambda: store.records == 0)

    run_live(work())


async def _publish_until_refused(client: Client) -> int:
    """Publish until there is no room, and return how many were accepted."""
    for accepted in range(0, 16_000, 100):
        try:
            await client.publish_many(numbered(accepted, accepted + 100))
        except StoreFull as failure:
            assert "its disk is full" in str(failure)  # noqa: PT017 - where it comes is the point
            return accepted
    raise AssertionError("the disk was never full")


async def _numbers(client: Any, name: str, gaps: list[Gap]) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(20), client.subscribe(durable=name, on_gap=gaps.append) as stream:
        async for each in stream:
            found.append(each.attributes["n"])
            if found[-1] == 150:
                break
    return found
