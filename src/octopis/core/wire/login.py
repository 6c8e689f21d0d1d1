"""How a client proves who it is: what it says in its hello, and what is asked and answered after.

A token is one word. A password is proved by SCRAM (RFC 5802): the broker asks once (CHALLENGE), the
client answers (PROOF), and the welcome proves that the broker knows the password's keys, too. A
certificate has proved it already when the hello comes.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from octopis.core.wire.frames import BodyDecoder, Frame, FrameKind, encode, encode_frame
from octopis.errors import ProtocolError

MECHANISM = "SCRAM-SHA-256"
TOKEN_MAX = 4_096
MESSAGE_MAX = 1_024
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 1_000_000
"""What a password may cost: less makes a proof easy to guess from (RFC 7677 has no less), and more
is half a second of work, which no broker may ask of a client."""

_Message = Annotated[bytes, Meta(max_length=MESSAGE_MAX)]


class Token(msgspec.Struct, frozen=True, tag_field="by", tag="token"):
    """A signed token: who has it is let in, so it is never shown."""

    token: Annotated[str, Meta(max_length=TOKEN_MAX)]

    def __repr__(self) -> str:
        return "Token(...)"


class Scram(msgspec.Struct, frozen=True, tag_field="by", tag="scram"):
    """The first message of a client with a password: its name, and a number used once."""

    mechanism: Annotated[str, Meta(max_length=32)]
    message: _Message


Login = Token | Scram


class Challenge(msgspec.Struct, frozen=True):
    """What the broker asks of a client with a password: SCRAM's first message of a server."""

    message: _Message


class Proof(msgspec.Struct, frozen=True):
    """What the client answers: SCRAM's last message of a client.

    Passwords can be tried on it, so it is never shown.
    """

    message: _Message

    def __repr__(self) -> str:
        return "Proof(...)"


_challenge = BodyDecoder[Challenge](Challenge, "the challenge")
_proof = BodyDecoder[Proof](Proof, "the proof")


def encode_challenge(message: bytes) -> bytes:
    """Return the frame of a challenge."""
    return encode_frame(FrameKind.CHALLENGE, encode(Challenge(message)))


def encode_proof(message: bytes) -> bytes:
    """Return the frame of a proof."""
    return encode_frame(FrameKind.PROOF, encode(Proof(message)))


def decode_challenge(frame: Frame) -> Challenge:
    """Return a challenge, or raise ProtocolError."""
    return _challenge.decode(frame.body)


def decode_proof(frame: Frame) -> Proof:
    """Return the proof that a broker has asked for, or raise ProtocolError."""
    if frame.kind != FrameKind.PROOF:
        raise ProtocolError(f"a frame of kind {frame.kind} came, where a proof was asked for")
    return _proof.decode(frame.body)
