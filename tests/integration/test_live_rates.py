"""A client that publishes more in a second than it may is slowed down, and nobody else is."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from octopis.broker.settings import Durability
from octopis.client.client import Client
from octopis.core.delivery.lasting.records import Policy
from octopis.core.routing import Algorithm
from octopis.core.wire.durable import CommitStaged, DropStaged
from octopis.core.wire.moving import BeginDurable, TakeDurable
from octopis.errors import InvalidSubscription
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


NUMBERS = list(range(3_000))
LONG: dict[str, Callable[[Client], Any]] = {
    "commit": lambda c: c.ask_durable(CommitStaged, "q", 0, [(n, n, 0) for n in NUMBERS]),
    "unstage": lambda c: c.ask_durable(DropStaged, "q", 0, [(n, n) for n in NUMBERS]),
    "take": lambda c: c.ask_durable(TakeDurable, "x", NUMBERS, [BODY[:30]] * 3_000, 3_000),
    "begin": lambda c: c.ask_durable(
        BeginDurable, "x", 0, 0, 0, Policy.REFUSE, dict.fromkeys(NUMBERS, 1)
    ),
}


@pytest.mark.parametrize("what", LONG)
def test_long_lists_are_paid_for_like_what_is_published(tmp_path: Path, what: str):
    """Whether they come to anything or not: somebody has to look at each number."""

    async def work() -> None:
        made = overlay(line(1), Algorithm.TNR, limits=SLOW, durability=Durability(str(tmp_path)))
        async with ready(made) as live, client_of(live[HERE], secret=KNOWN) as client:
            session = live[HERE].clients[client.id]
            for _ in range(3):
                with suppress(InvalidSubscription):
                    await LONG[what](client)
            assert live[HERE].intake.rates.rest_s(session) > 0.3

    run_live(work())
