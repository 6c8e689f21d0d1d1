"""`POST /notifications`: plain JSON, CloudEvents, or a stream of lines.

Requests that come at the same time share frames to the broker, by the client's own rule: what is
published in one turn of the event loop goes together.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from octopis.client.client import Client
from octopis.core.model import Notification
from octopis.errors import ConnectionLost, LoginFailed, OctopisError
from octopis.gateway.bodies import Gone, Receive, Scope, Send, answer, header, read_body
from octopis.gateway.context import Context
from octopis.gateway.documents import Accepted
from octopis.gateway.doors import cloud_events
from octopis.gateway.doors.notations import read_body as read_plain
from octopis.gateway.doors.notations import read_notification
from octopis.gateway.doors.traced import traced, traceparent_of
from octopis.gateway.problems import Problem, away, problem_of
from octopis.gateway.settings import GatewayLimits

LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl")
_AT_ONCE = 4
"""Pieces of a stream that are under way to the broker; then nothing more is read of it."""

_ONE = msgspec.json.encode(Accepted(1))


async def publish(context: Context, scope: Scope, receive: Receive, send: Send) -> None:
    """Publish what a request brings."""
    content = header(scope, b"content-type")
    encoding = header(scope, b"content-encoding")
    if encoding not in {"", "identity"}:
        raise Problem(415, f"a body comes as it is, and not as {encoding}")
    kind = content.partition(";")[0].strip().lower()
    if kind in LINES:
        await _publish_lines(context, scope, receive, send)
        return
    async with context.member(scope) as member:
        body = await read_body(scope, receive, context.limits)
        door, found = _read(scope, content, kind, body)
        started = asyncio.get_running_loop().time()
        client = await member.connected()
        await accepted(client, traced(found, traceparent_of(scope)), context.limits)
    context.counts.publishing.observe(asyncio.get_running_loop().time() - started)
    context.counts.published[door] += len(found)
    done = _ONE if len(found) == 1 else msgspec.json.encode(Accepted(len(found)))
    await answer(send, HTTPStatus.ACCEPTED, done)


def _read(scope: Scope, content: str, kind: str, body: bytes) -> tuple[str, list[Notification]]:
    """Return by which door notifications come, and these; or raise Problem."""
    if kind == cloud_events.STRUCTURED:
        return "cloudevents", [cloud_events.read_structured(body)]
    if kind == cloud_events.BATCH:
        return "cloudevents", cloud_events.read_batch(body)
    if any(name == b"ce-specversion" for name, _ in scope["headers"]):
        return "cloudevents", [cloud_events.read_binary(scope["headers"], content, body)]
    # What curl says where nobody has said anything is taken as JSON, too.
    if kind in {"application/json", "", "application/x-www-form-urlencoded"}:
        return "json", read_plain(body)
    raise Problem(
        415,
        f"a notification is application/json, {LINES[0]}, {cloud_events.STRUCTURED} or "
        f"{cloud_events.BATCH}, or has the headers of a CloudEvent; not {kind}",
    )


async def accepted(client: Client, found: Sequence[Notification], limits: GatewayLimits) -> None:
    """Return when the overlay has accepted all, or raise Problem."""
    try:
        async with asyncio.timeout(limits.answer_s):
            if len(found) == 1:
                await client.publish(found[0])
            else:
                await client.publish_many(found)
    except TimeoutError:
        raise away(
            f"it has not answered within {limits.answer_s:g} s, and what was sent may or may not "
            "have been delivered"
        ) from None
    except LoginFailed as failure:
        raise problem_of(failure) from failure
    except ConnectionLost as failure:
        raise away(str(failure)) from failure
    except OctopisError as failure:
        raise problem_of(failure) from failure


async def _publish_lines(context: Context, scope: Scope, receive: Receive, send: Send) -> None:
    """Publish the lines of a stream as they come, and say how many were accepted."""
    async with context.member(scope) as member:
        client = await member.connected()
        stream = LineStream(client, context.limits, traceparent_of(scope))
        try:
            await stream.run(receive)
        except Problem as problem:
            problem.document.accepted = stream.accepted
            problem.closes = True
            raise
        finally:
            context.counts.published["ndjson"] += stream.accepted
    await answer(send, HTTPStatus.ACCEPTED, msgspec.json.encode(Accepted(stream.accepted)))


class LineStream:
    """A stream of lines, one notification each. What is right before a mistake is published."""

    def __init__(self, client: Client, limits: GatewayLimits, traceparent: str = "") -> None:
        self.accepted = 0
        self._client, self._limits, self._traceparent = client, limits, traceparent
        self._under_way: deque[tuple[int, asyncio.Task[None]]] = deque()
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
                reason = f"the stream has brought nothing for {self._limits.idle_s:g} s"
                raise Problem(408, reason) from None
            finally:
                await self._settle(0)
        except BaseException:
            for _, task in self._under_way:
                task.cancel()
            raise

    async def _take(self, piece: bytes, *, is_last: bool) -> None:
        *lines, rest = (self._rest + piece).split(b"\n") if self._rest else piece.split(b"\n")
        if is_last and rest:
            lines, rest = [*lines, rest], b""
        self._rest = rest
        found: list[Notification] = []
        mistake: Problem | None = None
        for line in lines:
            self._lines += 1
            if not line or line.isspace():
                continue
            try:
                if len(line) > self._limits.line_bytes:
                    raise self._too_long(self._lines)
                found.append(read_notification(line))
            except Problem as problem:
                problem.document.line = self._lines
                mistake = problem
                break
        if found:
            await self._settle(_AT_ONCE - 1)
            work = accepted(self._client, traced(found, self._traceparent), self._limits)
            self._under_way.append((len(found), asyncio.create_task(work)))
            # It begins now: numbers are given in the order of the lines.
            await asyncio.sleep(0)
        if mistake is not None:
            raise mistake
        if len(self._rest) > self._limits.line_bytes:
            raise self._too_long(self._lines + 1)

    async def _settle(self, left: int) -> None:
        """Wait until so few pieces are under way."""
        while len(self._under_way) > left:
            count, task = self._under_way[0]
            await task
            self._under_way.popleft()
            self.accepted += count

    def _too_long(self, line: int) -> Problem:
        most = self._limits.line_bytes
        return Problem(413, f"a line has at most {most:,} bytes", line=line)
