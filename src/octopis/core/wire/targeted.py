"""Notifications of target routing on the wire: where a copy has to go, then the publisher's bytes.

An item is an array of three:

    head           tried << 1 | is_list: one small integer; as bytes where it has more than 63 bits
    targets        a bit map over the brokers, without the zero bytes at its end; or, where that is
                   shorter (is_list), their numbers of two bytes each; both little-endian
    notification   as its publisher has encoded it

On channels (octopis.core.delivery) it is an array of four: before the notification stands an array
of the host and life that have numbered it, its number, and for each target the distance to the
number before it that was for the same.

The first two are at most two bytes for each target plus four, and at most a bit map plus four, as
long as the head is one byte (up to 3 clusters always, else until a copy goes around) and an overlay
has at most 2,040 brokers: beyond that, MessagePack says the length of long bytes in one more.

Who is no target reads who has published, which number it has and when it was meant to be published,
as traces want that, and leaves the content alone.
"""

from functools import lru_cache
from struct import pack, unpack
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.msgpack import Decoder

from octopis.core.model.notification import UNREADABLE
from octopis.core.routing.messages import NO_CLUSTERS, NotificationMessage
from octopis.core.wire.frames import BodyDecoder, FrameKind, encode
from octopis.core.wire.published import Published, PublishedBody, make_published
from octopis.errors import ProtocolError

_Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
_ARRAY_OF_3, _ARRAY_OF_4 = b"\x93", b"\x94"
_LIST_NUMBERS = 1 << 16
_HEAD_BITS = 63
_REMEMBERED = 4_096
"""Headers that are known by heart: most notifications go where others have gone before."""


class _Item(Struct, frozen=True, array_like=True, gc=False):
    head: int | bytes
    targets: bytes
    notification: Raw


