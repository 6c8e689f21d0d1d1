"""Which bit of a block stands for which subscription, and what each bit asks of each column.

Each entry, one alternative of a filter, has a slot, one bit in every row. Slots of one destination
stand together on whole words, so that "any match behind this destination" is an OR over a few
words.
"""

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from octopis.core.filters.terms import ComparisonTerm, LikeTerm, PresenceTerm, Term, ValueTerm
from octopis.core.filters.tree import Conjunction, Node
from octopis.core.filters.values import Kind, ValueSet, intersection, with_prefix
from octopis.core.matching.alternatives import asks_for_absence, names_of
from octopis.core.matching.column import ColumnDraft, ColumnKey, Presence, Words
from octopis.core.matching.positions import Integers

_SEGMENT_SLOTS_MIN = 64
"""Destinations with fewer slots share words; their own would be mostly empty."""


_EVALUATED = {LikeTerm, ComparisonTerm}
"""Terms that columns cannot answer."""


class Entry(NamedTuple):
    """An alternative of a subscription: whose, behind which destination, and what must hold."""

    number: int
    destination: int
    terms: Conjunction
    rest: tuple[Node, ...] = ()


_NUMBER = attrgetter("number")


class Segment(NamedTuple):
    """Words from `first` to `last`, of one destination, or (None) of several small ones."""

    first: int
    last: int
    destination: int | None


class BlockLayout:
    """Slots for `entries`; columns answer what concerns the attributes `named`.

    `owners` and `destinations` say for each slot whose it is (-1: nobody's). `drafts` hold what the
    columns are to answer, and `residual`, by slot, what only evaluation can. `shut_by` holds the
    slots that ask for the absence of an attribute without a column.
    """

    def __init__(self, entries: Sequence[Entry], named: Collection[str]) -> None:
        self._named = named
        self.residual: dict[int, tuple[Node, ...]] = {}
        self.shut_by: dict[str, list[int]] = {}
        self.drafts: dict[ColumnKey, ColumnDraft] = {}
        self.segments: list[Segment] = []
        slots: list[int] = []
        laid_out: list[Entry] = []
        slot = 0
        for destination, group in _by_destination(entries):
            first = slot = -(-slot // 64) * 64
            for entry in group:
                self._note_entry(slot, entry)
                slots.append(slot)
                laid_out.append(entry)
                slot += 1
            self.segments.append(Segment(first // 64, -(-slot // 64), destination))
        self.words = max(1, -(-slot // 64))
        self.owners = self._by_slot(slots, (entry.number for entry in laid_out))
        self.destinations = self._by_slot(slots, (entry.destination for entry in laid_out))
        self.shares_owners = len({entry.number for entry in laid_out}) < len(slots)

    def _by_slot(self, slots: list[int], numbers: Iterable[int]) -> Integers:
        by_slot = np.full(self.words * 64, -1, np.int64)
        by_slot[slots] = np.fromiter(numbers, np.int64, len(slots))
        return by_slot

    def _note_entry(self, slot: int, entry: Entry) -> None:
        """Note what a slot asks of each column, and what only evaluation can answer."""
        asked: Iterable[Term] = entry.terms
        is_answered = not entry.rest
        if not _EVALUATED.isdisjoint(map(type, entry.terms)):
            asked, is_answered = _what_columns_answer(entry.terms), False
        for term in asked:
            if type(term) is ValueTerm and term.attribute in self._named:
                values = term.values
                draft = self._draft((term.attribute, values.kind))
                draft.add(slot, values.begins, values.cuts)
            elif type(term) is PresenceTerm and term.attribute in self._named:
                draft = self._draft((term.attribute, Presence.PRESENCE))
                draft.add(slot, term.present, ())
            else:
                is_answered = False
        if not is_answered:
            self._note_unanswered(slot, entry)

    def _note_unanswered(self, slot: int, entry: Entry) -> None:
        evaluated: list[Node] = []
        for term in entry.terms:
            if isinstance(term, LikeTerm | ComparisonTerm):
                evaluated.append(term)
            elif term.attribute in self._named:
                continue
            elif asks_for_absence(term):
                self.shut_by.setdefault(term.attribute, []).append(slot)
            else:
                evaluated.append(term)
        evaluated += entry.rest
        if evaluated:
            self.residual[slot] = tuple(evaluated)

    def _draft(self, key: ColumnKey) -> ColumnDraft:
        draft = self.drafts.get(key)
        if draft is None:
            draft = self.drafts[key] = ColumnDraft()
        return draft


def _by_destination(entries: Sequence[Entry]) -> Iterable[tuple[int | None, list[Entry]]]:
    """Yield entries of large destinations one by one, then those of all others together."""
    groups: dict[int, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.destination, []).append(entry)
    others: list[Entry] = []
    for destination in sorted(groups):
        group = sorted(groups[destination], key=_NUMBER)
        if len(group) >= _SEGMENT_SLOTS_MIN:
            yield destination, group
        else:
            others += group
    if others:
        yield None, others


def _what_columns_answer(terms: Conjunction) -> Iterable[Term]:
    """Yield the terms, with what LIKE implies (text, its prefix), and comparisons (present).

    A column takes one set for each slot, so what is said of one attribute is joined.
    """
    sets: dict[ColumnKey, list[ValueSet]] = {}
    for term in terms:
        if isinstance(term, ValueTerm):
            sets.setdefault((term.attribute, term.values.kind), []).append(term.values)
        elif isinstance(term, LikeTerm):
            prefix = "" if term.negated else term.pattern.prefix
            sets.setdefault((term.attribute, Kind.TEXT), []).append(with_prefix(prefix))
    for (attribute, _), joined in sets.items():
        yield ValueTerm(attribute, intersection(joined))
    asked = {attribute for attribute, _ in sets}
    for term in terms:
        if isinstance(term, PresenceTerm):
            asked.add(term.attribute)
            yield term
    for term in terms:
        if isinstance(term, ComparisonTerm):
            for name in sorted(names_of(term) - asked):
                asked.add(name)
                yield PresenceTerm(name, present=True)


def packed(flags: npt.NDArray[np.bool_]) -> Words:
    """Return flags as bits, 64 to a word, the first one lowest."""
    return np.packbits(flags, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def slots_of(bits: Words) -> tuple[Integers, Integers]:
    """Return the row and the slot of every bit that is on, row by row."""
    row, word = np.nonzero(bits)
    octets = bits[row, word].astype("<u8", copy=False).view(np.uint8)
    places = np.flatnonzero(np.unpackbits(octets, bitorder="little").view(np.bool_))
    which = places >> 6
    return row[which], (word << 6)[which] + (places & 63)
