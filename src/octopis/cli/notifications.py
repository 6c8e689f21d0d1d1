"""Notifications as people write them: words of a command, or JSON lines.

On the command line they are `symbol=IBM price=12.5`, or one JSON object. Lines are what
`octopis sub` prints and `octopis pub` reads, from a file, a pipe or a terminal: each is an object
of attributes, or one with `attributes` and, if there is any, `payload` (in base64). No attribute
holds an object, so the two cannot be mistaken for each other.
"""

import asyncio
import base64
import binascii
import json
import os
import re
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from octopis.client.streams import Received
from octopis.core.model import Notification, Value
from octopis.errors import InvalidConfiguration, InvalidNotification

LINE_MAX = 2**24
_READ_BYTES = 2**16
_KEYS = (
    "attributes",
    "payload",
    "publisher",
    "sequence",
    "intended_ns",
    "subscriptions",
    "position",
)
_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse_attributes(words: list[str]) -> Notification:
    """Return the notification that `words` describe, or raise InvalidNotification."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return Notification.checked(_from_json(words[0]))
    attributes: dict[str, Value] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise InvalidNotification(
                f"write attributes as name=value, such as price=12.5, not {word!r}"
            )
        _check_blanks(name, text)
        if name in attributes:
            raise InvalidNotification(f"the attribute {name!r} is given twice")
        attributes[name] = parse_value(text)
    return Notification.checked(attributes)


def _check_blanks(name: str, text: str) -> None:
    """Refuse `price = 5`, which would be a text under a name that no filter has."""
    meant = parse_value(text.strip())
    if name != name.strip() or (text != text.strip() and not isinstance(meant, str)):
        raise InvalidNotification(
            f"write attributes without blanks around the =, as {name.strip()}={text.strip()}, not "
            f"{name + '=' + text!r}; names with blanks at their ends are written as JSON: "
            f"{json.dumps({name: meant})}"
        )


def parse_value(text: str) -> Value:
    """Return a number or a boolean where `text` looks like one; quotes make it text."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text.lower(), text)


def _from_json(text: str) -> dict[str, Value]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as fault:
        raise InvalidNotification(
            f"this is not JSON: {fault.msg} at column {fault.colno}"
        ) from None
    # A null in JSON is how other systems write an absent attribute.
    return {name: value for name, value in found.items() if value is not None}


async def line_batches(path: Path) -> AsyncIterator[list[bytes]]:
    """Yield the lines that have come since the last time; `-` is standard input.

    A thread reads ahead by one piece. It is no part of asyncio's own pool, which at the end would
    wait for somebody to type something. Raises InvalidConfiguration where the file cannot be read.
    """
    try:
        descriptor = sys.stdin.fileno() if str(path) == "-" else os.open(path, os.O_RDONLY)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure.strerror}") from failure
    pieces: asyncio.Queue[bytes | OSError] = asyncio.Queue(1)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(descriptor, pieces, loop), daemon=True).start()
    rest = b""
    while piece := await pieces.get():
        if isinstance(piece, OSError):
            raise InvalidConfiguration(f"cannot read {path}: {piece.strerror}") from piece
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LINE_MAX:
            raise InvalidConfiguration(f"{path} has a line of more than {LINE_MAX:,} bytes")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _read(
    descriptor: int, pieces: "asyncio.Queue[bytes | OSError]", loop: asyncio.AbstractEventLoop
) -> None:
    piece: bytes | OSError = b"-"
    while piece and not isinstance(piece, OSError):
        try:
            piece = os.read(descriptor, _READ_BYTES)
        except OSError as failure:
            piece = failure
        putting = pieces.put(piece)
        try:
            asyncio.run_coroutine_threadsafe(putting, loop).result()
        except RuntimeError:  # the loop is closed: nobody reads any more
            putting.close()
            return
        except CancelledError:  # the same; it is not asyncio's error that comes out of a future
            return


def format_line(received: Received) -> str:
    """Return a notification as one line of JSON."""
    shown: dict[str, Any] = {"attributes": received.attributes}
    if received.payload:
        shown["payload"] = base64.b64encode(received.payload).decode()
    shown |= {
        "publisher": received.publisher,
        "sequence": received.sequence,
        "intended_ns": received.intended_ns,
        "subscriptions": list(received.subscriptions),
    }
    if received.position:
        shown["position"] = received.position
    return json.dumps(shown, ensure_ascii=False) + "\n"


def parse_line(line: bytes) -> tuple[dict[str, Value], bytes]:
    """Return attributes and payload of a line, or raise InvalidNotification."""
    try:
        found = json.loads(line)
    except UnicodeDecodeError as fault:
        raise InvalidNotification("this is not text in UTF-8") from fault
    except json.JSONDecodeError as fault:
        raise InvalidNotification(
            f"this is not JSON: {fault.msg} at column {fault.colno}"
        ) from fault
    except RecursionError as fault:
        raise InvalidNotification("this is nested too deeply") from fault
    if not isinstance(found, dict):
        raise InvalidNotification("a notification is a JSON object of attributes")
    payload = b""
    if isinstance(found.get("attributes"), dict):
        unknown = next((key for key in found if key not in _KEYS), None)
        if unknown is not None:
            raise InvalidNotification(f"unknown key {unknown!r}; known: {', '.join(_KEYS)}")
        payload = _payload(found.get("payload", ""))
        found = found["attributes"]
    # A null in JSON is how other systems write an absent attribute.
    attributes = {name: value for name, value in found.items() if value is not None}
    return Notification.checked(attributes, payload).attributes, payload


def _payload(text: object) -> bytes:
    try:
        return base64.b64decode(text, validate=True)  # type: ignore[arg-type]  # it may be anything
    except (TypeError, ValueError, binascii.Error) as fault:
        raise InvalidNotification(f"the payload is not base64: {fault}") from fault
