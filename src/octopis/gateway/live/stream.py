"""`GET /overlay/live`: pulses as server-sent events."""

import asyncio
from collections.abc import AsyncIterator

from octopis.gateway.bodies import Scope
from octopis.gateway.context import Context
from octopis.gateway.doors.events import event
from octopis.gateway.live.poller import Poller
from octopis.gateway.members.member import STATUS_S, Member
from octopis.gateway.problems import Problem
from octopis.gateway.readers.reader import Reader

DOOR = "live"


async def pulses(context: Context, poller: Poller, scope: Scope) -> AsyncIterator[bytes]:
    """Yield a pulse at once, and then each that comes: a slow page skips some, but no event."""
    with context.reader(DOOR) as reader:
        async with context.onlooker(scope, reader) as member:
            watching = asyncio.create_task(_watch(member, reader))
            try:
                async for each in _pulses(poller, reader):
                    yield each
            except Problem as problem:
                reader.end(problem.document.detail)
            finally:
                watching.cancel()
        yield event("end", {"reason": reader.ending})


async def _pulses(poller: Poller, reader: Reader) -> AsyncIterator[bytes]:
    with poller.looking():
        await poller.first()
        seen = 0
        while not reader.ending:
            poller.check()
            text, seen = poller.pulse(seen), poller.events
            yield b"event: pulse\ndata: %b\n\n" % text
            beat = asyncio.ensure_future(poller.beat())
            ended = asyncio.ensure_future(reader.more())
            try:
                await asyncio.wait([beat, ended], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (beat, ended):
                    task.cancel()


async def _watch(member: Member, reader: Reader) -> None:
    """End the stream of who may not see it any more."""
    while True:
        await asyncio.sleep(STATUS_S)
        try:
            await member.check_status()
        except Problem as problem:
            if problem.status in {401, 403}:  # else the overlay is away, which pulses show
                reader.end(problem.document.detail)
                return
