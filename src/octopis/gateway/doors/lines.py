"""A stream of lines, one notification each: published in their order, a request at a time.

Brokers accept a request whole or not at all. The next one goes when the last one is accepted, so
all lines before a refused one are accepted and none behind it: whoever mends that one and goes on
there publishes nothing twice. Lines are read and checked while a request is under way.
"""

import asyncio
from collections import Counter

from octopis.client.client import Client
from octopis.client.publishing import CHUNK_BYTES
from octopis.core.model import Notification
from octopis.core.wire.published import PUBLISH_MAX
from octopis.gateway.bodies import Gone, Receive
from octopis.gateway.doors.acceptance import accepted
from octopis.gateway.doors.notations import read_notification
from octopis.gateway.doors.traced import traced
from octopis.gateway.problems import Problem
from octopis.gateway.settings import GatewayLimits

_OVERHEAD = 32
"""Bytes of a notification on the wire beside its attributes, payload, publisher and trace."""

_NUMBER = 4


def wire_bytes_max(line: bytes, attributes: int) -> int:
    """Return how long the attributes and the payload of a line are on the wire, at most.

    JSON is never shorter, except that a number as in `"a":1.5,` becomes one of nine bytes.
    """
    return len(line) + _NUMBER * attributes


class _Request:
    """Lines that a broker accepts or refuses together, as the client sends them in one frame."""

    def __init__(self, first: int) -> None:
        self.first = self.last = first
        self.notifications: list[Notification] = []
        self.size = 0

    @property
    def is_full(self) -> bool:
        return self.size >= CHUNK_BYTES or len(self.notifications) >= PUBLISH_MAX

    def add(self, line: int, notification: Notification, size: int) -> None:
        self.notifications.append(notification)
        self.last = line
        self.size += size


class LineStream:
    """What is right before a mistake is published, and nothing behind it."""

    def __init__(
        self, client: Client, limits: GatewayLimits, ended: Counter[str], traceparent: str
    ) -> None:
        self.accepted = 0
        self._client, self._limits, self._traceparent = client, limits, traceparent
        self._ended = ended
        self._under_way: tuple[_Request, asyncio.Task[None]] | None = None
        self._lines = 0
        self._rest = b""

    async def run(self, receive: Receive) -> None:
        """Read to the end. Raises Problem at the first mistake."""
        try:
            try:
                more = True
                while more:
                    async with asyncio.timeout(self._limits.idle_s):
                        message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    more = message.get("more_body", False)
                    await self._take(message.get("body", b""), is_last=not more)
            except TimeoutError:
                self._ended["idle_s"] += 1
                reason = f"the stream has brought nothing for {self._limits.idle_s:g} s"
                raise Problem(408, reason) from None
            finally:
                await self._settle()
        except BaseException:
            if self._under_way is not None:
                self._under_way[1].cancel()
            raise

    async def _take(self, piece: bytes, *, is_last: bool) -> None:
        *lines, rest = (self._rest + piece).split(b"\n") if self._rest else piece.split(b"\n")
        if is_last and rest:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        overhead = _OVERHEAD + len(self._client.id.encode()) + len(self._traceparent)
        request = _Request(self._lines + 1)
        for line in lines:
            self._lines += 1
            if not line or line.isspace():
                continue
            try:
                found = self._read(line)
            except Problem:
                await self._send(request)  # what is right before it
                raise
            size = wire_bytes_max(line, len(found.attributes))
            request.add(self._lines, found, size + overhead)
            if request.is_full:
                await self._send(request)
                request = _Request(self._lines + 1)
        await self._send(request)
        if len(self._rest) > self._limits.line_bytes:
            raise self._too_long(self._lines + 1)

    def _read(self, line: bytes) -> Notification:
        if len(line) > self._limits.line_bytes:
            raise self._too_long(self._lines)
        try:
            return read_notification(line)
        except Problem as problem:
            problem.document.line = self._lines
            raise

    async def _send(self, request: _Request) -> None:
        """Publish more, as soon as what went before is accepted."""
        if not request.notifications:
            return
        await self._settle()
        found = traced(request.notifications, self._traceparent)
        task = asyncio.create_task(accepted(self._client, found, self._limits))
        self._under_way = request, task
        await asyncio.sleep(0)  # it goes while the next lines are read

    async def _settle(self) -> None:
        """Wait until what is under way is accepted."""
        if self._under_way is None:
            return
        request, task = self._under_way
        try:
            await task
        except Problem as problem:
            about = problem.document
            about.line = request.first
            if request.last > request.first:
                about.detail = f"lines {request.first:,} to {request.last:,}: {about.detail}"
            raise
        finally:
            if task.done():
                self._under_way = None
        self.accepted += len(request.notifications)

    def _too_long(self, line: int) -> Problem:
        self._ended["line_bytes"] += 1
        most = self._limits.line_bytes
        return Problem(413, f"a line has at most {most:,} bytes", line=line)
