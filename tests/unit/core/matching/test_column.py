"""A column's rows and gaps together say exactly which slots ask for a value."""

import numpy as np
import pytest

from octopis.core.filters import values
from octopis.core.filters.values import Kind, ValueSet
from octopis.core.matching.column import Column, ColumnDraft, ColumnKind, Presence
from octopis.core.model import Value

WORDS = 2
SLOTS = 128


class Built:
    """A column with its rows, read one value at a time."""

    def __init__(self, sets: dict[int, ValueSet], kind: ColumnKind, cells_max: int) -> None:
        draft = ColumnDraft()
        for slot, wanted in sets.items():
            draft.add(slot, wanted.begins, wanted.cuts)
        self.column = Column(draft, kind, cells_max)
        self.rows = np.zeros((self.column.height, WORDS), np.uint64)
        self.column.place(0, self.rows)

    def slots_at(self, value: Value) -> set[int]:
        row, position = self.column.locate_one(value)
        gaps = self.column.gaps
        ends = np.append(gaps.offsets, len(gaps.slots))
        closed = {
            int(gaps.slots[at])
            for at in range(ends[row], ends[row + 1])
            if gaps.starts[at] <= position < gaps.ends[at]
        }
        return self.bits(row) - closed

    def bits(self, row: int) -> set[int]:
        return {slot for slot in range(SLOTS) if int(self.rows[row, slot >> 6]) >> (slot & 63) & 1}


SETS = {
    slot: values.union(
        [
            values.between((slot, slot % 2), (slot + 7, 0), Kind.NUMBER),
            values.only(slot + 20),
            values.between((slot + 40, 0), None, Kind.NUMBER),
        ]
    )
    for slot in range(0, 100, 3)
}
SETS |= {slot: wanted.complement() for slot, wanted in SETS.items() if slot % 2}
SETS[1] = ValueSet(Kind.NUMBER, False, ())
SETS[4] = ValueSet(Kind.NUMBER, True, ())


@pytest.mark.parametrize("cells_max", [16, 40, 10_000])
def test_slots_are_those_whose_set_has_the_value(cells_max: int):
    built = Built(SETS, Kind.NUMBER, cells_max)
    indifferent = set(range(SLOTS)) - set(SETS)
    for value in [number / 2 for number in range(-4, 320)]:
        expected = indifferent | {slot for slot, wanted in SETS.items() if value in wanted}
        assert built.slots_at(value) == expected


def test_few_cells_leave_gaps_and_enough_cells_leave_none():
    coarse, fine = Built(SETS, Kind.NUMBER, 16), Built(SETS, Kind.NUMBER, 10_000)
    assert coarse.column.height <= 17
    assert len(coarse.column.gaps.slots) > 0
    assert len(fine.column.gaps.slots) == 0


def test_row_of_absent_has_only_the_slots_that_do_not_ask():
    built = Built(SETS, Kind.NUMBER, 16)
    assert built.bits(0) == set(range(SLOTS)) - set(SETS)


def test_presence_has_a_row_for_absent_and_one_for_there():
    present, absent = ValueSet(Kind.NUMBER, True, ()), ValueSet(Kind.NUMBER, False, ())
    built = Built({5: present, 70: absent}, Presence.PRESENCE, 16)
    assert built.bits(0) == set(range(SLOTS)) - {5}
    assert built.bits(1) == set(range(SLOTS)) - {70}


def test_many_values_are_located_as_one_by_one():
    built = Built(SETS, Kind.NUMBER, 16)
    found: list[Value] = [0, 3, 3.5, 20, 47, -100, 2**63 - 1]
    rows, positions = np.empty(len(found), np.int64), np.empty(len(found), np.int64)
    built.column.locate(found, rows, positions, integers=True)
    together = list(zip(rows.tolist(), positions.tolist(), strict=True))
    assert together == [built.column.locate_one(value) for value in found]
