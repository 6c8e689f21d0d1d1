"""What a client and a broker say to each other about durable subscriptions.

They live at one broker, and are read there by position: a client asks for what comes after one, and
waits for the answer. So nothing has to be kept for a connection, and whoever reads a range again
gets the same.
"""

from collections.abc import Sequence
from itertools import chain, repeat
from struct import Struct
from typing import Annotated

import msgspec
from msgspec import Meta

from octopis.core.delivery.lasting.records import Policy
from octopis.core.wire.frames import BodyDecoder, FrameKind, encode, encode_frame
from octopis.core.wire.moving import NAME_MAX, MoveRequest
from octopis.core.wire.published import PublishedBody
from octopis.errors import InvalidNotification

READ_MAX = 10_000
"""How many notifications one answer holds at most."""

READ_BYTES = 2**20
"""How many bytes of notifications one answer holds, or a single longer one."""

WAIT_MS_MAX = 60_000
PARTS_MAX = 10_000
"""Parts of a batch: far more than Spark has tasks for one. Each has to be looked up."""

READS_MAX = 8
"""Reads of a client that may wait for an answer."""

_ITEM = Struct(">2sQ")
_Count = Annotated[int, Meta(ge=0, le=2**62)]
_Batch = Annotated[int, Meta(ge=0, lt=2**31)]
"""A row is known by this and its place in the batch, together in one number of 64 bits."""

_Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]


class OpenDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="open"):
    """A wish for a durable subscription of this name, made now unless it is there.

    Without a `filter` it must be there. Where `shared`, it is (or will be) everybody's who knows
    its name; else it is for those with the client's secret.
    """

    request: _Count
    name: _Name
    filter: str | None = None
    dialect: str = "sql"
    policy: Policy | None = None
    shared: bool = False


class ReadDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="read"):
    """A wish for what comes after a position, at most so many; where nothing is there, wait."""

    request: _Count
    name: _Name
    after: _Count
    count: Annotated[int, Meta(ge=1, le=READ_MAX)] = READ_MAX
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)] = 0
    shared: bool = False


class AckDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="ack"):
    """All up to a position has been consumed, and is released."""

    request: _Count
    name: _Name
    epoch: _Count
    position: _Count
    shared: bool = False


class DropDurable(msgspec.Struct, frozen=True, tag_field="ask", tag="drop"):
    """A wish that a durable subscription ends, with all that is kept for it."""

    request: _Count
    name: _Name
    shared: bool = False


class ListDurables(msgspec.Struct, frozen=True, tag_field="ask", tag="list"):
    """A wish to know which durable subscriptions live here."""

    request: _Count


class StageRows(msgspec.Struct, frozen=True, tag_field="ask", tag="stage"):
    """Rows of an attempt at a part of a batch, from row `first` on: kept, and not published yet.

    `rows` is an array of notifications as PUBLISH has it, as bytes. The answer comes when they are
    on disk.
    """

    request: _Count
    query: _Name
    batch: _Batch
    part: _Count
    attempt: _Count
    first: _Count
    rows: bytes


class CommitStaged(msgspec.Struct, frozen=True, tag_field="ask", tag="commit"):
    """A wish that a batch is published once: of each part this attempt, which has so many rows.

    The answer comes when all is published; a batch that was published before is answered at once.
    `one_off`: it is the only batch of its query, and nobody asks for it again when whoever asks now
    has gone. So the broker need not know for ever that it was published.
    """

    request: _Count
    query: _Name
    batch: _Batch
    attempts: Annotated[list[tuple[_Count, _Count, _Count]], Meta(max_length=PARTS_MAX)]
    one_off: bool = False

    def __post_init__(self) -> None:
        _check_parts(self.batch, len(self.attempts))


class DropStaged(msgspec.Struct, frozen=True, tag_field="ask", tag="unstage"):
    """A wish that attempts, by part and number, are forgotten: the batch has failed."""

    request: _Count
    query: _Name
    batch: _Batch
    attempts: Annotated[list[tuple[_Count, _Count]], Meta(max_length=PARTS_MAX)]

    def __post_init__(self) -> None:
        _check_parts(self.batch, len(self.attempts))


