"""A request's head and body, as doors read them, and quick answers."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from octopis.gateway.problems import Problem
from octopis.gateway.settings import GatewayLimits

_DIGITS = 20

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Gone(Exception):
    """The other side has closed its connection: nobody waits for an answer."""


def header(scope: Scope, name: bytes) -> str:
    """Return a header, or "" where it is not there."""
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found.decode("latin-1")
    return ""


def query_of(scope: Scope) -> dict[str, list[str]]:
    """Return what stands behind the question mark, or raise Problem."""
    try:
        text = scope["query_string"].decode("ascii")
        return parse_qs(text, keep_blank_values=True, strict_parsing=bool(text), errors="strict")
    except ValueError as failure:  # a UnicodeDecodeError, too
        raise Problem(400, f"the query cannot be read: {failure}") from failure


def one(query: dict[str, list[str]], name: str) -> str:
    """Return the value of a parameter, or "" where it is not there; it must not be there twice."""
    values = query.get(name, [""])
    if len(values) > 1:
        raise Problem(400, f"{name} is given {len(values)} times: give it once")
    return values[0]


def whole_number(query: dict[str, list[str]], name: str, default: int, most: int) -> int:
    """Return the value of a parameter that is a whole number from 0 on, or raise Problem."""
    text = one(query, name)
    if not text:
        return default
    found = number_of(text)
    if found is None or found > most:
        raise Problem(400, f"{name} is a whole number from 0 to {most:,}, not {text!r}")
    return found


def number_of(text: str) -> int | None:
    """Return the whole number that a text is, of at most 19 digits; None where it is none.

    Python takes digits of all scripts for digits, but not all of them for numbers.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else None


def known_only(query: dict[str, list[str]], *names: str) -> None:
    """Raise Problem for a parameter that nobody knows: it may be a slip of the pen."""
    for name in query:
        if name not in names:
            raise Problem(400, f"there is no parameter {name!r}; there are {', '.join(names)}")


async def read_body(
    scope: Scope, receive: Receive, limits: GatewayLimits, ended: Counter[str]
) -> bytes:
    """Return the whole body, or raise Problem where it is too long or too slow, and count it."""
    try:
        return await _read_body(scope, receive, limits)
    except Problem as problem:
        ended["body_s" if problem.status == HTTPStatus.REQUEST_TIMEOUT else "body_bytes"] += 1
        raise


async def _read_body(scope: Scope, receive: Receive, limits: GatewayLimits) -> bytes:
    most = limits.body_bytes
    length = header(scope, b"content-length")
    if length and int(length) > most:  # the parser has seen to it that it is a number
        raise _too_large(most)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > most:
            raise _too_large(most)
        return body
    parts, size = [body], len(body)
    try:
        async with asyncio.timeout(limits.body_s):
            while message.get("more_body", False):
                if size > most:
                    raise _too_large(most)
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                parts.append(message.get("body", b""))
                size += len(parts[-1])
    except TimeoutError:
        reason = f"the body must be there within {limits.body_s:g} s"
        raise Problem(408, reason, closes=True) from None
    if size > most:
        raise _too_large(most)
    return b"".join(parts)


async def answer(
    send: Send,
    status: int,
    body: bytes,
    content_type: bytes = b"application/json",
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Send a whole answer."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", content_type),
                (b"content-length", b"%d" % len(body)),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


def _too_large(most: int) -> Problem:
    return Problem(
        413,
        f"a body has at most {most:,} bytes; send many notifications as application/x-ndjson",
        closes=True,
    )
