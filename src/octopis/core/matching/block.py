"""An immutable block of entries as bits: AND over attributes for a whole batch at once.

A block costs memory by the terms in it, not by attributes times entries: a column that few entries
ask about gets few, coarse cells. And it costs time by the attributes that a batch has: what the
columns of all others leave on is the same for each notification, and kept.
"""

from collections.abc import Collection, Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from octopis.core.filters.operands import Attributes
from octopis.core.filters.values import Kind
from octopis.core.matching.alternatives import holds
from octopis.core.matching.column import Column, ColumnDraft, ColumnKey, ColumnKind, Presence, Words
from octopis.core.matching.interface import Batch
from octopis.core.matching.layout import BlockLayout, Entry, packed, slots_of
from octopis.core.matching.positions import Integers
from octopis.core.model import Value

_ROWS_BITS_MAX = 8 * 10**9
"""All rows of a block together stay below 1 GB; larger blocks get coarser cells."""

_TERM_BITS = 8 * 1024
"""So many bits of rows come on each term, at most, once there are more than the fewest cells."""

_CELLS_MIN, _CELLS_MAX = 16, 2048
_WORKING_BYTES = 2**20
"""So many bits of a batch are worked on at once, to stay in the processor's cache."""

_PART_COLUMNS = 2
"""Columns that cost as much to read for a batch as it costs to read part of the batch alone."""

_KEPT_MAX = 256
"""Sets of absent columns whose rows are kept joined; most notifications have one of a few sets."""

_KINDS: dict[type, Kind | None] = {
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    str: Kind.TEXT,
    bool: Kind.BOOLEAN,
    type(None): None,
}


