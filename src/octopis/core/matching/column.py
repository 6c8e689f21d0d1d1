"""One attribute and kind of value in a block: which slots can still match, cell by cell.

Positions are grouped into cells, cut at quantiles of the boundaries. For every cell, one row of
bits says which slots may match a value there; slots that do not ask about this attribute always
may. A slot whose set covers a cell only in part has its bit on, and leaves in `gaps` the positions
at which the bit must go off again:

    cells        |    0    |    1    |    2    |    3    |
    a slot's set         [xxxxxxxxxxxxxxxx)
    its bits          1         1         1         0
    its gaps      ^^^^^^^                 ^^^^^^

A column has one more row, for notifications where the attribute is absent or of another kind.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from octopis.core.filters.values import Cut, Kind
from octopis.core.matching.positions import Integers, Positions
from octopis.core.model import Value

Words = npt.NDArray[np.uint64]


class Presence(Enum):
    """The kind of the column that asks only whether an attribute is there."""

    PRESENCE = "presence"

    __hash__ = object.__hash__  # members are single; Enum's own hash is slow


ColumnKind = Kind | Presence
ColumnKey = tuple[str, ColumnKind]


class ColumnDraft:
    """What the slots of a block ask of one column, gathered before the column is built."""

    def __init__(self) -> None:
        self.slots: list[int] = []
        self.begins: list[bool] = []
        self.counts: list[int] = []
        self.cuts: list[Cut] = []

    def add(self, slot: int, begins: bool, cuts: tuple[Cut, ...]) -> None:
        """Add the set of values that a slot asks for."""
        self.slots.append(slot)
        self.begins.append(begins)
        self.counts.append(len(cuts))
        self.cuts += cuts


@dataclass(frozen=True, slots=True)
class Gaps:
    """Places where a cell's bit must go off: slot `slots[i]` at positions from `starts` to `ends`.

    Sorted by row; those of row r stand from `offsets[r]` up to the next row's.
    """

    slots: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    offsets: Integers


class Column:
    """The rows of one attribute and kind. Row 0 is for absent, row 1 + c for cell c."""

    def __init__(self, draft: ColumnDraft, kind: ColumnKind, cells_max: int) -> None:
        self._kind = kind
        self._positions = Positions(draft.cuts)
        self._cell_starts = _quantiles(self._positions, cells_max)
        all_positions = np.arange(self._positions.count)
        self._cell_of = np.searchsorted(self._cell_starts, all_positions, side="right") - 1
        self._slots = np.array(draft.slots, np.int64)
        self._begins = np.array(draft.begins, np.bool_)
        self._counts = np.array(draft.counts, np.int64)
        self.height = 1 + len(self._cell_starts)

    def place(self, first_row: int, rows: Words) -> None:
        """Fill `rows`, which are the block's from `first_row` on, and find the gaps."""
        edges, owners = _edges(self._slots, self._begins, self._counts, self._positions)
        indifferent = ~_bits(self._slots, rows.shape[1])
        rows[0] = indifferent
        if self._kind is Presence.PRESENCE:  # asks for an absent attribute, and gets it
            rows[0] |= _bits(self._slots[~self._begins], rows.shape[1])
        self._fill(rows[1:], edges, owners)
        rows[1:] |= indifferent
        self.gaps = self._gaps(edges, owners)
        self._row_of = self._cell_of + (1 + first_row)
        del self._slots, self._begins, self._counts, self._cell_of, self._cell_starts

    def locate(
        self, values: list[Any], rows: Integers, positions: Integers, *, integers: bool
    ) -> None:
        """Write the row and the position of each value, all of this column's kind."""
        self._positions.of_many(values, positions, integers=integers)
        self._row_of.take(positions, out=rows, mode="clip")

    def locate_one(self, value: Value) -> tuple[int, int]:
        """Return the row and the position of a value of this column's kind."""
        position = self._positions.of(value)
        return self._row_of.item(position), position

    def _fill(self, rows: Words, edges: Integers, owners: Integers) -> None:
        """Set the bits of each slot from the cell where it goes in to the one where it goes out.

        Going in or out flips a bit in one row; running XOR over the rows does the rest.
        """
        cell = self._cell_of
        first = cell[edges[:, 0]]
        after_last = cell[edges[:, 1] - 1] + 1
        # Where a slot goes out and in again inside one cell, its bit just stays on.
        stays = np.flatnonzero((owners[1:] == owners[:-1]) & (first[1:] < after_last[:-1]))
        goes_in = np.delete(np.arange(len(owners)), stays + 1)
        goes_out = np.delete(np.arange(len(owners)), stays)
        for cells, slots in (
            (first[goes_in], owners[goes_in]),
            (after_last[goes_out], owners[goes_out]),
        ):
            inside = cells < len(rows)
            flip = np.uint64(1) << (slots[inside] & 63).astype(np.uint64)
            np.bitwise_xor.at(rows, (cells[inside], slots[inside] >> 6), flip)
        np.bitwise_xor.accumulate(rows, axis=0, out=rows)

    def _gaps(self, edges: Integers, owners: Integers) -> Gaps:
        """Return the ends of each slot's gaps that lie inside a cell where its bit is on."""
        count = self._positions.count
        same = owners[1:] == owners[:-1]
        # Before the first interval of a slot, between two, and after the last.
        before = np.concatenate([[True], ~same]) if len(owners) else np.zeros(0, np.bool_)
        after = np.concatenate([~same, [True]]) if len(owners) else np.zeros(0, np.bool_)
        starts = np.concatenate(
            [np.zeros(int(before.sum()), np.int64), edges[:-1, 1][same], edges[after, 1]]
        )
        ends = np.concatenate(
            [edges[before, 0], edges[1:, 0][same], np.full(int(after.sum()), count)]
        )
        slots = np.concatenate([owners[before], owners[1:][same], owners[after]])
        real = starts < ends
        starts, ends, slots = starts[real], ends[real], slots[real]
        first, last = self._cell_of[starts], self._cell_of[ends - 1]
        cell_ends = np.append(self._cell_starts[1:], count)
        at_first = (starts > self._cell_starts[first]) | (
            (first == last) & (ends < cell_ends[first])
        )
        at_last = (first != last) & (ends < cell_ends[last])
        cells = np.concatenate([first[at_first], last[at_last]])
        chosen = np.concatenate([np.flatnonzero(at_first), np.flatnonzero(at_last)])
        order = np.argsort(cells, kind="stable")
        chosen = chosen[order]
        # Row 0, for absent, has no gaps; row 1 + c has those of cell c.
        offsets = np.searchsorted(cells[order], np.arange(-1, len(self._cell_starts)))
        return Gaps(
            slots[chosen].astype(np.int32),
            starts[chosen].astype(np.int32),
            ends[chosen].astype(np.int32),
            offsets,
        )