def _check_parts(batch: int, count: int) -> None:
    """Raise InvalidNotification where a batch has too many parts, before anybody is asked."""
    if count > PARTS_MAX:
        raise InvalidNotification(
            f"batch {batch} has {count:,} parts, more than {PARTS_MAX:,}: write it in fewer "
            "partitions (coalesce)"
        )


StagingRequest = StageRows | CommitStaged | DropStaged
DurableRequest = (
    OpenDurable
    | ReadDurable
    | AckDurable
    | DropDurable
    | ListDurables
    | StagingRequest
    | MoveRequest
)


class DurableInfo(msgspec.Struct, frozen=True):
    """How a durable subscription is.

    Positions up to `acked` are released, those up to `end` can be read. `epoch` is another where
    one of the same name was made anew. `ends_ns` is when it ends if nobody uses it before, where
    that is soon.
    """

    name: str
    filter: str
    policy: str
    epoch: int
    acked: int
    end: int
    bytes: int
    dropped: int
    suspended: bool
    shared: bool
    created_ns: int
    used_ns: int
    moved_to: str = ""
    joins: bool = False
    moves: int = 0
    ends_ns: int = 0

    @property
    def lag(self) -> int:
        """How many are not acknowledged."""
        return self.end - self.acked


class DurableAnswer(msgspec.Struct, frozen=True):
    """What a client wanted to know of durable subscriptions."""

    request: int
    durables: list[DurableInfo]


class BatchItem(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A notification at its position."""

    position: int
    notification: PublishedBody


class DurableBatch(msgspec.Struct, frozen=True, array_like=True):
    """What was read: after the position that was asked for, `missing` were not there any more.

    `end` is the last position that could be read at that moment.
    """

    request: int
    epoch: int
    missing: int
    end: int
    items: list[BatchItem]


_request = BodyDecoder[DurableRequest](DurableRequest, "a request about a durable subscription")
_answer = BodyDecoder[DurableAnswer](DurableAnswer, "an answer about durable subscriptions")
_batch = BodyDecoder[DurableBatch](DurableBatch, "a batch of a durable subscription")


def encode_durable_request(request: DurableRequest) -> bytes:
    """Return the frame of a request."""
    return encode_frame(FrameKind.DURABLE, encode(request))


def decode_durable_request(body: bytes | memoryview) -> DurableRequest:
    """Return what a client asks for, or raise ProtocolError."""
    return _request.decode(body)


def encode_durable_answer(answer: DurableAnswer) -> bytes:
    """Return the frame of an answer."""
    return encode_frame(FrameKind.DURABLES, encode(answer))


def encode_batch(  # noqa: PLR0913, PLR0917 - what a frame says
    request: int,
    epoch: int,
    missing: int,
    end: int,
    positions: Sequence[int],
    bodies: Sequence[bytes],
) -> bytes:
    """Return the frame of what was read: encoded notifications at their positions."""
    head = [b"\x95", *map(encode, (request, epoch, missing, end))]
    head += [b"\xdd", len(positions).to_bytes(4, "big")]  # msgpack's "array 32"
    # An item is msgpack's "array of 2" with a "uint 64": as many bytes for each, made in one go.
    places = map(_ITEM.pack, repeat(b"\x92\xcf"), positions)
    items = chain.from_iterable(zip(places, bodies, strict=True))
    return encode_frame(FrameKind.BATCH, b"".join([*head, *items]))


def decode_durable_answer(body: bytes | memoryview) -> DurableAnswer:
    """Return what a broker says of durable subscriptions, or raise ProtocolError."""
    return _answer.decode(body)


def decode_batch(body: bytes | memoryview) -> DurableBatch:
    """Return what was read of a durable subscription, or raise ProtocolError."""
    return _batch.decode(body)
