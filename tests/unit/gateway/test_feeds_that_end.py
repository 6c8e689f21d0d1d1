"""Feeds that end while readers wait: for what comes, or for the feed itself."""

import asyncio

import pytest

from octopis.client.streams import Notifications
from octopis.core.filters import parse_filter
from octopis.errors import ConnectionLost
from octopis.gateway.documents import NotificationOut
from octopis.gateway.readers.feeds import Feeds
from octopis.gateway.readers.reader import Reader, encode_batch
from octopis.gateway.settings import GatewayLimits

EVERYTHING = parse_filter("TRUE")


class Slow:
    """A client whose broker takes its time to accept subscriptions: until `accepts`."""

    def __init__(self) -> None:
        self.accepts = asyncio.Event()
        self.closed = 0

    def subscribe(self, filter_, on_gap):
        return Notifications(self, {1: ("s", filter_)}, on_gap)

    async def open_stream(self, _):
        await self.accepts.wait()

    async def close_stream(self, _):
        self.closed += 1

    def consumed(self):
        pass


def a_reader() -> Reader:
    return Reader(GatewayLimits(), "drop_oldest")


def test_who_waits_for_a_feed_that_ends_hears_of_it_and_may_join_anew():
    async def work() -> None:
        client = Slow()
        feeds = Feeds(client)
        joining = asyncio.create_task(feeds.join(EVERYTHING, (a_reader(), "")))
        await asyncio.sleep(0)
        feeds.end("the role is another")
        with pytest.raises(ConnectionLost, match="just changed"):
            await joining
        client.accepts.set()
        reader = a_reader()
        await feeds.join(EVERYTHING, (reader, ""))
        assert (client.closed, len(feeds), reader.ending) == (1, 1, "")
        feeds.leave(EVERYTHING, (reader, ""))
        await asyncio.sleep(0.01)
        assert (client.closed, len(feeds)) == (2, 0)

    asyncio.run(work())


def test_what_waits_for_readers_goes_with_their_feed():
    async def work() -> None:
        client = Slow()
        client.accepts.set()
        feeds, reader = Feeds(client), a_reader()
        await feeds.join(EVERYTHING, (reader, ""))
        reader.push("", encode_batch([NotificationOut({"a": 1}, "p", 1, 0)]))
        feeds.end("the role is another")
        assert (reader.take(), reader.ending) == ([], "the role is another")
        feeds.leave(EVERYTHING, (reader, ""))  # as readers do that have ended
        await asyncio.sleep(0.01)
        assert client.closed == 1

    asyncio.run(work())
