"""A stream of lines, one notification each: published in their order, a request at a time.

Lines are read and checked while a request is under way.
"""

import asyncio
from collections import Counter

from octopis.client.client import Client
from octopis.core.model import Notification
from octopis.gateway.bodies import Gone, Receive
from octopis.gateway.doors.acceptance import Together, accepted
from octopis.gateway.doors.notations import read_notification
from octopis.gateway.doors.traced import traced
from octopis.gateway.problems import Problem
from octopis.gateway.settings import GatewayLimits

_TRACE_BYTES = 80
"""What the attribute `traceparent` adds to each."""


class _Lines(Together):
    """Lines that a broker accepts or refuses together."""

    def __init__(self, client: Client, more: int, first: int) -> None:
        super().__init__(client, more)
        self.first = self.last = first


class LineStream:
    """What is right before a mistake is published, and nothing behind it."""

    def __init__(
        self, client: Client, limits: GatewayLimits, ended: Counter[str], traceparent: str
    ) -> None:
        self.accepted = 0
        self._client, self._limits, self._traceparent = client, limits, traceparent
        self._more = _TRACE_BYTES if traceparent else 0
        self._ended = ended
        self._under_way: tuple[_Lines, asyncio.Task[None]] | None = None
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
        request = _Lines(self._client, self._more, self._lines + 1)
        for line in lines:
            self._lines += 1
            if not line or line.isspace():
                continue
            try:
                found = self._read(line)
            except Problem:
                await self._send(request)  # what is right before it
                raise
            request.add(found)
            request.last = self._lines
            if request.is_full:
                await self._send(request)
                request = _Lines(self._client, self._more, self._lines + 1)
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

    async def _send(self, request: _Lines) -> None:
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
