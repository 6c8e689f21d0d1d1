"""Small frames that go past every queue: signs of life, backpressure notices, goodbyes, status."""

from typing import Any

import msgspec

from octopis.core.model import BrokerId
from octopis.core.wire.frames import BodyDecoder, Frame, FrameKind, encode, encode_frame


class Ping(msgspec.Struct, frozen=True):
    """A question whether anybody is there."""


class Pong(msgspec.Struct, frozen=True):
    """The answer to a ping."""


class Goodbye(msgspec.Struct, frozen=True):
    """The sender is about to close the connection, and says why."""

    reason: str


class Notice(msgspec.Struct, frozen=True):
    """A broker's queues are past their high-water mark (`holds`), or no longer so.

    `number` rises with every notice of that broker, so that old news never replaces newer.
    """

    broker: BrokerId
    number: int
    holds: bool


class StatusRequest(msgspec.Struct, frozen=True):
    """A question how a broker is."""

    request: int


class Status(msgspec.Struct, frozen=True):
    """How a broker is: values as JSON has them."""

    request: int
    status: dict[str, Any]


Control = Ping | Pong | Goodbye | Notice | StatusRequest | Status

KINDS: dict[type, FrameKind] = {
    Ping: FrameKind.PING,
    Pong: FrameKind.PONG,
    Goodbye: FrameKind.GOODBYE,
    Notice: FrameKind.NOTICE,
    StatusRequest: FrameKind.STATUS_REQUEST,
    Status: FrameKind.STATUS,
}
_decoders = {
    kind: BodyDecoder[Any](wanted, f"a {kind.name.lower().replace('_', ' ')}")
    for wanted, kind in KINDS.items()
}


def encode_control(message: Control) -> bytes:
    """Return the frame of a control message."""
    return encode_frame(KINDS[type(message)], encode(message))


def decode_control(frame: Frame) -> Control | None:
    """Return the control message of a frame, None for other kinds, or raise ProtocolError."""
    decoder = _decoders.get(frame.kind)  # type: ignore[call-overload]  # any int may arrive
    return None if decoder is None else decoder.decode(frame.body)
