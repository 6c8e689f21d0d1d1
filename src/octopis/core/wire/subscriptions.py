"""What brokers tell each other about subscriptions. A filter crosses as its text in SQL.

Tables that are larger than a frame are cut into parts, which the other side puts together.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import (
    Flooded,
    HeardVersions,
    HostChange,
    HostState,
    HostTable,
    HostVersions,
    Mark,
    Message,
    Refresh,
    Subscribe,
    Subscription,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.wire.frames import BodyDecoder, FrameKind, encode, encode_frame
from octopis.errors import InvalidFilter, ProtocolError

PART_MAX = 4
PART_LENGTH_MAX = 512
"""So many subscriptions at most are told in one frame, and several only where their filters, or
encoded changes, have at most so many characters in all: nobody else waits while they are read."""

_TAKEN_MAX = 16 * PART_MAX


_Number = Annotated[int, Meta(ge=0, le=2**62)]
"""What counts moves, generations and changes: room for all that can happen, and to add one."""


TABLE_MAX = 1_000_000
"""How many subscriptions a neighbour may tell of before it comes to an end."""


class _Subscription(msgspec.Struct, frozen=True, array_like=True):
    id: Annotated[str, Meta(min_length=1, max_length=255)]
    filter: str
    epoch: _Number
    owner: Annotated[str, Meta(max_length=64)] = ""
    durable: bool = False


class _Subscribe(msgspec.Struct, frozen=True, array_like=True, tag=1):
    subscription: _Subscription
    cbv_s: bytes
    host: BrokerId


class _Unsubscribe(msgspec.Struct, frozen=True, array_like=True, tag=2):
    id: str


class _Flooded(msgspec.Struct, frozen=True, array_like=True, tag=3):
    host: BrokerId
    generation: _Number
    sequence: _Number
    added: _Subscription | None
    removed: str | None


class _Hello(msgspec.Struct, frozen=True, array_like=True, tag=4):
    known: list[tuple[BrokerId, _Number, _Number, _Number]]


class _Refresh(msgspec.Struct, frozen=True, array_like=True, tag=5):
    host: BrokerId
    generation: _Number


class _Mark(msgspec.Struct, frozen=True, array_like=True, tag=6):
    host: BrokerId
    number: _Number
    generation: _Number
    sequence: _Number


class _HostChange(msgspec.Struct, frozen=True, array_like=True, tag=7):
    host: BrokerId
    generation: _Number
    after: _Number
    sequence: _Number
    added: Annotated[list[_Subscription], Meta(max_length=_TAKEN_MAX)]
    removed: Annotated[list[str], Meta(max_length=_TAKEN_MAX)]
    targets: bytes
    tried: bytes


class _HeardVersions(msgspec.Struct, frozen=True, array_like=True, tag=8):
    known: list[tuple[BrokerId, _Number, _Number]]
    is_complete: bool


class _SnapshotPart(msgspec.Struct, frozen=True, array_like=True):
    last: bool
    subscriptions: Annotated[list[_Subscribe], Meta(max_length=_TAKEN_MAX)]


class _HostStatePart(msgspec.Struct, frozen=True, array_like=True):
    last: bool
    host: BrokerId
    generation: _Number
    sequence: _Number
    subscriptions: Annotated[list[_Subscription], Meta(max_length=_TAKEN_MAX)]


_Item = TypeVar("_Item")
_Change = (
    _Subscribe | _Unsubscribe | _Flooded | _Hello | _Refresh | _Mark | _HostChange | _HeardVersions
)

_changes = BodyDecoder[list[_Change]](
    Annotated[list[_Change], Meta(max_length=_TAKEN_MAX)], "a change of subscriptions"
)
_snapshot_part = BodyDecoder[_SnapshotPart](_SnapshotPart, "a part of a snapshot")
_host_state_part = BodyDecoder[_HostStatePart](_HostStatePart, "a part of a host's state")
_host_table_part = BodyDecoder[_HostStatePart](_HostStatePart, "a part of a host's table")


def encode_bits(bits: int) -> bytes:
    """Return a set of clusters or brokers, as bits of any number, as bytes."""
    return int(bits).to_bytes((bits.bit_length() + 7) // 8, "little")


def decode_bits(data: bytes) -> int:
    """Return the bits that were encoded."""
    return int.from_bytes(data, "little")


def encode_change(message: Message) -> bytes:
    """Return a Subscribe, Unsubscribe, Flooded, ... or HostChange as an item of CHANGES."""
    assert type(message) in _OUT, f"{type(message).__name__} is no change of subscriptions"
    return encode(_OUT[type(message)](message))


def snapshot_parts(message: TableSnapshot) -> list[TableSnapshot]:
    """Return a snapshot in parts that are short enough for a frame."""
    parts = in_parts(message.subscriptions, lambda each: len(str(each.subscription.filter)))
    return [TableSnapshot(tuple(part), last) for last, part in parts]


def encode_snapshot(message: TableSnapshot) -> bytes:
    """Return the frame of a part of a TableSnapshot."""
    part = [_subscribe_out(each) for each in message.subscriptions]
    return encode_frame(FrameKind.SNAPSHOT, encode(_SnapshotPart(message.last, part)))


def encode_host_state(message: HostState) -> list[bytes]:
    """Return the frames of a HostState."""
    head = message.host, message.generation, message.sequence
    parts = in_parts([_out(each) for each in message.subscriptions], lambda each: len(each.filter))
    return [
        encode_frame(FrameKind.HOST_STATE, encode(_HostStatePart(last, *head, part)))
        for last, part in parts
    ]


def host_table_parts(message: HostTable) -> list[HostTable]:
    """Return a host's table in parts that are short enough for a frame."""
    head = message.host, message.generation, message.sequence
    parts = in_parts(message.subscriptions, lambda each: len(str(each.filter)))
    return [HostTable(*head, tuple(part), last) for last, part in parts]


