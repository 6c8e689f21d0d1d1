"""Ways are explained in a process of its own: bounded, one at a time, and gone with the gateway."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from octopis.core.topology import SCOT, NamedTopology, format_topology, grow
from octopis.gateway.documents import RouteAnswers, RouteQuestion, Subscriber
from octopis.gateway.doors import ways
from octopis.gateway.doors.ways import Ways
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem
from octopis.gateway.settings import GatewayLimits
from octopis.overlay.settings import parse_overlay

QUICK = RouteQuestion("r001,0", subscribers=[Subscriber("S", "r002,0")])


def dear(scot: SCOT) -> RouteQuestion:
    """Return a question that takes long."""
    subscribers = [Subscriber(f"S{n}", each.short) for n, each in enumerate(scot.brokers[:200])]
    return RouteQuestion(scot.brokers[0].short, subscribers=subscribers)


@asynccontextmanager
async def explaining(scot: SCOT, answer_s: float = 20.0) -> AsyncIterator[Ways]:
    overlay = parse_overlay(format_topology(NamedTopology("grown", "", scot)), "here")
    found = Ways(OverlayView("grown", {}, overlay), GatewayLimits(answer_s=answer_s))
    try:
        yield found
    finally:
        await found.close()


def test_event_loop_goes_on_while_ways_are_explained():
    scot = grow(75, 5)

    async def run() -> None:
        turns = 0
        async with explaining(scot) as found:
            await found.explain(QUICK)  # the process is there
            task = asyncio.create_task(found.explain(dear(scot)))
            while not task.done():
                await asyncio.sleep(0.005)
                turns += 1
            answer = msgspec.json.decode(await task, type=RouteAnswers)
        assert [*answer.algorithms] == ["bid", "snr", "dnr", "tnr"]
        assert turns > 10

    asyncio.run(run())


def test_what_takes_too_long_is_ended_and_what_comes_next_is_answered():
    scot = grow(1_000, 5)

    async def run() -> None:
        async with explaining(scot, answer_s=3.0) as found:
            asked = [asyncio.create_task(found.explain(dear(scot))) for _ in range(9)]
            await asyncio.sleep(0)
            done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            assert [str(each.exception()) for each in done] == [
                "too many ask for ways at a time: try again soon"
            ]
            with pytest.raises(Problem, match="not explained within 3 s"):
                await asked[0]
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            other = RouteQuestion("a,0", subscribers=[Subscriber("S", "f,1")], topology="figure-3")
            answer = msgspec.json.decode(await found.explain(other), type=RouteAnswers)
            assert answer.algorithms["tnr"].lost == []

    asyncio.run(run())


def test_process_that_has_died_is_followed_by_another():
    async def run() -> None:
        async with explaining(grow(4, 2)) as found:
            await found.explain(QUICK)
            assert found._process is not None
            found._process.kill()
            with pytest.raises(Problem, match="has ended: try again") as raised:
                await found.explain(QUICK)
            assert raised.value.status == 503
            await found.explain(QUICK)

    asyncio.run(run())


def test_process_ends_when_nobody_can_ask_it_any_more():
    command = [sys.executable, "-P", "-m", ways.__name__]
    done = subprocess.run(command, input=b"", capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
