"""How records lie in a segment, and how they are found again, also behind damage.

    checksum u32 | length u32 | unsynced u32 | position u64 | body

The checksum is over all that follows it, and begins with the folder's salt, which nobody outside
knows: bytes that somebody published can never pass for a record. Positions rise by 1 within a
segment; a recycled segment holds leftovers, but their positions are lower.

`unsynced` says how many records right before this one were not known to be synced when it was
written. So a record proves that all below `position - unsynced` was on disk: where one of those is
not there, the disk has lost it. What nothing proves may be the torn end of a group that was being
written when the power went, whose sectors reach the disk in any order.
"""

import struct
from array import array
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from msgspec import Struct

_HEADER = struct.Struct("<IIIQ")
_CHECKSUM = struct.Struct("<I")
_CHECKED = struct.Struct("<IIQ")
HEADER_BYTES = _HEADER.size
BODY_BYTES_MAX = 2**30
_POSITION_AT = HEADER_BYTES - 8
_CHUNK_BYTES = 4 * 2**20


class Hole(Struct, frozen=True):
    """Bytes that are no record, and the positions [first, until) that should have been there."""

    offset: int
    length: int
    first: int
    until: int


class Scan(Struct):
    """What a segment holds. A lost record has the offset of the hole where it was."""

    first: int
    offsets: "array[int]"
    holes: list[Hole]
    used: int
    proven: int
    """All positions below were synced once: records that came later say so."""

    @property
    def until(self) -> int:
        """The position behind the last one."""
        return self.first + len(self.offsets)


def encode(position: int, bodies: Sequence[bytes], unsynced: int, salt: int) -> list[bytes]:
    """Return the parts of records whose positions rise from `position`."""
    parts: list[bytes] = []
    checked, checksum = _CHECKED.pack, _CHECKSUM.pack
    for number, body in enumerate(bodies):
        rest = checked(len(body), unsynced + number, position + number)
        parts += (checksum(crc32(body, crc32(rest, salt))), rest, body)
    return parts


def scan(data: bytes, first: int, until: int | None, salt: int) -> Scan:
    """Find all records of a segment from its first position on; `until` where the end is known."""
    found = Scan(first, array("I"), [], 0, first)
    highest = first + len(data) // HEADER_BYTES if until is None else until - 1
    _follow(data, found, salt)
    while until is None or found.until < until:
        offset, position = found.used, found.until
        resumed = _find(data, offset, (position, highest), salt)
        if resumed is None:
            break
        found.used, following = resumed
        found.holes.append(Hole(offset, found.used - offset, position, following))
        found.offsets.extend([offset] * (following - position))
        _follow(data, found, salt)
    return found


def _follow(data: bytes, found: Scan, salt: int) -> None:
    """Take records as long as one comes right behind the other."""
    view, unpack, take = memoryview(data), _HEADER.unpack_from, found.offsets.append
    offset, position, last = found.used, found.until, len(data) - HEADER_BYTES
    proven = found.proven
    while offset <= last:
        checksum, length, unsynced, at = unpack(view, offset)
        end = offset + HEADER_BYTES + length
        if at != position or crc32(view[offset + 4 : end], salt) != checksum or end > len(data):
            break
        take(offset)
        proven = position - unsynced
        position += 1
        offset = end
    found.used, found.proven = offset, proven


def _find(data: bytes, start: int, between: tuple[int, int], salt: int) -> tuple[int, int] | None:
    """Return offset and position of the next whole record with one of these positions."""
    lowest, highest = between
    last = len(data) - HEADER_BYTES
    for chunk in range(start, last + 1, _CHUNK_BYTES):
        count = min(_CHUNK_BYTES, last + 1 - chunk)
        positions = np.ndarray((count,), "<u8", data, chunk + _POSITION_AT, (1,))
        for near in np.flatnonzero((positions >= lowest) & (positions <= highest)):
            offset = chunk + int(near)
            position = int(positions[near])
            if body_at(data, offset, position, salt) is not None:
                return offset, position
    return None


def body_at(data: bytes | memoryview, offset: int, position: int, salt: int) -> bytes | None:
    """Return the body of a record that lies at an offset; None where it is damaged."""
    if offset + HEADER_BYTES > len(data):
        return None
    checksum, length, _, at = _HEADER.unpack_from(data, offset)
    end = offset + HEADER_BYTES + length
    whole = at == position and end <= len(data)
    if not whole or crc32(memoryview(data)[offset + 4 : end], salt) != checksum:
        return None
    return bytes(data[offset + HEADER_BYTES : end])


def bodies_in(data: bytes, position: int, count: int, salt: int) -> list[bytes] | None:
    """Return the bodies of records that lie one behind the other; None where one is damaged."""
    view, unpack, bodies = memoryview(data), _HEADER.unpack_from, []
    offset = 0
    for expected in range(position, position + count):
        if offset + HEADER_BYTES > len(data):
            return None
        checksum, length, _, at = unpack(view, offset)
        end = offset + HEADER_BYTES + length
        if at != expected or crc32(view[offset + 4 : end], salt) != checksum:
            return None
        bodies.append(data[offset + HEADER_BYTES : end])
        offset = end
    return bodies if offset <= len(data) else None
