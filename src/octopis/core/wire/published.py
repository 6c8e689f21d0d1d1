"""Notifications on the wire: encoded once, by the publisher's client, and passed on as they are.

A notification is an array of attributes, payload, publisher, sequence and intended time. A broker
reads the attributes to route it and sends the same bytes on.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Annotated

from msgspec import Meta, Raw, Struct
from msgspec.msgpack import Decoder

from octopis.core.model import Notification, Value
from octopis.core.model.notification import (
    ATTRIBUTES_MAX,
    INTEGER_MAX,
    INTEGER_MIN,
    NAME_LENGTH_MAX,
    TEXT_LENGTH_MAX,
)
from octopis.core.wire.frames import FRAME_MAX, BodyDecoder, encode
from octopis.errors import InvalidNotification, ProtocolError

_FINITE_MAX = 1.7976931348623157e308
_Name = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
_Text = Annotated[str, Meta(max_length=TEXT_LENGTH_MAX)]
_Integer = Annotated[int, Meta(ge=INTEGER_MIN, le=INTEGER_MAX)]
_Sequence = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
_Finite = Annotated[float, Meta(ge=-_FINITE_MAX, le=_FINITE_MAX)]
_Attributes = Annotated[
    dict[_Name, _Text | _Integer | _Finite | bool], Meta(max_length=ATTRIBUTES_MAX)
]


class Published(Notification, frozen=True, gc=False):
    """A notification with its publisher, its number there, and when it was meant to be published.

    `sequence` rises by one with each notification of a publisher. `encoded` is the whole as it
    came, so that nobody on the way encodes it again. `source` is what the publisher's host knows
    the publisher by, if it keeps what it accepts on disk.
    """

    publisher: str = ""
    sequence: int = 0
    intended_ns: int = 0
    encoded: bytes = b""
    source: bytes = b""


class PublishedBody(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The array as it stands in a frame; its types say what `Notification.checked` says."""

    attributes: _Attributes
    payload: bytes
    publisher: str
    sequence: _Sequence
    intended_ns: _Integer


class _Head(Struct, gc=False, array_like=True):
    """The array without what follows its attributes."""

    attributes: dict[str, Value]


class _AnyBody(Struct, array_like=True, forbid_unknown_fields=True):
    attributes: object
    payload: object
    publisher: str
    sequence: int
    intended_ns: int


_one = BodyDecoder[PublishedBody](PublishedBody, "a notification")
_many = BodyDecoder[list[PublishedBody]](list[PublishedBody], "a batch of notifications")
_decode_raw = Decoder(list[Raw]).decode
_head = BodyDecoder[_Head](_Head, "a notification")
_any = BodyDecoder[list[_AnyBody]](list[_AnyBody], "a batch of notifications")


def encode_published(
    attributes: dict[str, Value], payload: bytes, publisher: str, sequence: int, intended_ns: int
) -> bytes:
    """Return the bytes of a notification that has been checked."""
    return encode((attributes, payload, publisher, sequence, intended_ns))


def make_published(body: PublishedBody, encoded: bytes, source: bytes = b"") -> Published:
    """Return the notification that `encoded` was decoded to."""
    about = body.publisher, body.sequence, body.intended_ns
    return Published(body.attributes, body.payload, *about, encoded, source)


def decode_one(encoded: bytes) -> Published:
    """Return a notification that was published, or raise ProtocolError."""
    return make_published(_one.decode(encoded), encoded)


def attributes_of(encoded: bytes) -> dict[str, Value]:
    """Return the attributes of a notification that was published, or raise ProtocolError."""
    return _head.decode(encoded).attributes


def says_twice(notification: Published) -> bool:
    """Tell whether an attribute stands twice in what was published.

    Brokers know the last of both; whoever else reads the same bytes might take the first.
    """
    encoded = notification.encoded
    at = _AFTER_ARRAY.get(encoded[0], 1)
    head = encoded[at]
    if head & 0xF0 == 0x80:  # msgpack's "fixmap"
        announced = head & 0x0F
    else:  # "map 16" and "map 32"
        announced = int.from_bytes(encoded[at + 1 : at + (3 if head == _MAP_16 else 5)], "big")
    return announced != len(notification.attributes)


def decode_published(body: bytes | memoryview, source: bytes = b"") -> list[Published]:
    """Return the notifications of an array, or raise ProtocolError."""
    bodies = _many.decode(body)
    raws = _decode_raw(body)  # what could be decoded once can be decoded again
    return list(map(make_published, bodies, map(bytes, raws), repeat(source)))


