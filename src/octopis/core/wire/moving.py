"""What is said when a durable subscription moves from one broker to another.

Somebody who may use it (`octopis durable move`) is a client of both brokers, and asks all others
what they know; see octopis.core.delivery.lasting.moving for why nothing is lost or comes twice.
Every wish may be said again: what is done is answered as if it were done now.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from octopis.core.delivery.lasting.records import Policy
from octopis.core.wire.frames import BodyDecoder, FrameKind, encode, encode_frame

NAME_MAX = 128
COPY_MAX = 10_000
"""How many notifications are copied at a time."""

_MOVES_MAX = 2**31
_BROKER_MAX = 1_000
_STREAMS_MAX = 4_096
"""Streams that a host has taken in from: a few lives of each broker at most."""

Count = Annotated[int, Meta(ge=0, le=2**62)]
Position = Annotated[int, Meta(ge=0, le=2**53)]
"""More than anybody publishes in a life; what is taken for true must leave room to count on."""

Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
_Moves = Annotated[int, Meta(ge=1, le=_MOVES_MAX)]
_Broker = Annotated[str, Meta(max_length=_BROKER_MAX)]
_Version = Annotated[int, Meta(ge=0)]
_Cut = Annotated[dict[Count, Count], Meta(max_length=_STREAMS_MAX)]


class JoinDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="join"):
    """A wish that a durable subscription of the broker `source` is kept here, too.

    `asked` is what it is for, which brokers where clients log in do not tell each other.
    """

    request: Count
    name: Name
    source: _Broker
    policy: Policy
    epoch: Count
    moves: _Moves
    created_ns: Count
    asked: str = ""
    shared: bool = False


class PassDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="pass"):
    """A question to any broker: whether it knows that `holder` has it, and what goes to `toward`.

    What was known of an earlier try to move it does not count: all must be known that the holder
    has changed up to `version`, which the holder itself says.
    """

    request: Count
    name: Name
    moves: Annotated[int, Meta(ge=0, le=_MOVES_MAX)]
    holder: _Broker
    toward: _Broker
    version: tuple[_Version, _Version] = (0, 0)


class LeaveDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="leave"):
    """A wish that nothing more is kept here for what lives at another broker from now on."""

    request: Count
    name: Name
    to: _Broker
    moves: _Moves
    shared: bool = False


class CopyDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="copy"):
    """A wish for what something that has left here has after a position."""

    request: Count
    name: Name
    after: Count
    shared: bool = False


class BeginDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="begin"):
    """What was so when a durable subscription has left the other broker."""

    request: Count
    name: Name
    acked: Position
    until: Position
    dropped: Position
    policy: Policy
    cut: _Cut
    shared: bool = False


class TakeDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="take"):
    """What it has at positions, as it was published; nothing else is there up to `upto`."""

    request: Count
    name: Name
    positions: Annotated[list[Position], Meta(max_length=COPY_MAX)]
    bodies: Annotated[list[bytes], Meta(max_length=COPY_MAX)]
    upto: Position
    shared: bool = False


class FinishDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="finish"):
    """A wish that what has come here meanwhile follows, and that it lives here then."""

    request: Count
    name: Name
    shared: bool = False


class ForgetDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="forget"):
    """A wish to forget what lives at another broker now."""

    request: Count
    name: Name
    to: _Broker
    shared: bool = False


MoveRequest = (
    JoinDurable
    | PassDurable
    | LeaveDurable
    | CopyDurable
    | BeginDurable
    | TakeDurable
    | FinishDurable
    | ForgetDurable
)


class Passage(msgspec.Struct, frozen=True, tag_field="say", tag="pass"):
    """Whether a broker knows on disk who has a durable subscription, and what it sends to a host.

    `last` is the last number for that host, `acked` what it has acknowledged; where the host was
    given up, it is not `reached`. `version` is that of the broker's own changes.
    """

    request: int
    knows: bool
    reached: bool
    last: int
    acked: int
    version: tuple[int, int]


class Left(msgspec.Struct, frozen=True, tag_field="say", tag="left"):
    """How a durable subscription was when it has left: it has positions after `acked`."""

    request: int
    acked: int
    until: int
    dropped: int
    policy: Policy
    cut: dict[int, int]


class Excerpts(msgspec.Struct, frozen=True, tag_field="say", tag="copy"):
    """What there is at positions, all of them up to `upto`."""

    request: int
    positions: list[int]
    bodies: list[bytes]
    upto: int


class Merged(msgspec.Struct, frozen=True, tag_field="say", tag="merged"):
    """How many that have come meanwhile do not follow yet; none: it lives here."""

    request: int
    left: int


MoveAnswer = Passage | Left | Excerpts | Merged

_answer = BodyDecoder[MoveAnswer](MoveAnswer, "an answer about a move")


def encode_move_answer(answer: MoveAnswer) -> bytes:
    """Return the frame of an answer."""
    return encode_frame(FrameKind.MOVING, encode(answer))


def decode_move_answer(body: bytes | memoryview) -> MoveAnswer:
    """Return what a broker says of a move, or raise ProtocolError."""
    return _answer.decode(body)
