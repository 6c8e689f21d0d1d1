"""A client that publishes more in a second than it may is slowed down, and nobody else is."""

import asyncio
import time
from pathlib import Path

from msgspec.structs import replace

from octopis.broker.settings import Durability
from octopis.core.routing import Algorithm
from support.live import LIMITS, client_of, line, overlay, ready, run_live, tables_hold

(HERE,) = line(1).brokers
SLOW = replace(LIMITS, publish_bytes_per_s=100_000)
BODY = b"x" * 1_000
KNOWN = "known"


def test_a_fast_publisher_is_slowed_down_and_loses_nothing_while_others_go_on():
    async def work() -> None:
        async with (
            ready(overlay(line(1), limits=SLOW)) as live,
            client_of(live[HERE]) as fast,
            client_of(live[HERE]) as modest,
            client_of(live[HERE]) as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            await tables_hold(live, 1)
            begun = time.monotonic()
            flood = asyncio.create_task(fast.publish_many(({"n": n}, BODY) for n in range(300)))
            waits = []
            while not flood.done():
                before = time.monotonic()
                await modest.publish({"m": 1})
                waits.append(time.monotonic() - before)
                await asyncio.sleep(0.01)
            took = time.monotonic() - begun
            # A second's worth at once; the last request may go when the one before is paid for.
            assert 1.4 <= took <= 4.0
            assert sorted(waits)[len(waits) // 2] < 0.1
            found = [(await anext(stream)).attributes["n"] for _ in range(300)]
            assert found == list(range(300))

    run_live(work())


def test_requests_that_come_one_by_one_are_slowed_down_as_well():
    async def work() -> None:
        async with ready(overlay(line(1), limits=SLOW)) as live, client_of(live[HERE]) as fast:
            begun = time.monotonic()
            for n in range(250):
                await fast.publish({"n": n}, BODY)
            assert time.monotonic() - begun >= 1.4

    run_live(work())


def test_who_stages_batches_is_slowed_down_as_well(tmp_path: Path):
    async def work() -> None:
        durability = Durability(str(tmp_path))
        made = overlay(line(1), Algorithm.TNR, limits=SLOW, durability=durability)
        async with ready(made) as live, client_of(live[HERE], secret=KNOWN) as task:
            begun = time.monotonic()
            rows = [({"n": n}, BODY) for n in range(250)]
            await task.stage("q", 0, 0, 0, rows)
            await task.commit_staged("q", 0, [(0, 0, 250)])
            assert 1.0 <= time.monotonic() - begun <= 4.0
            assert live[HERE].committing is not None
            assert not live[HERE].committing._slowed._waiting

    run_live(work())
