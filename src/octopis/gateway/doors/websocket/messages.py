"""What is said on a WebSocket to the gateway: messages in JSON, one or an array in each frame."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from octopis.gateway.documents import Position
from octopis.gateway.problems import NOT_JSON, Problem, bad_json

_MESSAGES_MAX = 10_000
NAME_LENGTH_MAX = 128
_Name = Annotated[str, Meta(max_length=NAME_LENGTH_MAX)]
"""How a client calls a subscription, or a request: it stands in each answer about that."""


class Subscribe(Struct, tag_field="type", tag="subscribe", forbid_unknown_fields=True):
    """A wish to get what a filter matches, or what a durable subscription has, under this id."""

    id: _Name
    filter: str | None = None
    dialect: str = "sql"
    durable: str | None = None
    start: str | int | None = None


class Unsubscribe(Struct, tag_field="type", tag="unsubscribe", forbid_unknown_fields=True):
    """A wish to get no more of it."""

    id: _Name


class Publish(Struct, tag_field="type", tag="publish", forbid_unknown_fields=True):
    """A notification; with `request` it is answered by that."""

    attributes: dict[str, Any]
    payload: bytes = b""
    request: int | _Name | None = None


class Ack(Struct, tag_field="type", tag="ack", forbid_unknown_fields=True):
    """All that a durable subscription has up to this position is done with."""

    id: _Name
    position: Position


class Credit(Struct, tag_field="type", tag="credit", forbid_unknown_fields=True):
    """So many notifications more may be sent; before the first credit there is no limit."""

    count: int


Said = Subscribe | Unsubscribe | Publish | Ack | Credit
_decode_one = msgspec.json.Decoder(Said).decode
_decode_many = msgspec.json.Decoder(list[Said]).decode
_decode_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read_messages(text: bytes) -> "list[Said | Problem]":
    """Return the messages of a frame; a problem stands where one makes no sense."""
    is_array = text.lstrip()[:1] == b"["
    try:
        if not is_array:
            return [_decode_one(text)]
        messages: list[Said | Problem] = list(_decode_many(text))
        return messages if len(messages) <= _MESSAGES_MAX else [_too_many()]
    except NOT_JSON as failure:
        if not is_array:
            return [bad_json(failure, "this is no message")]
    try:
        raws = _decode_raws(text)
    except NOT_JSON as failure:
        return [bad_json(failure, "this is no array of messages")]
    if len(raws) > _MESSAGES_MAX:
        return [_too_many()]
    found: list[Said | Problem] = []
    for raw in raws:
        if bytes(raw)[:1] == b"[":
            found.append(Problem(400, "an array of messages holds no arrays"))
        else:
            found += read_messages(bytes(raw))
    return found


def _too_many() -> Problem:
    return Problem(400, f"a frame has at most {_MESSAGES_MAX:,} messages")
