"""Clients of the durable trial end with whoever has started them, whatever their brokers do."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

import msgspec

from octopis.benchmarks.durable.clients import Publisher, Publishers
from support.live import line, overlay, ready, run_live, until


async def started(options: Publishers) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "octopis.benchmarks.durable.clients", "publish"),
        msgspec.json.encode(options).decode(),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
    )


def test_publishers_whose_broker_is_gone_end_when_nobody_gives_orders_any_more(tmp_path: Path):
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            (broker,) = live.values()
            address = f"octopis://{broker.address}"
            publisher = Publisher(name="p", at=broker.id.short, rate=100.0)
            options = Publishers({broker.id.short: address}, str(tmp_path), [publisher])
            process = await started(options)
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                assert await process.stdout.readline() == b"ready\n"
                process.stdin.write(b"go\n")
                await until(lambda: (tmp_path / "p.said").read_text(encoding="utf-8"))
                await broker.stop()
                await asyncio.sleep(0.5)  # so that what is published waits for it
                process.stdin.close()
                assert await asyncio.wait_for(process.wait(), 5) is not None
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    run_live(work())