def decode_numbered(body: bytes, source: bytes, first: int) -> list[Published]:
    """Return the notifications of an array, known by a source and numbers from `first` on.

    The bytes that go on stay as they are. Raises ProtocolError.
    """
    return [
        Published(
            each.attributes, each.payload, each.publisher, number, each.intended_ns, encoded, source
        )
        for number, (each, encoded) in enumerate(
            zip(_many.decode(body), map(bytes, _decode_raw(body)), strict=True), first
        )
    ]


def without_first(body: bytes, count: int) -> bytes:
    """Return an array without so many notifications at its beginning."""
    return array_of(_decode_raw(body)[count:])


def array_of(encoded: Sequence[bytes | Raw]) -> bytes:
    """Return the array of some notifications that are encoded."""
    return b"".join([bytes([_ARRAY_32]), len(encoded).to_bytes(4, "big"), *encoded])


PUBLISH_MAX = 4_096
"""How many notifications one request may publish: they are read in one go."""

_ARRAY_16, _ARRAY_32 = 0xDC, 0xDD
_MAP_16 = 0xDE
_AFTER_ARRAY = {_ARRAY_16: 3, _ARRAY_32: 5}


def count_notifications(body: bytes | memoryview) -> int:
    """Return how many notifications an array announces, without reading them.

    What is no array has none: reading it will say so.
    """
    first = body[0] if len(body) else 0
    if first == _ARRAY_32:
        return int.from_bytes(body[1:5], "big")
    if first == _ARRAY_16:
        return int.from_bytes(body[1:3], "big")
    return first & 0x0F if first & 0xF0 == 0x90 else 0  # msgpack's "fixarray"


def check_size(body: bytes | memoryview, window: int) -> None:
    """Raise InvalidNotification where an array is too long for a request to publish."""
    size, count = len(body), count_notifications(body)
    if count > PUBLISH_MAX or (count > 1 and size > window):
        raise InvalidNotification(
            f"a request publishes at most {PUBLISH_MAX:,} notifications and {window:,} bytes, "
            f"or a single longer one; not {count:,} of {size:,} bytes"
        )


def decode_checked(
    body: bytes | memoryview,
    publisher: str,
    bytes_max: int = FRAME_MAX // 2,
    source: bytes = b"",
) -> list[Published]:
    """Return the notifications that a client publishes.

    Raises InvalidNotification where one of them cannot be carried, is longer than `bytes_max` or
    names another publisher, and ProtocolError where they are no notifications at all.
    """
    try:
        batch = decode_published(body, source)
    except ProtocolError:
        _explain(body)
        raise
    for each in batch:
        if each.publisher != publisher:
            raise InvalidNotification(_in_the_name_of(publisher, each.publisher))
        if len(each.encoded) > bytes_max:
            raise InvalidNotification(_too_long(len(each.encoded), bytes_max))
    return batch


def check_published(body: bytes, publisher: str, bytes_max: int = FRAME_MAX // 2) -> int:
    """Return how many notifications an array has that a client may publish, and make none of them.

    Raises what `decode_checked` raises.
    """
    try:
        bodies = _many.decode(body)
    except ProtocolError:
        _explain(body)
        raise
    others = {each.publisher for each in bodies} - {publisher}
    if others:
        raise InvalidNotification(_in_the_name_of(publisher, others.pop()))
    if len(body) > bytes_max:
        size = max(map(len, map(bytes, _decode_raw(body))))
        if size > bytes_max:
            raise InvalidNotification(_too_long(size, bytes_max))
    return len(bodies)


def _in_the_name_of(publisher: str, other: str) -> str:
    return f"{publisher!r} cannot publish in the name of {other!r}"


def _too_long(size: int, bytes_max: int) -> str:
    return f"a notification has {size:,} bytes, more than {bytes_max:,}"


def _explain(body: bytes | memoryview) -> None:
    """Raise InvalidNotification where something like a notification is at fault."""
    try:
        batch = _any.decode(body)
    except ProtocolError:
        return
    for number, each in enumerate(batch, start=1):
        if not isinstance(each.attributes, dict):
            raise InvalidNotification(f"the attributes of notification {number} are no mapping")
        if not 0 <= each.sequence <= INTEGER_MAX or each.intended_ns > INTEGER_MAX:
            raise InvalidNotification(
                f"the sequence of notification {number} is from 0 to {INTEGER_MAX}, and its "
                f"intended_ns at most that; not {each.sequence} and {each.intended_ns}"
            )
        try:
            Notification.checked(each.attributes, each.payload)  # type: ignore[arg-type]
        except InvalidNotification as failure:
            raise InvalidNotification(f"notification {number} of the batch: {failure}") from failure
