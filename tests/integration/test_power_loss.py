"""Power loss for real: a broker on a file system of its own, of which only what was synced is left.

The file system is in an image. What nobody has synced is in the kernel's memory alone: a copy of
the image is what a machine would find on its disk after the power went. Needs root; elsewhere the
tests are skipped.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

import octopis
from octopis.benchmarks.processes import RoleProcess, free_ports, started_role
from support.live import run_live

CUTS = 4
IMAGE_BYTES = 96 * 2**20
QUOTA_BYTES = 32 * 2**20


def command(*words: object) -> str:
    done = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True)
    return done.stdout.strip()


@contextmanager
def mounted(image: Path, folder: Path) -> Iterator[None]:
    """Mount an image; its journal is replayed, as after a loss of power."""
    device = command("losetup", "--find", "--show", image)
    try:
        command("mount", device, folder)
        try:
            yield
        finally:
            command("umount", folder)
    finally:
        command("losetup", "--detach", device)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """An image of an empty file system, and a folder `disk` beside it to mount it on."""
    image = tmp_path / "image"
    (tmp_path / "disk").mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    try:
        command("mkfs.ext4", "-q", "-F", image)
        with mounted(image, tmp_path / "disk"):
            pass
    except (OSError, subprocess.CalledProcessError) as failure:
        pytest.skip(f"no image of a file system can be made and mounted here: {failure}")
    return image


@contextmanager
def broker_on(folder: Path, **options: Any) -> Iterator[tuple[str, RoleProcess]]:
    (port,) = free_ports(1)
    durability = {"folder": str(folder / "brokers"), "quota_bytes": QUOTA_BYTES, **options}
    about = {"overlay": "line-1", "algorithm": "tnr", "ports": [port], "brokers": [0]}
    with started_role("brokers", about | {"durability": durability}) as process:
        process.hear()
        yield f"octopis://127.0.0.1:{port}", process


def cut(image: Path, process: RoleProcess) -> Path:
    """Cut the power: return what is on disk at this moment."""
    os.kill(process.pid, signal.SIGSTOP)
    command("sleep", "0.1")  # what the kernel has begun to write for it, it ends
    after = image.with_suffix(".after")
    shutil.copyfile(image, after)
    process.kill()
    return after


async def life(address: str, before: list[int], cut_now: Any, seed: int) -> list[int]:
    """Read all that was accepted before, and publish until the power goes; return what was."""
    accepted: list[int] = []
    async with octopis.connect(address, reconnect_s=0.0) as client:
        async with client.subscribe("TRUE", durable="all", acks="manual"):
            pass
        there = await everything(client)
        assert there == sorted(set(there)), "twice, or out of order"
        assert set(before) <= set(there), f"lost {sorted(set(before) - set(there))[:5]}"
        numbers = count(max(there, default=-1) + 1)

        async def publish() -> None:
            for number in numbers:
                await client.publish({"n": number}, bytes(200))
                accepted.append(number)

        tasks = [asyncio.create_task(publish()) for _ in range(16)]
        await asyncio.sleep(0.2 + Random(seed).random())  # noqa: S311 - when is no secret
        cut_now()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return there + accepted


async def everything(client: octopis.Client) -> list[int]:
    found: list[int] = []
    after = 0
    while (batch := await client.read("all", after)).notifications:
        assert not batch.missing
        found += [int(each.attributes["n"]) for each in batch.notifications]
        after = batch.notifications[-1].position
    return found


def live_once(image: Path, before: list[int], seed: int, **options: Any) -> list[int]:
    """Let a broker live until its power goes, and leave what is on disk then in the image."""
    folder = image.parent / "disk"
    found: list[int] = []
    after: list[Path] = []
    with mounted(image, folder), broker_on(folder, **options) as (address, process):

        async def work() -> None:
            found.extend(
                await life(address, before, lambda: after.append(cut(image, process)), seed)
            )

        run_live(work())
    after[0].replace(image)
    return found


def lives(image: Path, cuts: int, **options: Any) -> None:
    """Let a broker lose its power so often; each life has all that was accepted before."""
    accepted: list[int] = []
    for number in range(cuts + 1):
        accepted = live_once(image, accepted, number, **options)


def test_what_was_accepted_is_there_after_each_loss_of_power(disk: Path):
    lives(disk, CUTS)


def test_what_was_not_synced_is_lost_so_that_the_cut_is_one(disk: Path):
    with pytest.raises(AssertionError, match="lost"):
        lives(disk, 2, sync="interval", interval_ms=600_000)
