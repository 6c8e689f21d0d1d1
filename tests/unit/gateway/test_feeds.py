"""What a feed passes on to the readers that share it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from octopis.client.streams import Received
from octopis.core.filters import parse_filter
from octopis.gateway.readers.feeds import Feeds
from octopis.gateway.readers.reader import Reader
from octopis.gateway.settings import GatewayLimits


class Overlay:
    """Stands for a client: a subscription that brings one batch."""

    def __init__(self, count: int) -> None:
        self._found = [Received({"n": n}, b"", "p", n, 0, ()) for n in range(count)]

    def subscribe(self, *_: Any, **__: Any) -> "Overlay":
        return self

    async def open(self) -> None:
        """It is open."""

    async def close(self) -> None:
        """It is closed."""

    async def batches(self) -> AsyncIterator[list[Received]]:
        yield self._found
        await asyncio.Event().wait()


def test_reader_that_has_left_gets_nothing_when_one_that_held_all_up_goes_on():
    async def run() -> None:
        limits = GatewayLimits(reader_notifications=10, stall_s=5.0)
        slow, other = Reader(limits, "pause"), Reader(limits, "pause")
        feeds = Feeds(Overlay(11))  # type: ignore[arg-type]  # it is no client
        filter_ = parse_filter("a = 1")
        await asyncio.gather(*(feeds.join(filter_, (each, "s")) for each in (slow, other)))
        await slow.more(1.0)
        feeds.leave(filter_, (other, "s"))
        assert [item.count for _, item in slow.take()] == [11]
        await asyncio.sleep(0.01)  # the feed goes on
        assert other.take() == []
        feeds.leave(filter_, (slow, "s"))
        await asyncio.sleep(0)

    asyncio.run(run())
