"""Feeds: one subscription at the overlay for all readers of an identity that want the same.

A feed always takes what comes at once, so that a slow reader holds up nobody else who uses the same
connection; only where the policy is `pause` it waits for its slowest reader.
"""

import asyncio
from typing import TYPE_CHECKING

from octopis.client.client import Client
from octopis.client.streams import Gap, Notifications, Received
from octopis.core.filters import Filter
from octopis.errors import ConnectionLost, OctopisError
from octopis.gateway.documents import NotificationOut
from octopis.gateway.readers.reader import BATCH_MAX, GapNote, Reader, encode_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

Place = tuple[Reader, str]
"""A reader, and what it calls the subscription."""


def out(received: Received) -> NotificationOut:
    """Return a notification as it goes out."""
    return NotificationOut(
        received.attributes,
        received.publisher,
        received.sequence,
        received.intended_ns,
        received.payload,
        received.position,
    )


class Feed:
    """One subscription and the readers that share it."""

    def __init__(self, client: Client, filter_: Filter) -> None:
        self.places: dict[Place, None] = {}
        self.ended = False
        self._stream: Notifications = client.subscribe(filter_, on_gap=self._gap)
        self._reading: asyncio.Task[None] | None = None
        self.opened: asyncio.Task[None] = asyncio.create_task(self._open())

    def end(self, reason: str) -> None:
        """End all readers, with what waits for them."""
        self.ended = True
        for reader, _ in list(self.places):
            reader.end(reason)

    async def close(self) -> None:
        """Unsubscribe; readers get nothing more of it."""
        self.ended = True
        for task in (self.opened, self._reading):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._stream.close()

    async def _open(self) -> None:
        await self._stream.open()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for found in self._stream.batches():
                for start in range(0, len(found), BATCH_MAX):
                    await self._pass_on(found[start : start + BATCH_MAX])
        except OctopisError as failure:
            self.end(str(failure))
        else:
            self.end("the connection to the overlay has ended")

    async def _pass_on(self, found: "Sequence[Received]") -> None:
        batch = encode_batch(list(map(out, found)))
        for place in list(self.places):
            if place not in self.places:
                continue  # it has left while another made this one wait
            reader, name = place
            reader.push(name, batch)
            if reader.policy == "pause" and reader.is_over_bound:
                await reader.room()

    def _gap(self, gap: Gap) -> None:
        note = GapNote(gap.reason, gap.dropped)
        for reader, name in self.places:
            reader.gap(name, note)


class Feeds:
    """The feeds of one client, by the normal form of their filters."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._feeds: dict[str, Feed] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._feeds)

    async def join(self, filter_: Filter, place: Place) -> None:
        """Let a reader get what a filter matches; returns when the host broker has it.

        Raises why the filter was refused.
        """
        text = str(filter_)
        feed = self._feeds.get(text)
        if feed is not None and feed.ended:
            self._close(text)
            feed = None
        if feed is None:
            feed = self._feeds[text] = Feed(self._client, filter_)
        feed.places[place] = None
        try:
            await asyncio.shield(feed.opened)
        except BaseException:
            self.leave(filter_, place)
            if feed.opened.cancelled():  # not whoever waits for it
                raise ConnectionLost("what this role may see has just changed") from None
            raise

    def leave(self, filter_: Filter, place: Place) -> None:
        """Let a reader get nothing more; a feed that nobody reads ends."""
        text = str(filter_)
        feed = self._feeds.get(text)
        if feed is None:
            return
        feed.places.pop(place, None)
        if not feed.places:
            self._close(text)

    def end(self, reason: str) -> None:
        """End all, with what has come: it may not be shown any more. Others may begin."""
        for text, feed in list(self._feeds.items()):
            feed.end(reason)
            self._close(text)

    def _close(self, text: str) -> None:
        task = asyncio.create_task(self._feeds.pop(text).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