def encode_host_table(message: HostTable) -> bytes:
    """Return the frame of a part of a HostTable."""
    head = message.host, message.generation, message.sequence
    part = _HostStatePart(message.last, *head, [_out(each) for each in message.subscriptions])
    return encode_frame(FrameKind.HOST_TABLE, encode(part))


def decode_host_table(body: bytes | memoryview) -> HostTable:
    """Return a part of a HostTable, or raise ProtocolError."""
    part = _host_table_part.decode(body)
    subscriptions = tuple(map(_in, part.subscriptions))
    return HostTable(part.host, part.generation, part.sequence, subscriptions, part.last)


def decode_changes(body: bytes | memoryview) -> list[Message]:
    """Return the messages of CHANGES, or raise ProtocolError."""
    return [_IN[type(each)](each) for each in _changes.decode(body)]


def decode_snapshot(body: bytes | memoryview) -> TableSnapshot:
    """Return a part of a TableSnapshot, or raise ProtocolError."""
    part = _snapshot_part.decode(body)
    return TableSnapshot(tuple(map(_subscribe_in, part.subscriptions)), part.last)


class Assembler:
    """Puts the parts of a host's state together. They follow each other on a link."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []

    def host_state(self, body: bytes | memoryview) -> HostState | None:
        """Take a part in, and return the HostState when it was the last."""
        part = _host_state_part.decode(body)
        if len(self._subscriptions) + len(part.subscriptions) > TABLE_MAX:
            raise ProtocolError(f"a host has at most {TABLE_MAX:,} subscriptions")
        self._subscriptions += map(_in, part.subscriptions)
        if not part.last:
            return None
        whole, self._subscriptions = tuple(self._subscriptions), []
        return HostState(part.host, part.generation, part.sequence, whole)


def in_parts(
    items: Sequence[_Item], length: Callable[[_Item], int]
) -> Iterator[tuple[bool, list[_Item]]]:
    """Yield the items in parts for a frame each, with whether it is the last; at least one."""
    part: list[_Item] = []
    total = 0
    for item in items:
        total += (more := length(item))
        if part and (len(part) == PART_MAX or total > PART_LENGTH_MAX):
            yield False, part
            part, total = [], more
        part.append(item)
    yield True, part


def _out(subscription: Subscription) -> _Subscription:
    text, owner = str(subscription.filter), subscription.owner
    return _Subscription(subscription.id, text, subscription.epoch, owner, subscription.durable)


def _in(subscription: _Subscription) -> Subscription:
    try:
        filter_ = parse_filter(subscription.filter)
    except InvalidFilter as failure:
        raise ProtocolError(
            f"the filter of subscription {subscription.id!r} cannot be read: {failure}"
        ) from failure
    epoch, owner = subscription.epoch, subscription.owner
    return Subscription(subscription.id, filter_, epoch, owner, subscription.durable)


def _subscribe_out(message: Subscribe) -> _Subscribe:
    return _Subscribe(_out(message.subscription), encode_bits(message.cbv_s), message.host)


def _subscribe_in(message: _Subscribe) -> Subscribe:
    return Subscribe(
        _in(message.subscription), ClusterBitVector(decode_bits(message.cbv_s)), message.host
    )


def _flooded_out(message: Flooded) -> _Flooded:
    added = None if message.added is None else _out(message.added)
    return _Flooded(message.host, message.generation, message.sequence, added, message.removed)


def _flooded_in(change: _Flooded) -> Flooded:
    added = None if change.added is None else _in(change.added)
    return Flooded(change.host, change.generation, change.sequence, added, change.removed)


def _host_change_out(message: HostChange) -> _HostChange:
    return _HostChange(
        message.host,
        message.generation,
        message.after,
        message.sequence,
        [_out(each) for each in message.added],
        list(message.removed),
        encode_bits(message.targets),
        encode_bits(message.tried),
    )


def _host_change_in(change: _HostChange) -> HostChange:
    return HostChange(
        change.host,
        change.generation,
        change.after,
        change.sequence,
        tuple(map(_in, change.added)),
        tuple(change.removed),
        decode_bits(change.targets),
        decode_bits(change.tried),
    )


def _heard_out(message: HeardVersions) -> _HeardVersions:
    known = [(host, *version) for host, version in message.known.items()]
    return _HeardVersions(known, message.is_complete)


def _heard_in(change: _HeardVersions) -> HeardVersions:
    known = {host: (generation, sequence) for host, generation, sequence in change.known}
    return HeardVersions(known, change.is_complete)


_OUT: dict[type, Callable[[Any], _Change]] = {
    Subscribe: _subscribe_out,
    Unsubscribe: lambda message: _Unsubscribe(message.id),
    Flooded: _flooded_out,
    HostVersions: lambda message: _Hello([(host, *was) for host, was in message.known.items()]),
    Refresh: lambda message: _Refresh(message.host, message.generation),
    Mark: lambda message: _Mark(message.host, message.number, *message.version),
    HostChange: _host_change_out,
    HeardVersions: _heard_out,
}
_IN: dict[type, Callable[[Any], Message]] = {
    _Subscribe: _subscribe_in,
    _Unsubscribe: lambda change: Unsubscribe(change.id),
    _Flooded: _flooded_in,
    _Hello: lambda change: HostVersions({host: (*was,) for host, *was in change.known}),
    _Refresh: lambda change: Refresh(change.host, change.generation),
    _Mark: lambda change: Mark(change.host, change.number, (change.generation, change.sequence)),
    _HostChange: _host_change_in,
    _HeardVersions: _heard_in,
}
