"""`GET /notifications`: what a filter matches, as server-sent events.

Without `durable` a reader gets what comes as long as it is there. With it, each event has a place
in the durable subscription as its id, and `Last-Event-ID` says up to where a reader has got
everything: that much is acknowledged, and the stream goes on behind it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import reduce
from operator import or_
from typing import Any

import msgspec

from octopis.client.client import Client
from octopis.client.durable import DurableNotifications, Start
from octopis.client.streams import Gap
from octopis.core.filters import Filter, parse_filter
from octopis.errors import OctopisError
from octopis.gateway.bodies import (
    Receive,
    Scope,
    Send,
    header,
    known_only,
    number_of,
    one,
    query_of,
)
from octopis.gateway.context import Context
from octopis.gateway.documents import NotificationOut
from octopis.gateway.doors import cloud_events
from octopis.gateway.problems import Problem, answered_within, problem_of
from octopis.gateway.readers.feeds import out
from octopis.gateway.readers.reader import Batch, GapNote, Reader

DOOR = "events"
KEEP_ALIVE_S = 15.0
_KNOWN = ("filter", "dialect", "durable", "start", "acks", "format")
_HEAD = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_encode = msgspec.json.Encoder().encode


async def subscribe(context: Context, scope: Scope, receive: Receive, send: Send) -> None:
    """Send what is asked for, until the reader goes."""
    query = query_of(scope)
    known_only(query, *_KNOWN)
    dialect = one(query, "dialect") or "sql"
    filters = [parse_filter(text, dialect) for text in query.get("filter", [])]
    filter_ = reduce(or_, filters) if filters else None
    style = one(query, "format") or "json"
    if style not in {"json", "cloudevents"}:
        raise Problem(400, f"format is json or cloudevents, not {style!r}")
    name = one(query, "durable")
    if filter_ is None and not name:
        raise Problem(400, "say what to subscribe to, as in ?filter=price > 50 (URL-encoded)")
    for word in () if name else ("start", "acks"):
        if one(query, word):
            raise Problem(400, f"{word} is for durable subscriptions: add durable=NAME")
    with context.reader(DOOR) as reader:
        stream = EventStream(context, reader, send, is_json=style == "json")
        gone = asyncio.create_task(_watch(receive, reader))
        try:
            if name:
                await _follow_durable(stream, scope, query, name, filter_)
            else:
                assert filter_ is not None
                await _follow(stream, scope, filter_)
        except Problem as problem:
            if not stream.has_begun:
                raise
            await stream.end(problem.document.detail)
        finally:
            gone.cancel()


async def _watch(receive: Receive, reader: Reader) -> None:
    """End a reader that has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
    reader.end("gone")


class EventStream:
    """One answer that does not end by itself."""

    def __init__(self, context: Context, reader: Reader, send: Send, *, is_json: bool) -> None:
        self.context, self.reader = context, reader
        self.has_begun = False
        self._send = send
        self._is_json = is_json

    async def begin(self) -> None:
        """Send the head, and a first comment, so that the reader knows that it is subscribed."""
        self.has_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": _HEAD})
        await self.write(b": subscribed\n\n")

    async def write(self, text: bytes) -> None:
        """Send a piece."""
        await self._send({"type": "http.response.body", "body": text, "more_body": True})

    async def end(self, reason: str) -> None:
        """End the answer; say why, unless it is the reader that has gone."""
        if reason != "gone":
            last = event("end", {"reason": reason}) if reason else b""
            await self._send({"type": "http.response.body", "body": last})

    def frames(self, batch: Batch, epoch: int = 0) -> bytes:
        """Return notifications as events; those of feeds are made once for all readers."""
        if not self._is_json:
            events = (_encode(cloud_events.write_event(each)) for each in batch.notifications)
            return _frames(batch, list(events), epoch)
        if not batch.sse_frames:
            batch.sse_frames = _frames(batch, batch.bodies, epoch)
        return batch.sse_frames

    async def write_batch(self, batch: Batch, epoch: int) -> None:
        """Send notifications of a durable subscription."""
        await self.write(self.frames(batch, epoch))
        self.context.counts.delivered[DOOR] += batch.count


