"""Notifications as JSON lines: what `octopis sub` prints, and `octopis pub` reads.

A line is an object of attributes, or one with `attributes` and, if there is any, `payload` (in
base64). No attribute holds an object, so the two cannot be mistaken for each other.
"""

import base64
import binascii
import json
from typing import Any

from octopis.errors import InvalidNotification
from octopis.live.notifications import Received
from octopis.model import Notification, Value

_KEYS = ("attributes", "payload", "publisher", "sequence", "intended_ns", "subscriptions")


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
