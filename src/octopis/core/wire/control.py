"""What may be said on any connection, past every queue, and how errors cross it.

Signs of life, backpressure notices, goodbyes and status are small frames. What a broker raises
arrives at the client as the same class.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from octopis import errors
from octopis.core.model import BrokerId
from octopis.core.wire.frames import BodyDecoder, Frame, FrameKind, encode, encode_frame
from octopis.errors import OctopisError, OperationFailed, restored

Incarnation = Annotated[str, Meta(min_length=1, max_length=64)]
"""One life of a broker: a random text that it takes when it starts."""

_Fact = str | int | float | bool | None


class Refusal(msgspec.Struct, frozen=True):
    """An error by the name of its class, its message and its fields."""

    error: str
    message: str
    fields: dict[str, _Fact] = {}

    @classmethod
    def of(cls, error: OctopisError) -> "Refusal":
        """Return what to send of an error; fields that are not plain values stay behind."""
        facts = {name: value for name, value in vars(error).items() if isinstance(value, _Fact)}
        return cls(type(error).__name__, str(error), facts)

    def as_error(self) -> OctopisError:
        """Return the error; one that this version does not know is an OperationFailed."""
        kind = getattr(errors, self.error, None)
        if not (isinstance(kind, type) and issubclass(kind, OctopisError)):
            kind = OperationFailed
        return restored(kind, (self.message,), dict(self.fields))


class Ping(msgspec.Struct, frozen=True):
    """A question whether anybody is there."""


class Pong(msgspec.Struct, frozen=True):
    """The answer to a ping."""


LOG_IN_ANEW = "log in anew"
"""How a goodbye ends where what somebody may do is another thing now."""


class Goodbye(msgspec.Struct, frozen=True):
    """The sender is about to close the connection, and says why."""

    reason: str


class Notice(msgspec.Struct, frozen=True):
    """A broker's queues are past their high-water mark (`holds`), or no longer so.

    `changes` says the same of the changes of tables that wait there. `stuck` are the neighbours
    to which its full queues lead, and the broker itself where they are those of own clients. With
    channels, `slow` are the owners of the subscriptions of these clients instead.

    `number` rises with every notice of that broker since it has started as `incarnation`, so that
    old news never replaces newer.
    """

    broker: BrokerId
    incarnation: Incarnation
    number: Annotated[int, Meta(ge=0, le=2**62)]
    holds: bool
    changes: bool = False
    stuck: tuple[BrokerId, ...] = ()
    slow: tuple[str, ...] = ()


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