def event(kind: str, content: Any) -> bytes:
    """Return an event of its own kind."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode(content))


def _frames(batch: Batch, bodies: list[bytes], epoch: int) -> bytes:
    parts: list[bytes] = []
    for each, body in zip(batch.notifications, bodies, strict=True):
        parts += (b"id: ", _id_of(each, epoch), b"\ndata: ", body, b"\n\n")
    return b"".join(parts)


def _id_of(each: NotificationOut, epoch: int) -> bytes:
    if each.position:
        return b"%d-%d" % (epoch, each.position)
    if each.publisher.isprintable():
        return f"{each.publisher}/{each.sequence}".encode()
    return b"%d" % each.sequence  # the name would end the line


async def _follow(stream: EventStream, scope: Scope, filter_: Filter) -> None:
    """Send what a filter matches from now on."""
    context, reader = stream.context, stream.reader
    async with context.member(scope, reader) as member:
        await member.connected()
        place = (reader, "")
        async with answered_within(context.limits.answer_s):
            await member.feeds.join(filter_, place)
        try:
            await stream.begin()
            if header(scope, b"last-event-id"):
                note = GapNote("this stream is not durable: what came meanwhile is missing here")
                await stream.write(event("gap", note))
            while not reader.ending:
                if not await reader.more(KEEP_ALIVE_S):
                    await stream.write(b": alive\n\n")
                    continue
                parts: list[bytes] = []
                count = 0
                for _, item in reader.take():
                    if isinstance(item, Batch):
                        parts.append(stream.frames(item))
                        count += item.count
                    else:
                        parts.append(event("gap", item))
                if parts:
                    await stream.write(parts[0] if len(parts) == 1 else b"".join(parts))
                    context.counts.delivered[DOOR] += count
            await stream.end(reader.ending)
        finally:
            member.feeds.leave(filter_, place)


async def _follow_durable(
    stream: EventStream,
    scope: Scope,
    query: dict[str, list[str]],
    name: str,
    filter_: Filter | None,
) -> None:
    """Send what a durable subscription has, from behind the last that was acknowledged."""
    acks = one(query, "acks") or "manual"
    if acks not in {"auto", "manual"}:
        raise Problem(400, f"acks is auto or manual, not {acks!r}")
    last = header(scope, b"last-event-id")
    context, reader = stream.context, stream.reader
    async with (
        context.member(scope, reader) as member,
        member.at_home(name, makes=filter_) as client,
    ):
        async with answered_within(context.limits.answer_s):
            start = await _start_of(client, name, last, one(query, "start"))
        async with durable_stream(context, client, name, filter_, start, reader) as durable:
            await stream.begin()
            while not reader.ending:
                batch = await _fetched(durable, reader)
                for _, item in reader.take():  # gaps come this way
                    if isinstance(item, GapNote):
                        await stream.write(event("gap", item))
                if batch is None:
                    if not reader.ending:
                        await stream.write(b": alive\n\n")
                    continue
                await stream.write_batch(batch, durable.epoch)
                durable.position = batch.notifications[-1].position
                if acks == "auto":
                    await durable.tell_acked(durable.position)
    await stream.end(reader.ending)


@contextlib.asynccontextmanager
async def durable_stream(  # noqa: PLR0913, PLR0917 - what makes one stream
    context: Context,
    client: Client,
    name: str,
    filter_: Filter | None,
    start: Start,
    reader: Reader,
    called: str = "",
) -> AsyncIterator[DurableNotifications]:
    """Open a stream of a durable subscription, as `called` by a reader that acknowledges itself."""
    filters = [] if filter_ is None else [filter_]

    def gap(found: Gap) -> None:
        reader.gap(called, GapNote(found.reason, found.dropped))

    durable = client.subscribe(*filters, durable=name, start=start, acks="manual", on_gap=gap)
    try:
        async with answered_within(context.limits.answer_s):
            await durable.open()
        yield durable
    except OctopisError as failure:
        if not reader.ending:
            raise problem_of(failure) from failure
    finally:
        await durable.close()


async def _fetched(durable: DurableNotifications, reader: Reader) -> Batch | None:
    """Return what comes next; None where nothing came for a while, or the reader ends."""
    fetching = asyncio.ensure_future(durable.fetch())
    ending = asyncio.ensure_future(reader.more(KEEP_ALIVE_S))
    try:
        await asyncio.wait([fetching, ending], return_when=asyncio.FIRST_COMPLETED)
        if not fetching.done():
            return None
        found = list(map(out, fetching.result()))
        return Batch(found, list(map(_encode, found)))
    finally:
        for task in (fetching, ending):
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def _start_of(client: Client, name: str, last: str, start: str) -> Start:
    """Return where to begin; acknowledge what the reader says that it has got."""
    if not last:
        number = number_of(start)
        return (start or None) if number is None else number  # type: ignore[return-value]
    epoch, _, place = last.partition("-")
    position = number_of(place)
    if number_of(epoch) is None or position is None:
        reason = f"Last-Event-ID {last!r} is no id of a durable subscription's event"
        raise Problem(400, reason)
    info = await client.open_durable(name)
    if info.epoch != int(epoch):
        raise Problem(410, f"the durable subscription {name!r} was made anew since")
    if position > info.end:
        raise Problem(400, f"{name!r} has positions up to {info.end:,}, not {position:,}")
    if position > info.acked:
        await client.ack(name, info.epoch, position)
    return None
