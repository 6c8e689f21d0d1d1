"""Where in the log the notifications of one durable subscription are, by their positions there.

Most follow each other without a gap, so they stand in a row, and only where a row begins is noted:

    positions   1 2 3 4             9 10                  5,000,007
    rows        begin at 1, place 0; begin at 9, place 4; begin at 5,000,007, place 6
    places      0 1 2 3             4  5                  6

So what is not there takes no room, however many positions it is: whoever brings a durable
subscription along says how many it has.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise

import numpy as np

_TRIM = 4_096
NOWHERE = 0
"""Where a notification is that is damaged, or was never kept: the log has no such place."""


class Positions:
    """The positions from `first` up to the one before `next`; not all of them have a place."""

    def __init__(self, first: int) -> None:
        self.first = self.next = first
        self.bytes = 0
        """How many those have together that have a place."""

        self._where = array("Q")
        self._sizes = array("I")
        self._start = 0  # places before it are released
        self._begins = array("Q")
        self._places = array("Q")
        self._found = array("Q"), array("Q"), array("I")

    @property
    def kept(self) -> int:
        """How many have a place."""
        return len(self._where) - self._start

    # What comes

    def add(self, where: int, size: int) -> None:
        """Let the next position have a place in the log."""
        place = len(self._where)
        if not self._begins or self._begins[-1] + place - self._places[-1] != self.next:
            self._begins.append(self.next)
            self._places.append(place)
        self._where.append(where)
        self._sizes.append(size)
        self.bytes += size
        self.next += 1

    def lack_up_to(self, position: int) -> None:
        """Know that positions up to one have been, whether they have a place or not."""
        self.next = max(self.next, position + 1)

    def begin_at(self, position: int) -> None:
        """Begin at another position: nothing before it is wanted any more."""
        assert not self.kept, "what has a place is released first"
        self.first = self.next = position

    # What is recovered

    def found(self, position: int, where: int, size: int) -> None:
        """Take in where a position was found, in any order; of several, the last one counts."""
        for each, value in zip(self._found, (position, where, size), strict=True):
            each.append(value)

    def recovered(self) -> None:
        """Know that all has been found that there is."""
        positions = np.frombuffer(self._found[0], np.uint64)
        if not len(positions):
            return
        order = np.argsort(positions, kind="stable")
        positions = positions[order]
        last = np.append(positions[1:] != positions[:-1], [True])
        positions, order = positions[last], order[last]
        begins = np.flatnonzero(np.append([True], positions[1:] - positions[:-1] > 1))
        self._where = array("Q", np.frombuffer(self._found[1], np.uint64)[order].tobytes())
        self._sizes = array("I", np.frombuffer(self._found[2], np.uint32)[order].tobytes())
        self._begins = array("Q", positions[begins].tobytes())
        self._places = array("Q", begins.astype(np.uint64).tobytes())
        self.bytes = sum(self._sizes)
        self.lack_up_to(int(positions[-1]))
        self._found = array("Q"), array("Q"), array("I")

    # What is asked

    def where(self, position: int) -> int:
        """Return where a notification is in the log, or NOWHERE."""
        place = self._place(position)
        return NOWHERE if place is None else self._where[place]

    def moved(self, position: int, where: int) -> None:
        """Know that a notification is at another place of the log now."""
        if (place := self._place(position)) is not None:
            self._where[place] = where

    def counted(self, count: int) -> int:
        """Return the position of so many-th that has a place."""
        return self._between(self._start + count - 1, self._start + count)[0]

    def within(
        self, after: int, upto: int, count: int, size: int
    ) -> tuple[Sequence[int], list[int]]:
        """Return so many, of about that size, that follow after a position: which, and where."""
        start, stop = self._first(after + 1), self._first(upto + 1)
        most = max(start, min(stop, start + count))
        ends = list(accumulate(self._sizes[start:most]))
        fits = start + max(bisect_right(ends, size), min(1, len(ends)))
        return self._between(start, fits), self._where[start:fits].tolist()

    def release(self, upto: int) -> list[int]:
        """Forget positions up to one; return where they were in the log."""
        upto = min(upto, self.next - 1)
        if upto < self.first:
            return []
        end = self._first(upto + 1)
        gone = self._where[self._start : end].tolist()
        self.bytes -= sum(self._sizes[self._start : end])
        self.first, self._start = upto + 1, end
        if end == len(self._where) or (end > _TRIM and end > len(self._where) // 2):
            self._trim()
        return gone

    def _trim(self) -> None:
        start, self._start = self._start, 0
        del self._where[:start], self._sizes[:start]
        rows = bisect_right(self._places, start) - 1 if self._where else len(self._begins)
        del self._begins[: max(0, rows)], self._places[: max(0, rows)]
        if self._places:
            self._begins[0] += start - self._places[0]
            self._places = array("Q", [0, *(each - start for each in self._places[1:])])

    def _row(self, position: int) -> tuple[int, int] | None:
        """Return where a position would be if its row went on, and where the row ends."""
        row = bisect_right(self._begins, position) - 1
        if row < 0:
            return None
        is_last = row + 1 == len(self._begins)
        end = len(self._where) if is_last else self._places[row + 1]
        return self._places[row] + position - self._begins[row], end

    def _place(self, position: int) -> int | None:
        place, end = self._row(position) or (0, 0)
        return place if self._start <= place < end else None

    def _first(self, position: int) -> int:
        """Return the place of the first at a position or after it."""
        return max(self._start, min(self._row(position) or (0, 0)))

    def _between(self, start: int, stop: int) -> Sequence[int]:
        """Return the positions that have these places."""
        if start >= stop:
            return range(0)
        low, high = bisect_right(self._places, start) - 1, bisect_right(self._places, stop - 1)
        ends = [start, *self._places[low + 1 : high], stop]
        rows = [
            range(begin + a - place, begin + b - place)
            for begin, place, (a, b) in zip(
                self._begins[low:high], self._places[low:high], pairwise(ends), strict=True
            )
        ]
        return rows[0] if len(rows) == 1 else list(chain.from_iterable(rows))