class _Numbers(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    origin: _Count
    number: _Count
    distances: tuple[_Count, ...]


class _NumberedItem(Struct, frozen=True, array_like=True, gc=False):
    head: int | bytes
    targets: bytes
    numbers: _Numbers
    notification: Raw


class _OnTheWay(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    attributes: Raw
    payload: Raw
    publisher: str
    sequence: int
    intended_ns: int


_items = BodyDecoder[list[_Item]](list[_Item], "a batch of notifications")
_numbered_items = BodyDecoder[list[_NumberedItem]](list[_NumberedItem], "a batch of notifications")
_decode_content = Decoder(PublishedBody).decode
_decode_on_the_way = Decoder(_OnTheWay).decode


def encode_targeted(routed: NotificationMessage) -> tuple[FrameKind, bytes]:
    """Return a notification as an item of TARGETED."""
    notification = routed.notification
    assert isinstance(notification, Published), "only what came over the wire is sent on"
    header = _ARRAY_OF_3 + _header(routed.targets, routed.tried)
    return FrameKind.TARGETED, header + notification.encoded


def encode_numbered(routed: NotificationMessage) -> tuple[FrameKind, bytes]:
    """Return a notification on a channel as an item of NUMBERED."""
    notification = routed.notification
    assert isinstance(notification, Published), "only what came over the wire is sent on"
    header = _ARRAY_OF_4 + _header(routed.targets, routed.tried)
    numbers = encode((routed.origin, routed.number, routed.distances))
    return FrameKind.NUMBERED, header + numbers + notification.encoded


@lru_cache(_REMEMBERED)
def _header(targets: int, tried: int) -> bytes:
    size = (targets.bit_length() + 7) // 8
    count = targets.bit_count()
    is_list = 2 * count < size and targets.bit_length() <= _LIST_NUMBERS
    where = pack(f"<{count}H", *_numbers(targets)) if is_list else targets.to_bytes(size, "little")
    head = tried << 1 | is_list
    if head.bit_length() <= _HEAD_BITS:
        return encode(head) + encode(where)
    return encode(head.to_bytes((head.bit_length() + 7) // 8, "little")) + encode(where)


def _numbers(bits: int) -> list[int]:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found


class TargetedDecoder:
    """Reads the notifications that come to one broker, in an overlay of so many brokers.

    `own_bit` is the broker's own among the targets; `is_numbered`: they come on channels.
    """

    def __init__(
        self, own_bit: int, brokers: int, clusters: int, *, is_numbered: bool = False
    ) -> None:
        self.kind = FrameKind.NUMBERED if is_numbered else FrameKind.TARGETED
        """The frames that they come in."""

        self.encode = encode_numbered if is_numbered else encode_targeted
        self._is_numbered = is_numbered
        self.unreadable = 0
        """Notifications that could not be read, and were left out. Whoever passes them on need not
        have read them, and is not to blame."""

        self._own_bit = own_bit
        self._brokers = brokers
        self._clusters = clusters
        self._targets_of = lru_cache(_REMEMBERED)(self._read_header)

    def decode(self, body: bytes | memoryview) -> list[NotificationMessage]:
        """Return the notifications of a frame, or raise ProtocolError."""
        if self._is_numbered:
            return self._decode_numbered(body)
        found = []
        own_bit, targets_of = self._own_bit, self._targets_of
        for item in _items.decode(body):
            targets, tried = targets_of(item.head, item.targets)
            notification = self._read(item.notification, is_target=targets & own_bit)
            if notification is not None:
                found.append(NotificationMessage(notification, NO_CLUSTERS, targets, tried))
        return found

    def _decode_numbered(self, body: bytes | memoryview) -> list[NotificationMessage]:
        found = []
        own_bit, targets_of = self._own_bit, self._targets_of
        for item in _numbered_items.decode(body):
            targets, tried = targets_of(item.head, item.targets)
            numbers = item.numbers
            if len(numbers.distances) != targets.bit_count():
                raise ProtocolError("a notification has not one number for each target")
            notification = self._read(item.notification, is_target=targets & own_bit)
            if notification is None:  # its number counts all the same
                notification = Published(UNREADABLE, encoded=bytes(item.notification))
            found.append(
                NotificationMessage(
                    notification,
                    NO_CLUSTERS,
                    targets,
                    tried,
                    numbers.origin,
                    numbers.number,
                    numbers.distances,
                )
            )
        return found

    def _read(self, body: Raw, *, is_target: int) -> Published | None:
        """Return a notification, or None where it makes no sense."""
        encoded = bytes(body)
        try:
            if is_target:
                return make_published(_decode_content(encoded), encoded)
            return _passing(encoded)
        except (msgspec.DecodeError, ValueError, RecursionError):
            self.unreadable += 1
            return None

    def decode_items(self, items: list[bytes]) -> list[NotificationMessage]:
        """Return notifications that were encoded here, one by one."""
        return self.decode(b"\xdd" + len(items).to_bytes(4, "big") + b"".join(items))

    def _read_header(self, head: int | bytes, where: bytes) -> tuple[int, int]:
        """Return targets and tried clusters, or raise ProtocolError where they cannot be."""
        bits = head if isinstance(head, int) else int.from_bytes(head, "little")
        tried = bits >> 1
        if bits < 0 or tried >> 2 * self._clusters:
            raise ProtocolError("a notification has tried clusters that are not there")
        if len(where) > (self._brokers + 7) // 8:  # what is longer, nobody has to read
            raise ProtocolError("the targets of a notification are longer than a bit map of all")
        if bits & 1:
            if len(where) % 2:
                raise ProtocolError("a list of targets ends within a number")
            targets = 0
            for number in unpack(f"<{len(where) // 2}H", where):
                targets |= 1 << number
        else:
            targets = int.from_bytes(where, "little")
        if targets >> self._brokers:
            raise ProtocolError("a notification is for brokers that are not there")
        return targets, tried


def _passing(encoded: bytes) -> Published:
    """Return a notification for others: its content is not looked at, and empty here."""
    seen = _decode_on_the_way(encoded)
    return Published({}, b"", seen.publisher, seen.sequence, seen.intended_ns, encoded)
