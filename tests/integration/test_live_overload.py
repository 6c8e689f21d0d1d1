"""Sustained overload, with real processes: nothing is lost, memory stays bounded, others go on."""

import asyncio
import os
import signal
import time
from pathlib import Path

import octopis
from octopis.overlay.status import ask_all
from support.live import run_live
from support.overlay_command import Shell, Up, wait_until

SHAPED = """
[topology]
name = "pair"
[acyclic_factor]
edges = [["a", "b"]]
[connectivity_factor]
clusters = 1
[[links.shape]]
source = "a,0"
target = "b,0"
bandwidth_bytes_per_s = 600000.0
"""
BYTES = 200
"""About what one notification takes on the link."""

DRAINED_PER_S = 600_000 // BYTES
OVERLOAD_S = 20
BATCH = 200
GROWTH_MB_MAX = 48

ONE_BROKER = """
[topology]
name = "one"
[acyclic_factor]
vertices = ["a"]
[connectivity_factor]
clusters = 1
[client_queues]
policy = "drop_oldest"
capacity = 5000
high_water = 5000
"""
ROUND = 20_000
CHUNK = 1_000
"""Published before the healthy subscriber reads on: it is never far enough behind to lose any."""


def memory_mb(pid: int) -> float:
    """Return the memory that a process holds now."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    raise AssertionError(f"process {pid} has no memory")


async def publish_for(url: str, seconds: float) -> int:
    """Try to publish ten times what the link drains; return how many were accepted."""
    padding = "x" * (BYTES - 60)
    accepted = 0
    end = time.monotonic() + seconds
    async with octopis.connect(url) as client:
        due = time.monotonic()
        while time.monotonic() < end:
            first = accepted
            await client.publish_many(
                {"n": number, "padding": padding} for number in range(first, first + BATCH)
            )
            accepted += BATCH
            due = max(due + BATCH / (10 * DRAINED_PER_S), time.monotonic())
            await asyncio.sleep(max(0, due - time.monotonic()))
    return accepted


async def watch(pids: list[int], held: dict[int, list[float]]) -> None:
    while True:
        for pid in pids:
            held[pid].append(memory_mb(pid))
        await asyncio.sleep(OVERLOAD_S / 60)


def test_publisher_at_ten_times_what_a_link_drains_loses_nothing_and_memory_stays_bounded(
    shell: Shell,
):
    with shell.up("--config", shell.config(SHAPED), "--processes", "2") as up:
        held: dict[int, list[float]] = {pid: [] for pid in shell.workers()}

        async def work() -> None:
            async with (
                octopis.connect(up.url("b,0")) as subscriber,
                subscriber.subscribe("n >= 0") as notifications,
            ):
                await settled(up)
                watching = asyncio.create_task(watch(list(held), held))
                publishing = asyncio.create_task(publish_for(up.url("a,0"), OVERLOAD_S))
                expected = 0
                while not publishing.done() or expected < publishing.result():
                    received = await asyncio.wait_for(anext(notifications), timeout=60)
                    assert received.attributes["n"] == expected
                    expected += 1
                watching.cancel()
                assert not notifications.gaps
                # The link was full all the time, and the publisher was held back by it.
                assert DRAINED_PER_S * OVERLOAD_S / 4 < expected < 5 * DRAINED_PER_S * OVERLOAD_S

        run_live(work(), limit_s=240)
        drops = [each["drops"] for each in up.statuses().values()]
        assert all(not any(each.values()) for each in drops)
    assert len(held) == 2
    for each in held.values():
        early, later = max(each[5:15]), max(each[15:])
        assert later < early + GROWTH_MB_MAX, each


async def settled(up: Up) -> None:
    """Wait until every broker knows the subscription."""
    while not all(each["subscriptions"] for each in (await ask_all(up.addresses)).values()):
        await asyncio.sleep(0.05)


def test_stalled_subscriber_slows_others_by_no_more_than_a_fifth(shell: Shell):
    with shell.up("--config", shell.config(ONE_BROKER)) as up:
        sink = (shell.folder / "sink").open("w")
        other = shell.start("sub", up.url("a,0"), "n >= 0", stdout=sink)
        seconds: dict[str, list[float]] = {"healthy": [], "stalled": []}

        async def rounds() -> None:
            async with (
                octopis.connect(up.url("a,0")) as publisher,
                octopis.connect(up.url("a,0")) as subscriber,
                subscriber.subscribe("n >= 0") as notifications,
            ):
                for number in range(8):
                    state = "stalled" if number % 2 else "healthy"
                    os.kill(other.pid, signal.SIGSTOP if number % 2 else signal.SIGCONT)
                    start = time.monotonic()
                    for first in range(0, ROUND, CHUNK):
                        chunk = range(first, first + CHUNK)
                        publishing = asyncio.create_task(
                            publisher.publish_many({"n": each} for each in chunk)
                        )
                        for expected in chunk:
                            assert (await anext(notifications)).attributes["n"] == expected
                        await publishing
                    seconds[state].append(time.monotonic() - start)
                assert not notifications.gaps

        wait_until(lambda: up.statuses()["a,0"]["subscriptions"] == 1)
        try:
            run_live(rounds(), limit_s=120)
            stalled = [each for each in up.statuses()["a,0"]["clients"].values() if each["dropped"]]
            assert stalled, "nobody was stalled long enough to lose anything"
        finally:
            os.kill(other.pid, signal.SIGCONT)
            sink.close()
        assert min(seconds["stalled"]) < 1.2 * min(seconds["healthy"]), seconds
