"""What neighbours say past every queue to find out whether all brokers know all subscriptions.

Sets of brokers cross as bytes, little-endian: bit i is the broker at place i of the overlay.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from octopis.core.model import BrokerId
from octopis.core.routing.marks import Confirmed
from octopis.core.routing.settling import Inquiry, Report
from octopis.core.wire.frames import BodyDecoder, Frame, FrameKind, encode, encode_frame
from octopis.core.wire.subscriptions import decode_bits, encode_bits

_Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Round = Annotated[int, Meta(ge=1, le=2**31)]
_Age = Annotated[int, Meta(ge=-1, le=2**53)]

Asking = Inquiry | Confirmed | Report


class _Inquiry(msgspec.Struct, frozen=True, array_like=True):
    origin: BrokerId
    number: _Number
    round: _Round
    again: bytes
    anew: bytes


class _Confirmed(msgspec.Struct, frozen=True, array_like=True):
    host: BrokerId
    number: _Number
    brokers: bytes


class _Report(msgspec.Struct, frozen=True, array_like=True):
    origin: BrokerId
    number: _Number
    round: _Round
    broker: BrokerId
    up: bytes
    known: bytes
    uptime_ms: _Age
    mark_age_ms: _Age


_KINDS: dict[int, tuple[type[Any], BodyDecoder[Any], tuple[str, ...]]] = {
    FrameKind.INQUIRY: (Inquiry, BodyDecoder(_Inquiry, "an inquiry"), ("again", "anew")),
    FrameKind.CONFIRMED: (Confirmed, BodyDecoder(_Confirmed, "a confirmation"), ("brokers",)),
    FrameKind.REPORT: (Report, BodyDecoder(_Report, "a report"), ("up", "known")),
}
"""What each kind is, how it is read, and which of its fields are sets of brokers."""


def encode_asking(message: Asking) -> bytes:
    """Return the frame of an inquiry, a confirmation or a report."""
    kind, sets = next(
        (kind, sets) for kind, (wanted, _, sets) in _KINDS.items() if wanted is type(message)
    )
    fields = [
        encode_bits(getattr(message, name)) if name in sets else getattr(message, name)
        for name in message.__struct_fields__
    ]
    return encode_frame(FrameKind(kind), encode(fields))


def decode_asking(frame: Frame) -> Asking | None:
    """Return an inquiry, a confirmation or a report; None for other kinds, or ProtocolError."""
    if frame.kind not in _KINDS:
        return None
    wanted, decoder, sets = _KINDS[frame.kind]
    found: dict[str, Any] = msgspec.structs.asdict(decoder.decode(frame.body))
    for name in sets:
        found[name] = decode_bits(found[name])
    said: Asking = wanted(**found)
    return said