def _quantiles(positions: Positions, cells_max: int) -> Integers:
    """Return where cells start: everywhere if that is few enough, else at quantiles of the cuts."""
    if positions.count <= cells_max:
        return np.arange(positions.count)
    ordered = np.sort(positions.starts)
    step = -(-len(ordered) // (cells_max - 1))
    return np.unique(np.append(ordered[::step], 0))


def _edges(
    slots: Integers, begins: npt.NDArray[np.bool_], counts: Integers, positions: Positions
) -> tuple[Integers, Integers]:
    """Return the intervals [start, end) of positions that slots ask for, and whose they are.

    Every set gets an edge at the far left where it begins inside, and one at the far right where
    it ends inside; then its edges come in pairs.
    """
    owner_of_cut = np.repeat(np.arange(len(slots)), counts)
    ends_inside = begins ^ (counts % 2 == 1)
    places = np.concatenate(
        [
            np.zeros(int(begins.sum()), np.int64),
            positions.starts,
            np.full(int(ends_inside.sum()), positions.count),
        ]
    )
    owners = np.concatenate([np.flatnonzero(begins), owner_of_cut, np.flatnonzero(ends_inside)])
    order = np.lexsort((places, owners))
    pairs = places[order].reshape(-1, 2)
    return pairs, slots[owners[order][::2]]


def _bits(slots: Integers, words: int) -> Words:
    """Return a row with the bits of `slots` on."""
    row = np.zeros(words, np.uint64)
    np.bitwise_or.at(row, slots >> 6, np.uint64(1) << (slots & 63).astype(np.uint64))
    return row
