"""Where each record is, and which of them are still needed: all of it in memory."""

from array import array
from bisect import bisect_right
from collections.abc import Container, Iterator

from octopis.store.records import HEADER_BYTES

_LIVE, _FREE, _LOST = 0, 1, 2


class Segment:
    """The records of one segment file, whose positions rise by 1 from `first`."""

    __slots__ = ("first", "is_full", "live", "live_bytes", "marks", "offsets", "size", "used")

    def __init__(self, first: int, size: int) -> None:
        self.first = first
        self.size = size
        self.used = 0
        self.offsets: array[int] = array("I")
        self.marks = bytearray()
        self.live = self.live_bytes = 0
        self.is_full = False
        """Nothing comes behind what it holds."""

    @property
    def until(self) -> int:
        """The position behind the last one."""
        return self.first + len(self.offsets)

    def add(self, length: int) -> int:
        """Note a record behind all others, and return its offset."""
        offset = self.used
        self.offsets.append(offset)
        self.marks.append(_LIVE)
        self.used = offset + length
        self.live += 1
        self.live_bytes += length
        return offset

    def recovered(self, offsets: "array[int]", used: int) -> None:
        """Take all records that were found on disk; none of them is free or lost."""
        self.offsets, self.used = offsets, used
        self.marks = bytearray(len(offsets))
        self.live = len(offsets)
        self.live_bytes = used

    def lose(self, first: int, until: int, length: int) -> None:
        """Note that the records of these positions are damaged, or not there: `length` bytes."""
        missing = until - self.until
        if missing > 0:
            self.offsets.extend([self.used] * missing)
            self.marks.extend(bytes(missing))
            self.live += missing
        count = until - first
        self.marks[first - self.first : until - self.first] = bytes([_LOST]) * count
        self.live -= count
        self.live_bytes -= length

    def free(self, position: int) -> bool:
        """Note that nobody needs a record any more; False where that is known."""
        number = position - self.first
        if self.marks[number] != _LIVE:
            return False
        self.marks[number] = _FREE
        self.live -= 1
        self.live_bytes -= self.end(number) - self.offsets[number]
        return True

    def end(self, number: int) -> int:
        """Return the offset behind the record with this number in the segment."""
        return self.offsets[number + 1] if number + 1 < len(self.offsets) else self.used

    def is_lost(self, position: int) -> bool:
        """Tell whether a record is damaged, or not there."""
        return self.marks[position - self.first] == _LOST

    def live_positions(self) -> Iterator[int]:
        """Yield the positions that somebody needs."""
        at = self.marks.find(_LIVE)
        while at >= 0:
            yield self.first + at
            at = self.marks.find(_LIVE, at + 1)


class Index:
    """All segments in the order of their positions; the last one is written."""

    def __init__(self, segment_bytes: int) -> None:
        self._segment_bytes = segment_bytes
        self._segments: list[Segment] = []
        self._firsts: list[int] = []
        self.next = 1
        """The position of the next record: higher than any that was ever used."""
        self.records = self.live_bytes = 0
        self._full_bytes = 0

    @property
    def bytes(self) -> int:
        """What is in use on disk: full segments, and what is written of the last one."""
        return self._full_bytes + (self._segments[-1].used if self._segments else 0)

    @property
    def last(self) -> Segment | None:
        """The segment that is written; None where there is none."""
        return self._segments[-1] if self._segments else None

    def add_segment(self, segment: Segment) -> None:
        """Add a segment behind all others."""
        if self._segments:
            self._segments[-1].is_full = True
            self._full_bytes += self._segments[-1].size
        self._segments.append(segment)
        self._firsts.append(segment.first)
        self.records += segment.live
        self.live_bytes += segment.live_bytes
        self.next = max(self.next, segment.until)

    def append(self, body_bytes: int) -> tuple[Segment, int]:
        """Find a place for the next record: its segment and its offset."""
        length = HEADER_BYTES + body_bytes
        segment = self._segments[-1] if self._segments else None
        if segment is None or segment.is_full or segment.used + length > segment.size:
            segment = Segment(self.next, max(self._segment_bytes, length))
            self.add_segment(segment)
        self.next += 1
        self.records += 1
        self.live_bytes += length
        return segment, segment.add(length)

    def find(self, position: int) -> Segment:
        """Return the segment of a position; who asks for one that was removed is at fault."""
        at = bisect_right(self._firsts, position) - 1
        assert at >= 0, f"position {position} was freed and removed"
        segment = self._segments[at]
        assert position < segment.until, f"position {position} was removed, or never used"
        return segment

    def free(self, position: int) -> None:
        """Note that nobody needs a record any more."""
        segment = self.find(position)
        before = segment.live_bytes
        if segment.free(position):
            self.records -= 1
            self.live_bytes -= before - segment.live_bytes

    def empty(self, below: int) -> list[Segment]:
        """Return the segments that can go: full, all below this position, nothing in them live."""
        return [each for each in self._segments[:-1] if each.live == 0 and each.until <= below]

    def remove(self, gone: list[Segment]) -> None:
        """Forget segments."""
        firsts = {each.first for each in gone}
        self._segments = [each for each in self._segments if each.first not in firsts]
        self._firsts = [each.first for each in self._segments]
        self._full_bytes -= sum(each.size for each in gone)

    def sparse(self, share: float, besides: Container[int] = ()) -> list[int]:
        """Return what is live in the oldest full segment of which less than `share` is live.

        What stands in `besides` is left out, and segments that hold nothing else.
        """
        for each in self._segments[:-1]:
            if 0 < each.live_bytes < share * each.size:
                found = [position for position in each.live_positions() if position not in besides]
                if found:
                    return found
        return []
