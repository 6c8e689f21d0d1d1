"""`POST /notifications`: plain JSON, CloudEvents, or a stream of lines.

Requests that come at the same time share frames to the broker, by the client's own rule: what is
published in one turn of the event loop goes together.
"""

import asyncio
from http import HTTPStatus

import msgspec

from octopis.core.model import Notification
from octopis.gateway.bodies import Receive, Scope, Send, answer, header, read_body
from octopis.gateway.context import Context
from octopis.gateway.documents import Accepted
from octopis.gateway.doors import cloud_events
from octopis.gateway.doors.acceptance import all_accepted
from octopis.gateway.doors.lines import LineStream
from octopis.gateway.doors.notations import read_body as read_plain
from octopis.gateway.doors.traced import traced, traceparent_of
from octopis.gateway.problems import Problem

LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl")
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
        body = await read_body(scope, receive, context.limits, context.counts.ended)
        door, found = _read(scope, content, kind, body)
        started = asyncio.get_running_loop().time()
        client = await member.connected()
        try:
            await all_accepted(client, traced(found, traceparent_of(scope)), context.limits)
        except Problem as problem:
            context.counts.published[door] += problem.document.accepted or 0
            raise
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


async def _publish_lines(context: Context, scope: Scope, receive: Receive, send: Send) -> None:
    """Publish the lines of a stream as they come, and say how many were accepted."""
    async with context.member(scope) as member:
        client = await member.connected()
        traceparent = traceparent_of(scope)
        stream = LineStream(client, context.limits, context.counts.ended, traceparent)
        try:
            await stream.run(receive)
        except Problem as problem:
            problem.document.accepted = stream.accepted
            problem.closes = True
            raise
        finally:
            context.counts.published["ndjson"] += stream.accepted
    await answer(send, HTTPStatus.ACCEPTED, msgspec.json.encode(Accepted(stream.accepted)))
