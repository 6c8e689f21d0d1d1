"""An immutable block of subscriptions as bits: AND over attributes for a whole batch at once."""

from collections.abc import Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np

from octopis.core.filters.operands import Attributes
from octopis.core.filters.values import Kind
from octopis.core.matching.column import Column, ColumnDraft, ColumnKey, ColumnKind, Presence, Words
from octopis.core.matching.interface import Batch
from octopis.core.matching.layout import BlockLayout, Member, packed
from octopis.core.matching.positions import Integers
from octopis.core.model import Value

_ROWS_BITS_MAX = 8 * 10**9
"""All rows of a block together stay below 1 GB; larger blocks get coarser cells."""

_CELLS_MAX = 2048
_WORKING_BYTES = 2**20
"""So many bits of a batch are worked on at once, to stay in the processor's cache."""

_KINDS: dict[type, Kind | None] = {
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.TEXT,
    bool: Kind.BOOLEAN,
    type(None): None,
}


class Block:
    """Subscriptions that are matched together. Only `live` ever changes: removing clears bits."""

    def __init__(self, members: Sequence[Member]) -> None:
        layout = BlockLayout(members)
        self.members = members
        self.owners = layout.owners
        self.destinations = layout.destinations
        self.segments = layout.segments
        self.shares_owners = layout.shares_owners
        self.residual = layout.residual
        self.residual_bits = packed(np.isin(np.arange(len(self.owners)), list(self.residual)))
        self.live = packed(self.owners >= 0)
        self._removed = 0
        self._build_columns(layout.drafts)

    @property
    def size(self) -> int:
        """How many subscriptions are left."""
        return len(self.members) - self._removed

    def remove(self, number: int) -> None:
        """Take a subscription out."""
        order, owners = self._by_owner
        first, last = np.searchsorted(owners, (number, number + 1)).tolist()
        for slot in order[first:last].tolist():
            self.live[slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))
        self._removed += 1

    @cached_property
    def _by_owner(self) -> tuple[Integers, Integers]:
        order = np.argsort(self.owners, kind="stable")
        return order, self.owners[order]

    def _build_columns(self, drafts: dict[ColumnKey, ColumnDraft]) -> None:
        """Make the columns, all rows in one matrix and all gaps behind one list of offsets."""
        words = len(self.live)
        cells_max = _ROWS_BITS_MAX // (max(1, len(drafts)) * words * 64)
        cells_max = max(16, min(_CELLS_MAX, cells_max))
        self._columns = [Column(draft, kind, cells_max) for (_, kind), draft in drafts.items()]
        self._attributes: dict[str, list[tuple[ColumnKind, int]]] = {}
        for number, (attribute, kind) in enumerate(drafts):
            self._attributes.setdefault(attribute, []).append((kind, number))
        heights = [column.height for column in self._columns]
        self._first_rows = np.cumsum([0, *heights])
        self._rows = np.zeros((sum(heights), words), np.uint64)
        offsets, total = [], 0
        for column, first in zip(self._columns, self._first_rows.tolist(), strict=False):
            column.place(first, self._rows[first : first + column.height])
            offsets.append(column.gaps.offsets + total)
            total += len(column.gaps.slots)
        self._gap_offsets = np.concatenate([*offsets, [total]]).astype(np.int64)
        gaps = [column.gaps for column in self._columns]
        none = np.zeros(0, np.int32)
        self._gap_slots = np.concatenate([none, *(gap.slots for gap in gaps)])
        self._gap_starts = np.concatenate([none, *(gap.starts for gap in gaps)])
        self._gap_ends = np.concatenate([none, *(gap.ends for gap in gaps)])
        for column in self._columns:
            del column.gaps

    def candidates(self, batch: Batch) -> Words:
        """Return for each notification the slots whose indexed terms all hold, as bits.

        Exact but for the slots in `residual`, which the caller still has to evaluate.
        """
        rows, positions = self._locate_one(batch[0]) if len(batch) == 1 else self._locate(batch)
        found = np.empty((len(batch), len(self.live)), np.uint64)
        step = max(1, _WORKING_BYTES // (8 * len(self.live)))
        for start in range(0, len(batch), step):
            part = slice(start, start + step)
            self._and_rows(rows[:, part], found[part])
            self._close_gaps(rows[:, part], positions[:, part], found[part])
        return found

    def _locate(self, batch: Batch) -> tuple[Integers, Integers]:
        """Return the row, and the position among boundaries, per column and notification."""
        rows = np.empty((len(self._columns), len(batch)), np.int64)
        rows[:] = self._first_rows[:-1, None]  # absent, until found
        positions = np.zeros((len(self._columns), len(batch)), np.int64)
        for attribute, columns in self._attributes.items():
            try:
                found = list(map(itemgetter(attribute), batch))
            except KeyError:
                found = [attributes.get(attribute) for attributes in batch]
            types = set(map(type, found))
            kinds = set(map(_KINDS.__getitem__, types))
            integers = int in types
            for kind, number in columns:
                if kind is Presence.PRESENCE:
                    rows[number] += np.array([value is not None for value in found], np.bool_)
                elif kind not in kinds:
                    continue
                elif len(kinds) == 1:  # all have the attribute, all of this kind
                    column = self._columns[number]
                    column.locate(found, rows[number], positions[number], integers=integers)
                else:
                    where = [index for index, value in enumerate(found) if _is_of(value, kind)]
                    some = np.empty((2, len(where)), np.int64)
                    column = self._columns[number]
                    column.locate([found[index] for index in where], *some, integers=integers)
                    rows[number, where], positions[number, where] = some
        return rows, positions

    def _locate_one(self, attributes: Attributes) -> tuple[Integers, Integers]:
        """Do the same for one notification, without the cost of starting numpy for each column."""
        rows = self._first_rows[:-1].tolist()
        positions = [0] * len(rows)
        for attribute, columns in self._attributes.items():
            value = attributes.get(attribute)
            if value is None:
                continue
            for kind, number in columns:
                if kind is Presence.PRESENCE:
                    rows[number] += 1
                elif _is_of(value, kind):
                    rows[number], positions[number] = self._columns[number].locate_one(value)
        return np.array(rows, np.int64)[:, None], np.array(positions, np.int64)[:, None]

    def _and_rows(self, rows: Integers, found: Words) -> None:
        found[:] = self.live
        if len(found) == 1:  # rows can be used where they lie
            for row in rows[:, 0].tolist():
                np.bitwise_and(found[0], self._rows[row], out=found[0])
            return
        taken = np.empty_like(found)
        for column_rows in rows:
            self._rows.take(column_rows, axis=0, out=taken, mode="clip")
            np.bitwise_and(found, taken, out=found)

    def _close_gaps(self, rows: Integers, positions: Integers, found: Words) -> None:
        """Clear the bits of slots whose set has a gap where the notification's value lies."""
        flat = rows.ravel()
        first = self._gap_offsets[flat]
        counts = self._gap_offsets[flat + 1] - first
        ends = counts.cumsum()
        if not len(ends) or not ends[-1]:
            return
        gaps = (first - ends + counts).repeat(counts)
        gaps += np.arange(len(gaps))
        position = positions.ravel().astype(np.int32).repeat(counts)
        inside = self._gap_starts.take(gaps) <= position
        inside &= position < self._gap_ends.take(gaps)
        hit = np.flatnonzero(inside)
        owner = (np.arange(len(flat)) % rows.shape[1]).repeat(counts)[hit]
        slots = self._gap_slots.take(gaps[hit])
        keep = ~(np.uint64(1) << (slots & 63).astype(np.uint64))
        np.bitwise_and.at(found, (owner, slots >> 6), keep)


def _is_of(value: Value | None, kind: ColumnKind) -> bool:
    return _KINDS[type(value)] is kind
