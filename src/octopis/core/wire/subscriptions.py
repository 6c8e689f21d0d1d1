"""What brokers tell each other about subscriptions. A filter crosses as its text in SQL.

Tables that are larger than a frame are cut into parts, which the other side puts together.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import (
    Flooded,
    HostState,
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

PART_BYTES = 256 * 1024
"""A part of a table is at least so long, unless it is the last; so no part fills a frame."""


class _Subscription(msgspec.Struct, frozen=True, array_like=True):
    id: str
    filter: str
    epoch: int


class _Subscribe(msgspec.Struct, frozen=True, array_like=True, tag=1):
    subscription: _Subscription
    cbv_s: bytes
    host: BrokerId


class _Unsubscribe(msgspec.Struct, frozen=True, array_like=True, tag=2):
    id: str


class _Flooded(msgspec.Struct, frozen=True, array_like=True, tag=3):
    host: BrokerId
    generation: int
    sequence: int
    added: _Subscription | None
    removed: str | None


class _Hello(msgspec.Struct, frozen=True, array_like=True, tag=4):
    known: list[tuple[BrokerId, int, int, int]]


class _Refresh(msgspec.Struct, frozen=True, array_like=True, tag=5):
    host: BrokerId
    generation: int


class _Mark(msgspec.Struct, frozen=True, array_like=True, tag=6):
    host: BrokerId
    number: int
    generation: int
    sequence: int


class _SnapshotPart(msgspec.Struct, frozen=True, array_like=True):
    last: bool
    subscriptions: list[_Subscribe]


class _HostStatePart(msgspec.Struct, frozen=True, array_like=True):
    last: bool
    host: BrokerId
    generation: int
    sequence: int
    subscriptions: list[_Subscription]


_Item = TypeVar("_Item")
_Change = _Subscribe | _Unsubscribe | _Flooded | _Hello | _Refresh | _Mark

_changes = BodyDecoder[list[_Change]](list[_Change], "a change of subscriptions")
_snapshot_part = BodyDecoder[_SnapshotPart](_SnapshotPart, "a part of a snapshot")
_host_state_part = BodyDecoder[_HostStatePart](_HostStatePart, "a part of a host's state")


def encode_bits(bits: int) -> bytes:
    """Return a set of clusters or brokers, as bits of any number, as bytes."""
    return int(bits).to_bytes((bits.bit_length() + 7) // 8, "little")


def decode_bits(data: bytes) -> int:
    """Return the bits that were encoded."""
    return int.from_bytes(data, "little")


def encode_change(message: Message) -> bytes:
    """Return a Subscribe, Unsubscribe, Flooded, ... or Mark as an item of CHANGES."""
    match message:
        case Subscribe():
            return encode(_subscribe_out(message))
        case Unsubscribe():
            return encode(_Unsubscribe(message.id))
        case Flooded():
            added = None if message.added is None else _out(message.added)
            return encode(
                _Flooded(message.host, message.generation, message.sequence, added, message.removed)
            )
        case HostVersions():
            return encode(_Hello([(host, *state) for host, state in message.known.items()]))
        case Refresh():
            return encode(_Refresh(message.host, message.generation))
        case Mark():
            return encode(_Mark(message.host, message.number, *message.version))
    raise AssertionError(f"{type(message).__name__} is no change of subscriptions")


def encode_snapshot(message: TableSnapshot) -> list[bytes]:
    """Return the frames of a TableSnapshot."""
    parts = _parts([_subscribe_out(each) for each in message.subscriptions])
    return [
        encode_frame(FrameKind.SNAPSHOT, encode(_SnapshotPart(last, part))) for last, part in parts
    ]


def encode_host_state(message: HostState) -> list[bytes]:
    """Return the frames of a HostState."""
    head = message.host, message.generation, message.sequence
    parts = _parts([_out(each) for each in message.subscriptions])
    return [
        encode_frame(FrameKind.HOST_STATE, encode(_HostStatePart(last, *head, part)))
        for last, part in parts
    ]


def decode_changes(body: bytes | memoryview) -> list[Message]:
    """Return the messages of CHANGES, or raise ProtocolError."""
    return [_change_in(each) for each in _changes.decode(body)]


class Assembler:
    """Puts the parts of a table together. Parts of one table follow each other on a link."""

    def __init__(self) -> None:
        self._subscribes: list[Subscribe] = []
        self._subscriptions: list[Subscription] = []

    def snapshot(self, body: bytes | memoryview) -> TableSnapshot | None:
        """Take a part in, and return the TableSnapshot when it was the last."""
        part = _snapshot_part.decode(body)
        self._subscribes += map(_subscribe_in, part.subscriptions)
        if not part.last:
            return None
        whole, self._subscribes = tuple(self._subscribes), []
        return TableSnapshot(whole)

    def host_state(self, body: bytes | memoryview) -> HostState | None:
        """Take a part in, and return the HostState when it was the last."""
        part = _host_state_part.decode(body)
        self._subscriptions += map(_in, part.subscriptions)
        if not part.last:
            return None
        whole, self._subscriptions = tuple(self._subscriptions), []
        return HostState(part.host, part.generation, part.sequence, whole)


def _parts(items: Sequence[_Item]) -> Iterator[tuple[bool, list[_Item]]]:
    """Yield the items in parts of about PART_BYTES, each with whether it is the last."""
    part: list[_Item] = []
    size = 0
    for item in items:
        if size >= PART_BYTES:
            yield False, part
            part, size = [], 0
        part.append(item)
        size += len(encode(item))
    yield True, part


def _out(subscription: Subscription) -> _Subscription:
    return _Subscription(subscription.id, str(subscription.filter), subscription.epoch)


def _in(subscription: _Subscription) -> Subscription:
    try:
        filter_ = parse_filter(subscription.filter)
    except InvalidFilter as failure:
        raise ProtocolError(
            f"the filter of subscription {subscription.id!r} cannot be read: {failure}"
        ) from failure
    return Subscription(subscription.id, filter_, subscription.epoch)


def _subscribe_out(message: Subscribe) -> _Subscribe:
    return _Subscribe(_out(message.subscription), encode_bits(message.cbv_s), message.host)


def _subscribe_in(message: _Subscribe) -> Subscribe:
    return Subscribe(
        _in(message.subscription), ClusterBitVector(decode_bits(message.cbv_s)), message.host
    )


def _change_in(change: _Change) -> Message:
    match change:
        case _Subscribe():
            return _subscribe_in(change)
        case _Unsubscribe():
            return Unsubscribe(change.id)
        case _Flooded():
            added = None if change.added is None else _in(change.added)
            return Flooded(change.host, change.generation, change.sequence, added, change.removed)
        case _Hello():
            return HostVersions({host: (gen, seq, crc) for host, gen, seq, crc in change.known})
        case _Refresh():
            return Refresh(change.host, change.generation)
        case _Mark():
            return Mark(change.host, change.number, (change.generation, change.sequence))
