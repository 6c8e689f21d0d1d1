"""Frames: how a stream of bytes falls into pieces, and what is in each.

    4 bytes   how many bytes follow, big-endian
    1 byte    the kind of the frame
    rest      the body, msgpack

Nothing is set aside for a length that was only announced: bytes are kept as they arrive, and a
length over the maximum is refused as soon as it can be read. Bodies are decoded into types and
nothing else.
"""

from enum import IntEnum
from struct import Struct
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from octopis.errors import ProtocolError

FRAME_MAX = 16 * 2**20
"""How many bytes may follow a length, unless an overlay is configured otherwise."""

_HEADER = Struct(">IB")
_LENGTH_BYTES = 4
_SHORTEST = 5
_QUOTED = 300


class FrameKind(IntEnum):
    """What a frame says. The numbers are the protocol: never use one again for something else."""

    HELLO = 1
    WELCOME = 2
    REFUSED = 3
    GOODBYE = 4
    PING = 5
    PONG = 6
    CHALLENGE = 7
    PROOF = 8

    CHANGES = 16
    SNAPSHOT = 17
    HOST_STATE = 18
    NOTIFICATIONS = 19
    NOTIFICATIONS_WITH_TARGETS = 20
    NOTICE = 21
    INQUIRY = 22
    CONFIRMED = 23
    REPORT = 24
    TARGETED = 25
    HOST_TABLE = 26
    NUMBERED = 27
    POSTS = 28

    SUBSCRIBE = 32
    UNSUBSCRIBE = 33
    PUBLISH = 34
    CONSUMED = 35
    ANSWERS = 36
    DELIVER = 37
    GAP = 38
    SETTLED = 39
    LOST = 40
    MISSED = 41

    STATUS_REQUEST = 48
    STATUS = 49

    DURABLE = 56
    DURABLES = 57
    BATCH = 58
    MOVING = 59


class Frame(NamedTuple):
    """A kind (which may be one that we do not know) and a body."""

    kind: int
    body: bytes | memoryview


class FrameDecoder:
    """Cuts what arrives into frames, however the bytes were split on their way."""

    def __init__(self, frame_max: int = FRAME_MAX) -> None:
        self.frame_max = frame_max
        self._rest = bytearray()
        self._wanted = _SHORTEST

    @property
    def pending(self) -> int:
        """How many bytes of an unfinished frame have arrived."""
        return len(self._rest)

    def receive_data(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes, or raise ProtocolError.

        Bodies may be views of `data`: copy what is to be kept for long.
        """
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                self._look_at_length()
                return []
            data = bytes(self._rest)
            self._rest.clear()
        view = memoryview(data)
        frames = []
        at, size = 0, len(data)
        self._wanted = _SHORTEST
        while size - at >= _SHORTEST:
            length, kind = _HEADER.unpack_from(data, at)
            if not 0 < length <= self.frame_max:
                raise self._fault(length)
            end = at + _LENGTH_BYTES + length
            if end > size:
                self._wanted = end - at
                break
            frames.append(Frame(kind, view[at + _SHORTEST : end]))
            at = end
        self._rest += view[at:]
        self._look_at_length()
        return frames

    def _look_at_length(self) -> None:
        """Refuse a length as soon as it is there, also where nothing has come after it."""
        if len(self._rest) == _LENGTH_BYTES:
            length = int.from_bytes(self._rest, "big")
            if not 0 < length <= self.frame_max:
                raise self._fault(length)

    def clear(self) -> None:
        """Forget what has arrived of an unfinished frame: nothing more will come."""
        self._rest = bytearray()
        self._wanted = _SHORTEST

    def _fault(self, length: int) -> ProtocolError:
        if not length:
            return ProtocolError("an empty frame has no kind")
        return ProtocolError(
            f"a frame of {length:,} bytes is announced, more than the {self.frame_max:,} "
            "allowed: is the other side an OctopiS broker or client?"
        )


def encode_frame(kind: FrameKind, body: bytes) -> bytes:
    """Return a frame as bytes."""
    return _HEADER.pack(len(body) + 1, kind) + body


def encode_items(kind: FrameKind, items: list[bytes]) -> bytes:
    """Return a frame whose body is an array of `items`, each of which is encoded already."""
    size = sum(map(len, items))
    # The array's own header is msgpack's "array 32": one byte and the count.
    return b"".join(
        [
            _HEADER.pack(size + 6, kind),
            b"\xdd",
            len(items).to_bytes(4, "big"),
            *items,
        ]
    )


_Body = TypeVar("_Body")

encode = msgspec.msgpack.Encoder().encode


class BodyDecoder(Generic[_Body]):
    """Decodes bodies of one type; anything else is a ProtocolError."""

    def __init__(self, wanted: Any, what: str) -> None:
        self._decoder: msgspec.msgpack.Decoder[_Body] = msgspec.msgpack.Decoder(wanted)
        self._what = what

    def decode(self, body: bytes | memoryview) -> _Body:
        """Return the value, or raise ProtocolError."""
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError) as failure:
            # ValueError: text that is not UTF-8; RecursionError: nested without end.
            # What is wrong may be quoted in it, however long it is.
            raise ProtocolError(
                f"{self._what} cannot be read: {str(failure)[:_QUOTED]}"
            ) from failure
