"""Notifications on the command line: `symbol=IBM price=12.5`, or one JSON object."""

import json
import re

from octopis.errors import InvalidNotification
from octopis.model import Notification, Value

_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse_attributes(words: list[str]) -> Notification:
    """Return the notification that `words` describe, or raise InvalidNotification."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return Notification.checked(_from_json(words[0]))
    attributes: dict[str, Value] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise InvalidNotification(
                f"write attributes as name=value, such as price=12.5, not {word!r}"
            )
        if name in attributes:
            raise InvalidNotification(f"the attribute {name!r} is given twice")
        attributes[name] = parse_value(text)
    return Notification.checked(attributes)


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
