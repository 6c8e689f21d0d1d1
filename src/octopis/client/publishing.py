"""A client's publications: numbered, encoded once, and so many under way at a time."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import count
from typing import Any

from octopis.client.connection import ClientConnection
from octopis.client.unanswered import Unanswered
from octopis.core.model import BrokerId, Notification, Value
from octopis.core.wire.client import AnswerItem
from octopis.core.wire.greeting import Welcome
from octopis.core.wire.published import PUBLISH_MAX, encode_published
from octopis.errors import ConnectionLost, InvalidNotification

CHUNK_BYTES = 32 * 1024
"""So many bytes of publications share a frame, and an answer."""

_OVERHEAD = 16
_WARN_S = 1.0
_log = logging.getLogger(__name__)
Publication = (
    Mapping[str, Value] | tuple[Mapping[str, Value], bytes] | tuple[Mapping[str, Value], bytes, int]
)
"""Attributes; or with a payload; or with a payload and when it was meant to be published."""


class Publishing:
    """Publishes in the name of one client, over whatever connection there is."""

    def __init__(
        self,
        publisher: str,
        open_connection: Callable[[], Awaitable[ClientConnection]],
        unanswered: Unanswered,
    ) -> None:
        self.limits = Welcome(BrokerId("", 0), 2**24, 2**20)  # until a broker says otherwise
        self._publisher = publisher
        self._open_connection = open_connection
        self._unanswered = unanswered
        self._sequence = count(1)
        self._under_way = 0
        self._warned_at = -_WARN_S
        self.unsent = 0
        """How many copies the host broker could not send, as links were down."""

        self._room = asyncio.Event()
        self._turn = asyncio.Lock()

    async def publish(
        self, attributes: Mapping[str, Value], payload: bytes, intended_ns: int | None
    ) -> None:
        """Publish one, and wait until it is accepted."""
        await (await self._send([self._encode(attributes, payload, intended_ns)]))

    async def publish_many(self, publications: Iterable[Publication]) -> int:
        """Publish many, wait until all are accepted, and return how many."""
        check_several(publications)
        published = 0
        under_way: deque[asyncio.Future[Any]] = deque()
        chunk: list[bytes] = []
        size = 0
        try:
            for publication in publications:
                chunk.append(self.encoded(publication))
                published += 1
                size += len(chunk[-1])
                if size >= CHUNK_BYTES or len(chunk) >= PUBLISH_MAX:
                    under_way.append(await self._send(chunk))
                    chunk, size = [], 0
                    while under_way and under_way[0].done() and not under_way[0].exception():
                        under_way.popleft()
            if chunk:
                under_way.append(await self._send(chunk))
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
                self._publisher,
                self.unsent,
                answer.unheard,
            )

    def wake(self) -> None:
        """Let whoever waits for room look again: the connection has changed."""
        self._room.set()

    def encoded(self, publication: Publication) -> bytes:
        """Return a publication with its number as it goes over the wire."""
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
        checked = Notification.checked(attributes, payload)
        when = time.time_ns() if intended_ns is None else intended_ns
        encoded = encode_published(
            checked.attributes, payload, self._publisher, next(self._sequence), when
        )
        bytes_max = self.limits.frame_max // 2
        if len(encoded) > bytes_max:
            raise InvalidNotification(
                f"a notification has at most {bytes_max:,} bytes here, not {len(encoded):,}"
            )
        return encoded

    async def _send(self, chunk: list[bytes]) -> "asyncio.Future[Any]":
        """Send notifications as soon as there is a connection with room for them.

        They go in the order of their numbers: by these a broker knows what comes again.
        """
        size = sum(map(len, chunk)) + _OVERHEAD
        async with self._turn:
            while True:
                connection = await self._open_connection()
                if not self._under_way or self._under_way + size <= self.limits.publish_window:
                    break
                self._room.clear()
                await self._room.wait()
            answer = self._unanswered.send(chunk, connection)
        self._under_way += size

        def answered(answer: "asyncio.Future[Any]") -> None:
            self._under_way -= size
            self._room.set()
            if not answer.cancelled() and answer.exception() is None:
                self._note(answer.result())

        answer.add_done_callback(answered)
        return answer


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
