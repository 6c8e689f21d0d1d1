"""Notifications as JSON: how they are read, quickly where they are right, slowly to say why not."""

from typing import Annotated

import msgspec
from msgspec import Meta

from octopis.core.model import Notification, Value
from octopis.core.model.notification import (
    ATTRIBUTES_MAX,
    INTEGER_MAX,
    INTEGER_MIN,
    NAME_LENGTH_MAX,
    TEXT_LENGTH_MAX,
)
from octopis.errors import InvalidNotification
from octopis.gateway.documents import NotificationIn
from octopis.gateway.problems import NOT_JSON, Problem, bad_json

_Checked = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)],
        Annotated[str, Meta(max_length=TEXT_LENGTH_MAX)]
        | Annotated[int, Meta(ge=INTEGER_MIN, le=INTEGER_MAX)]
        | float
        | bool
        | None,
    ],
    Meta(max_length=ATTRIBUTES_MAX),
]
_decode_checked = msgspec.json.Decoder(_Checked).decode
_decode_whole = msgspec.json.Decoder(NotificationIn).decode
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read_notification(text: bytes | msgspec.Raw) -> Notification:
    """Return the notification that JSON text says: attributes, or attributes and a payload.

    Raises Problem, which says what is wrong.
    """
    try:
        attributes = _decode_checked(text)
    except NOT_JSON:
        return _read_slowly(text)
    if None in attributes.values():  # how other systems write an absent attribute
        attributes = {name: value for name, value in attributes.items() if value is not None}
    return Notification(attributes)  # type: ignore[arg-type]  # without None, as just seen


def read_body(body: bytes) -> list[Notification]:
    """Return the notifications of a body: a single one, or an array of them."""
    if body.lstrip()[:1] != b"[":
        return [read_notification(body)]
    try:
        items = _decode_array(body)
    except NOT_JSON as failure:
        raise bad_json(failure) from failure
    found = []
    for index, item in enumerate(items):
        try:
            found.append(read_notification(item))
        except Problem as problem:
            problem.document.index = index
            raise
    return found


def checked(attributes: dict[str, Value], payload: bytes = b"") -> Notification:
    """Return a notification of attributes that may be anything, or raise Problem."""
    present = {name: value for name, value in attributes.items() if value is not None}
    try:
        return Notification.checked(present, payload)
    except InvalidNotification as failure:
        raise Problem(400, str(failure)) from failure


def _read_slowly(text: bytes | msgspec.Raw) -> Notification:
    try:
        members = _decode_raw(text)
    except (msgspec.ValidationError, RecursionError) as failure:
        raise Problem(400, f"a notification is a JSON object of attributes: {failure}") from failure
    except NOT_JSON as failure:
        raise bad_json(failure, "this is not JSON") from failure
    try:
        if bytes(members.get("attributes", b""))[:1] == b"{":
            whole = _decode_whole(text)
            return checked(whole.attributes, whole.payload)
        return checked(msgspec.json.decode(text))
    except NOT_JSON as failure:
        raise bad_json(failure, "this is no notification") from failure
