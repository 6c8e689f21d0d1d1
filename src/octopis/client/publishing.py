"""A client's publications: numbered, encoded once, and so many under way at a time."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import count, takewhile
from typing import Any

from msgspec import Struct, field

from octopis.client.connection import ClientConnection
from octopis.client.unanswered import Unanswered
from octopis.core.model import BrokerId, Notification, Value
from octopis.core.wire.client import AnswerItem
from octopis.core.wire.greeting import Welcome
from octopis.core.wire.published import PUBLISH_MAX, encode_published
from octopis.errors import ConnectionLost, InvalidNotification, NotPermitted, OctopisError

CHUNK_BYTES = 32 * 1024
"""So many bytes of publications share a frame, and an answer."""

_OF_ONE = InvalidNotification, NotPermitted
"""Refusals for which one notification of a request is at fault."""

_OVERHEAD = 16
_WARN_S = 1.0
_log = logging.getLogger(__name__)
Publication = (
    Mapping[str, Value]
    | tuple[Mapping[str, Value], bytes]
    | tuple[Mapping[str, Value], bytes, int]
    | Notification
)
"""Attributes; or with a payload; or with a payload and when it was meant to be published.

A Notification is taken as it is: whoever made it has checked it.
"""


class _Chunk(Struct):
    """Publications that share a request: some of `publish_many`, or single ones of one turn."""

    parts: list[bytes]
    size: int
    sent: "asyncio.Future[asyncio.Future[AnswerItem]] | None" = None
    """Is what the answer will be, for whoever waits until it is sent."""

    singles: "list[asyncio.Future[None]]" = field(default_factory=list)
    """Who waits for each of the parts, where each has its own."""

    answer: "asyncio.Future[AnswerItem] | None" = None
    is_part: bool = False
    """Whether it is a half of what was refused: the other half waits for its answer."""


class Publishing:
    """Publishes in the name of one client, over whatever connection there is.

    All goes in the order of the publications' numbers: by these a broker knows what comes again.
    What is published one by one in a turn of the event loop, or while there is no room, shares
    requests: so many tasks that publish cost a broker hardly more than one that has many. Brokers
    refuse a request whole; where it is shared, its halves are sent again, and in the end the one
    that is at fault is refused alone. What was on its way behind it is ahead of them then.
    """

    def __init__(
        self,
        publisher: str,
        open_connection: Callable[[], Awaitable[ClientConnection]],
        open_now: Callable[[], ClientConnection | None],
        unanswered: Unanswered,
    ) -> None:
        self.limits = Welcome(BrokerId("", 0), 2**24, 2**20)  # until a broker says otherwise
        self.publisher = publisher
        """What publications say who has published them; brokers look whether it is so."""

        self._open_connection = open_connection
        self._open_now = open_now
        self._unanswered = unanswered
        self._sequence = count(1)
        self._under_way = 0
        self._warned_at = -_WARN_S
        self.unsent = 0
        """How many copies the host broker could not send, as links were down."""

        self._queue: deque[_Chunk] = deque()
        self._open: _Chunk | None = None
        """The last of the queue, where single publications may join it."""

        self._tried: _Chunk | None = None
        """The half under way of what was refused: nothing overtakes it."""

        self._is_scheduled = False
        self._waiting: asyncio.Task[None] | None = None

    async def publish(
        self,
        attributes: Mapping[str, Value] | Notification,
        payload: bytes,
        intended_ns: int | None,
    ) -> None:
        """Publish one, and wait until it is accepted."""
        if isinstance(attributes, Notification):
            encoded = self._numbered(attributes, intended_ns)
        else:
            encoded = self._encode(attributes, payload, intended_ns)
        loop = asyncio.get_running_loop()
        chunk = self._open
        if (
            chunk is None
            or chunk.size + len(encoded) > CHUNK_BYTES
            or len(chunk.parts) >= PUBLISH_MAX
        ):
            chunk = self._open = _Chunk([], _OVERHEAD)
            self._queue.append(chunk)
        accepted: asyncio.Future[None] = loop.create_future()
        chunk.parts.append(encoded)
        chunk.singles.append(accepted)
        chunk.size += len(encoded)
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._send)
        try:
            await accepted
        except asyncio.CancelledError:
            if chunk.answer is not None and all(each.done() for each in chunk.singles):
                chunk.answer.cancel()  # nobody waits for it any more
            raise

    async def publish_many(self, publications: Iterable[Publication]) -> int:
        """Publish many, wait until all are accepted, and return how many."""
        check_several(publications)
        published = 0
        under_way: deque[asyncio.Future[Any]] = deque()
        parts: list[bytes] = []
        size = 0
        try:
            for publication in publications:
                parts.append(self.encoded(publication))
                published += 1
                size += len(parts[-1])
                if size >= CHUNK_BYTES or len(parts) >= PUBLISH_MAX:
                    under_way.append(await self._sent(parts, size))
                    parts, size = [], 0
                    while under_way and under_way[0].done() and not under_way[0].exception():
                        under_way.popleft()
            if parts:
                under_way.append(await self._sent(parts, size))
        finally:
            await _answered(under_way)
        return published

    def _note(self, answer: AnswerItem) -> None:
        """Say, now and then, that the broker could not send everything where it was for."""
        self.unsent += answer.unsent
        if not answer.unsent and not answer.unheard:
            return
        now = time.monotonic()
        if now >= self._warned_at + _WARN_S:
            self._warned_at = now
            _log.warning(
                "%s: %d copies of publications could not be sent so far, as links are down; the "
                "broker has not heard of %d neighbours since it has started",
                self.publisher,
                self.unsent,
                answer.unheard,
            )

    def wake(self) -> None:
        """Send what waits, if that is possible now: the connection has changed."""
        self._send()

    def encoded(self, publication: Publication) -> bytes:
        """Return a publication with its number as it goes over the wire."""
        if isinstance(publication, Notification):
            return self._numbered(publication, None)
        if not isinstance(publication, tuple):
            return self._encode(publication, b"", None)
        if len(publication) not in (2, 3):
            raise InvalidNotification(
                "a publication is attributes, (attributes, payload) or (attributes, payload, "
                f"intended_ns), not a tuple of {len(publication)}"
            )
        attributes, payload, *intended_ns = publication
        return self._encode(attributes, payload, intended_ns[0] if intended_ns else None)

    def _encode(
        self, attributes: Mapping[str, Value], payload: bytes, intended_ns: int | None
    ) -> bytes:
        return self._numbered(Notification.checked(attributes, payload), intended_ns)

    def _numbered(self, checked: Notification, intended_ns: int | None) -> bytes:
        when = time.time_ns() if intended_ns is None else intended_ns
        encoded = encode_published(
            checked.attributes, checked.payload, self.publisher, next(self._sequence), when
        )
        bytes_max = self.limits.frame_max // 2
        if len(encoded) > bytes_max:
            raise InvalidNotification(
                f"a notification has at most {bytes_max:,} bytes here, not {len(encoded):,}"
            )
        return encoded

    async def _sent(self, parts: list[bytes], size: int) -> "asyncio.Future[AnswerItem]":
        """Send notifications when it is their turn; return what their answer will be."""
        sent: asyncio.Future[asyncio.Future[AnswerItem]]
        sent = asyncio.get_running_loop().create_future()
        self._queue.append(_Chunk(parts, size + _OVERHEAD, sent))
        self._open = None
        self._send()
        return await sent

    def _send(self) -> None:
        """Send what waits, as far as there is a connection with room for it."""
        self._is_scheduled = False
        while self._queue:
            connection, chunk = self._open_now(), self._queue[0]
            if connection is None:
                if self._waiting is None:
                    loop = asyncio.get_running_loop()
                    self._waiting = loop.create_task(self._await_connection())
                return
            is_full = self._under_way + chunk.size > self.limits.publish_window
            if self._tried is not None or (self._under_way and is_full):
                return  # the next answer makes room
            self._take_first()
            if _drop_abandoned(chunk):
                self._send_one(chunk, connection)

    async def _await_connection(self) -> None:
        """Send as soon as there is a connection; where there will be none, say so to all."""
        try:
            await self._open_connection()
        except OctopisError as failure:
            while self._queue:
                _fail(self._take_first(), failure)
        finally:
            self._waiting = None
        self._send()

    def _take_first(self) -> _Chunk:
        chunk = self._queue.popleft()
        if chunk is self._open:
            self._open = None
        return chunk

    def _send_one(self, chunk: _Chunk, connection: ClientConnection) -> None:
        answer = chunk.answer = self._unanswered.send(chunk.parts, connection)
        self._under_way += chunk.size
        self._tried = chunk if chunk.is_part else None
        answer.add_done_callback(partial(self._take_answer, chunk))
        if chunk.sent is not None:
            chunk.sent.set_result(answer)

    def _take_answer(self, chunk: _Chunk, answer: "asyncio.Future[AnswerItem]") -> None:
        self._under_way -= chunk.size
        if chunk is self._tried:
            self._tried = None
        failure = None if answer.cancelled() else answer.exception()
        if isinstance(failure, _OF_ONE) and len(chunk.singles) > 1:
            self._try_halves(chunk)
        elif failure is not None:
            _fail(chunk, failure)
        else:
            if not answer.cancelled():
                self._note(answer.result())
            for each in chunk.singles:
                if not each.done():
                    each.set_result(None)
        if self._queue:
            self._send()

    def _try_halves(self, chunk: _Chunk) -> None:
        """Send what was refused in two halves, behind those of what was refused before it."""
        before = () if chunk.is_part else takewhile(lambda each: each.is_part, self._queue)
        place = len(tuple(before))
        for half in reversed(_halves(chunk)):
            self._queue.insert(place, half)


def _drop_abandoned(chunk: _Chunk) -> bool:
    """Leave out what nobody waits for any more; False where nothing is left to be sent."""
    if chunk.sent is not None:
        return not chunk.sent.done()
    if any(each.done() for each in chunk.singles):
        left = [each.done() for each in chunk.singles]
        chunk.parts = [each for each, gone in zip(chunk.parts, left, strict=True) if not gone]
        chunk.singles = [each for each in chunk.singles if not each.done()]
    return bool(chunk.parts)


def _halves(chunk: _Chunk) -> list[_Chunk]:
    """Return two requests with half of the single publications each."""
    middle = len(chunk.parts) // 2
    return [
        _Chunk(parts, sum(map(len, parts)) + _OVERHEAD, singles=singles, is_part=True)
        for parts, singles in (
            (chunk.parts[:middle], chunk.singles[:middle]),
            (chunk.parts[middle:], chunk.singles[middle:]),
        )
    ]


def _fail(chunk: _Chunk, failure: BaseException) -> None:
    """Tell all who wait for a chunk; each of the single ones that its own one is concerned."""
    if chunk.sent is not None and not chunk.sent.done():
        chunk.sent.set_exception(failure)
    if isinstance(failure, ConnectionLost) and failure.publications:
        failure = ConnectionLost(failure.reason, 1)
    for each in chunk.singles:
        if not each.done():
            each.set_exception(failure)


def check_several(publications: object) -> None:
    """Raise InvalidNotification where this is a single publication, or none at all."""
    if isinstance(publications, Mapping | str | bytes) or not isinstance(publications, Iterable):
        raise InvalidNotification(
            "publish_many takes several publications; for a single one use publish"
        )


async def _answered(under_way: Iterable["asyncio.Future[Any]"]) -> None:
    """Wait for all answers, and raise one error for all that went wrong."""
    found = await asyncio.gather(*under_way, return_exceptions=True)
    errors = [each for each in found if isinstance(each, BaseException)]
    lost = [each for each in errors if isinstance(each, ConnectionLost)]
    if lost:
        raise ConnectionLost(lost[0].reason, sum(each.publications for each in lost))
    if errors:
        raise errors[0]
