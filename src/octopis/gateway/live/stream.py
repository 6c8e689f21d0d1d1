"""`GET /overlay/live`: pulses as server-sent events."""

import asyncio
from collections.abc import AsyncIterator

from octopis.gateway.context import Context
from octopis.gateway.live.poller import Poller

DOOR = "live"


async def pulses(context: Context, poller: Poller) -> AsyncIterator[bytes]:
    """Yield a pulse at once, and then each that comes: a slow page skips some, but no event."""
    with context.reader(DOOR) as reader, poller.looking():
        await poller.first()
        seen = 0
        while not reader.ending:
            text, seen = poller.pulse(seen), poller.events
            yield b"event: pulse\ndata: %b\n\n" % text
            beat = asyncio.ensure_future(poller.beat())
            ended = asyncio.ensure_future(reader.more())
            try:
                await asyncio.wait([beat, ended], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (beat, ended):
                    task.cancel()