class Block:
    """Entries that are matched together. Only `live` ever changes: removing clears bits."""

    def __init__(self, entries: Sequence[Entry], named: Collection[str]) -> None:
        """Make columns for the attributes `named`; what concerns others is evaluated."""
        layout = BlockLayout(entries, named)
        self.owners = layout.owners
        self.destinations = layout.destinations
        self.segments = layout.segments
        self._first_words = np.array([each.first for each in layout.segments], np.int64)
        self._large = np.array(
            [each.destination for each in layout.segments if each.destination is not None],
            np.int64,
        )
        """The destinations with words of their own, whose segments come first."""

        self._words_of = {
            each.destination: slice(each.first, each.last) for each in layout.segments
        }
        """The words of each of these; under None, those that all others share."""
        self.shares_owners = layout.shares_owners
        self.residual = layout.residual
        self.residual_bits = packed(np.isin(np.arange(len(self.owners)), list(self.residual)))
        self.live = packed(self.owners >= 0)
        self._shut_by = {name: np.array(slots, np.int64) for name, slots in layout.shut_by.items()}
        self._left_on: dict[frozenset[int], Words] = {}
        self._build_columns(layout.drafts)
        self._needs_nothing = bool((self.live & self._left_on_without([])).any())
        """Whether a slot can match where all attributes with columns are absent."""

    def remove(self, slot: int) -> None:
        """Take an entry out."""
        self.live[slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))

    def remove_all(self, slots: Integers) -> None:
        """Take many entries out."""
        bits = np.left_shift(np.uint64(1), (slots & 63).astype(np.uint64))
        np.bitwise_and.at(self.live, slots >> 6, ~bits)

    def concerns(self, batch: Batch) -> bool:
        """Tell whether anything can match: an attribute is there that some column asks for."""
        names = self._attributes.keys()
        return self._needs_nothing or not all(names.isdisjoint(found) for found in batch)

    @property
    def nbytes(self) -> int:
        """Bytes that the rows of all columns take."""
        return self._rows.nbytes

    def _build_columns(self, drafts: dict[ColumnKey, ColumnDraft]) -> None:
        """Make the columns, all rows in one matrix and all gaps behind one list of offsets."""
        words = len(self.live)
        cells_max = min(_CELLS_MAX, _ROWS_BITS_MAX // (max(1, len(drafts)) * words * 64))
        self._columns = [
            Column(
                draft,
                kind,
                max(_CELLS_MIN, min(cells_max, _TERM_BITS * len(draft.slots) // (words * 64))),
            )
            for (_, kind), draft in drafts.items()
        ]
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

    # Answers

    def mark_reached(self, batch: Batch, reached: npt.NDArray[np.bool_]) -> None:
        """Set for each notification, a row, the places of destinations with a match in `reached`.

        What is set already need not be found again.
        """
        self._mark(batch, self.candidates(batch), reached)

    def mark_and_match(
        self, batch: Batch, reached: npt.NDArray[np.bool_], behind: int
    ) -> tuple[Integers, Integers]:
        """Do the same, and return the matches behind one destination, as `matches` does."""
        candidates = self.candidates(batch)
        self._mark(batch, candidates, reached)
        words = self._words_of.get(behind) or self._words_of.get(None) or slice(0, 0)
        rows, slots = self._matching(batch, candidates[:, words].copy(), words.start)
        if behind not in self._words_of:
            theirs = self.destinations[slots] == behind
            rows, slots = rows[theirs], slots[theirs]
        return rows, self.owners[slots]

    def _mark(self, batch: Batch, candidates: Words, reached: npt.NDArray[np.bool_]) -> None:
        certain = candidates & ~self.residual_bits if self.residual else candidates
        anything = np.bitwise_or.reduceat(certain, self._first_words, axis=1) != 0
        large = len(self._large)
        reached[:, self._large] |= anything[:, :large]
        if large < len(self.segments) and anything[:, large].any():
            shared = self.segments[large]
            rows, slots = slots_of(certain[:, shared.first : shared.last])
            reached[rows, self.destinations[slots + 64 * shared.first]] = True
        if self.residual:
            rows, slots = slots_of(candidates & self.residual_bits)
            self._evaluate(batch, rows, slots, reached)

    def _evaluate(
        self, batch: Batch, rows: Integers, slots: Integers, reached: npt.NDArray[np.bool_]
    ) -> None:
        """Evaluate candidates of destinations that are not reached yet."""
        open_ones = np.flatnonzero(~reached[rows, self.destinations[slots]])
        rows, slots = rows[open_ones], slots[open_ones]
        found: set[tuple[int, int]] = set()
        residual = self.residual
        for row, slot, place in zip(
            rows.tolist(), slots.tolist(), self.destinations[slots].tolist(), strict=True
        ):
            if found and (row, place) in found:
                continue
            if holds(residual[slot], batch[row]):
                found.add((row, place))
                reached[row, place] = True

    def matches(self, batch: Batch) -> tuple[Integers, Integers]:
        """Return all matches as rows of the batch, ascending, and numbers of their owners.

        An owner with several entries may come several times.
        """
        rows, slots = self._matching(batch, self.candidates(batch), 0)
        return rows, self.owners[slots]

    def _matching(self, batch: Batch, candidates: Words, first: int) -> tuple[Integers, Integers]:
        """Return the rows and slots that match among candidates, whose first word is `first`."""
        if self.residual:
            unsure = self.residual_bits[first : first + candidates.shape[1]]
            rows, slots = slots_of(candidates & unsure)
            for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
                if not holds(self.residual[slot + 64 * first], batch[row]):
                    candidates[row, slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))
        rows, slots = slots_of(candidates)
        return rows, slots + 64 * first

    def candidates(self, batch: Batch) -> Words:
        """Return for each notification the slots whose indexed terms all hold, as bits.

        Exact but for the slots in `residual`, which the caller still has to evaluate.
        """
        parts = self._alike(batch)
        if len(parts) > 1:
            joined = np.empty((len(batch), len(self.live)), np.uint64)
            for part in parts:
                joined[part] = self._candidates([batch[row] for row in part])
            return joined
        return self._candidates(batch)

    def _alike(self, batch: Batch) -> list[list[int]]:
        """Return the rows in parts whose notifications have the same attributes, where that pays.

        A part reads only its own columns, but costs as much as some columns do.
        """
        if len(batch) < 2 or batch[0].keys() >= self._attributes.keys():
            return []
        parts: dict[tuple[str, ...], list[int]] = {}
        for row, attributes in enumerate(batch):
            parts.setdefault(tuple(attributes), []).append(row)
        columns = len(self._attributes.keys() & set().union(*parts))
        return list(parts.values()) if columns > _PART_COLUMNS * len(parts) else []

    def _candidates(self, batch: Batch) -> Words:
        located = self._locate_one(batch[0]) if len(batch) == 1 else self._locate(batch)
        columns, rows, positions = located
        live = self.live
        if len(columns) < len(self._columns):
            live = live & self._left_on_without(columns)
        found = np.empty((len(batch), len(live)), np.uint64)
        found[:] = live
        step = max(1, _WORKING_BYTES // (8 * len(self.live)))
        for start in range(0, len(batch), step):
            part = slice(start, start + step)
            self._and_rows(rows[:, part], found[part])
            self._close_gaps(rows[:, part], positions[:, part], found[part])
        if self._shut_by:
            self._shut(batch, found)
        return found

    # Which rows

    def _locate(self, batch: Batch) -> tuple[list[int], Integers, Integers]:
        """Return the columns that concern the batch, and in each the row and the position.

        Positions are those among the boundaries. Row and position of a notification without the
        attribute are those of absent.
        """
        named = list(self._attributes)
        if not batch or not batch[0].keys() >= self._attributes.keys():
            there = set().union(*batch)
            named = [name for name in named if name in there]
        numbers = [number for name in named for _, number in self._attributes[name]]
        rows = np.empty((len(numbers), len(batch)), np.int64)
        rows[:] = self._first_rows[numbers][:, None]
        positions = np.zeros((len(numbers), len(batch)), np.int64)
        places = iter(range(len(numbers)))
        for name in named:
            try:
                found = list(map(itemgetter(name), batch))
            except KeyError:
                found = [attributes.get(name) for attributes in batch]
            types = set(map(type, found))
            kinds = set(map(_KINDS.__getitem__, types))
            integers = int in types
            for (kind, number), at in zip(self._attributes[name], places, strict=False):
                column = self._columns[number]
                if kind is Presence.PRESENCE:
                    rows[at] += np.array([value is not None for value in found], np.bool_)
                elif kind not in kinds:
                    continue
                elif len(kinds) == 1:  # all have the attribute, all of this kind
                    column.locate(found, rows[at], positions[at], integers=integers)
                else:
                    where = [index for index, value in enumerate(found) if _is_of(value, kind)]
                    some = np.empty((2, len(where)), np.int64)
                    column.locate([found[index] for index in where], *some, integers=integers)
                    rows[at, where], positions[at, where] = some
        return numbers, rows, positions

    def _locate_one(self, attributes: Attributes) -> tuple[list[int], Integers, Integers]:
        """Do the same for one notification, without the cost of starting numpy for each column."""
        numbers, rows, positions = [], [], []
        for name in attributes:
            columns = self._attributes.get(name)
            value = attributes.get(name) if columns else None
            if columns is None or value is None:
                continue
            for kind, number in columns:
                if kind is Presence.PRESENCE:
                    row, position = self._first_rows.item(number) + 1, 0
                elif _is_of(value, kind):
                    row, position = self._columns[number].locate_one(value)
                else:
                    continue
                numbers.append(number)
                rows.append(row)
                positions.append(position)
        return numbers, np.array(rows, np.int64)[:, None], np.array(positions, np.int64)[:, None]

    # Bits

    def _left_on_without(self, columns: list[int]) -> Words:
        """Return the bits that all other columns leave on where their attributes are absent."""
        key = frozenset(columns)
        left_on = self._left_on.get(key)
        if left_on is None:
            if len(self._left_on) >= _KEPT_MAX:
                self._left_on.clear()
            left_on = ~np.zeros_like(self.live)
            for number, row in enumerate(self._first_rows[:-1].tolist()):
                if number not in key:
                    np.bitwise_and(left_on, self._rows[row], out=left_on)
            self._left_on[key] = left_on
        return left_on

    def _and_rows(self, rows: Integers, found: Words) -> None:
        if len(found) == 1:
            taken = self._rows.take(rows[:, 0], axis=0)
            np.bitwise_and(found[0], np.bitwise_and.reduce(taken, axis=0), out=found[0])
            return
        taken = np.empty_like(found)
        for column_rows in rows:
            self._rows.take(column_rows, axis=0, out=taken, mode="clip")
            np.bitwise_and(found, taken, out=found)

    def _close_gaps(self, rows: Integers, positions: Integers, found: Words) -> None:
        """Clear the bits of slots whose set has a gap where the notification's value lies."""
        if not len(self._gap_slots):
            return
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
        if not len(hit):
            return
        width = rows.shape[1]
        owner = 0 if width == 1 else (np.arange(len(flat)) % width).repeat(counts)[hit]
        slots = self._gap_slots.take(gaps[hit])
        keep = ~(np.uint64(1) << (slots & 63).astype(np.uint64))
        np.bitwise_and.at(found, (owner, slots >> 6), keep)

    def _shut(self, batch: Batch, found: Words) -> None:
        """Clear the bits of slots that ask for the absence of what a notification has."""
        for attributes, bits in zip(batch, found, strict=True):
            for name, value in attributes.items():
                slots = self._shut_by.get(name)
                if slots is not None and value is not None:
                    keep = ~(np.uint64(1) << (slots & 63).astype(np.uint64))
                    np.bitwise_and.at(bits, slots >> 6, keep)


def _is_of(value: Value | None, kind: ColumnKind) -> bool:
    return _KINDS[type(value)] is kind
