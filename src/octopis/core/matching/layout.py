"""Which bit of a block stands for which subscription, and what each bit asks of each column.

Each conjunction of a filter has a slot, one bit in every row. Slots of one destination stand
together on whole words, so that "any match behind this destination" is an OR over a few words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from octopis.core.filters import Filter
from octopis.core.filters.terms import ComparisonTerm, LikeTerm, PresenceTerm, Term, ValueTerm
from octopis.core.filters.tree import Conjunction, Node, conjunction, to_conjunctions
from octopis.core.filters.values import Kind, ValueSet, intersection, with_prefix
from octopis.core.matching.column import ColumnDraft, ColumnKey, Presence, Words
from octopis.core.matching.positions import Integers

_SEGMENT_SLOTS_MIN = 64
"""Destinations with fewer slots share words; their own would be mostly empty."""


@dataclass(frozen=True, slots=True)
class Member:
    """A subscription in a block: its number in the index, its destination's, and its filter."""

    number: int
    destination: int
    filter: Filter


@dataclass(frozen=True, slots=True)
class Segment:
    """Words from `first` to `last`, of one destination, or (None) of several small ones."""

    first: int
    last: int
    destination: int | None


class BlockLayout:
    """Slots for the conjunctions of `members`.

    `owners` and `destinations` say for each slot whose it is (-1: nobody's). `residual` holds,
    by slot, what only evaluation can answer; `drafts` what the columns are to answer.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.residual: dict[int, Node] = {}
        self.drafts: dict[ColumnKey, ColumnDraft] = {}
        self.segments: list[Segment] = []
        slots: list[int] = []
        slot_members: list[Member] = []
        slot = 0
        for destination, group in _by_destination(members):
            first = slot = -(-slot // 64) * 64
            for member, conjunctions in group:
                for terms in conjunctions:
                    self._note_terms(slot, member, terms)
                    slots.append(slot)
                    slot_members.append(member)
                    slot += 1
            if slot > first:
                self.segments.append(Segment(first // 64, -(-slot // 64), destination))
        self.words = max(1, -(-slot // 64))
        self.owners = self._by_slot(slots, (member.number for member in slot_members))
        self.destinations = self._by_slot(slots, (member.destination for member in slot_members))
        self.shares_owners = len({member.number for member in slot_members}) < len(slots)

    def _by_slot(self, slots: list[int], numbers: Iterable[int]) -> Integers:
        by_slot = np.full(self.words * 64, -1, np.int64)
        by_slot[slots] = np.fromiter(numbers, np.int64, len(slots))
        return by_slot

    def _note_terms(self, slot: int, member: Member, terms: Conjunction | None) -> None:
        """Note what a slot asks of each column, and what only evaluation can answer."""
        if terms is None:  # multiplied out, it would be too large: evaluate the whole filter
            self.residual[slot] = member.filter.tree
            return
        evaluated = [term for term in terms if isinstance(term, LikeTerm | ComparisonTerm)]
        if evaluated:
            self.residual[slot] = conjunction(evaluated)
        for term in _with_prefixes(terms) if evaluated else terms:
            if isinstance(term, ValueTerm):
                values = term.values
                draft = self._draft((term.attribute, values.kind))
                draft.add(slot, values.begins, values.cuts)
            elif isinstance(term, PresenceTerm):
                draft = self._draft((term.attribute, Presence.PRESENCE))
                draft.add(slot, term.present, ())

    def _draft(self, key: ColumnKey) -> ColumnDraft:
        draft = self.drafts.get(key)
        if draft is None:
            draft = self.drafts[key] = ColumnDraft()
        return draft


Conjunctions = tuple[Conjunction | None, ...]
"""Those of one filter, each with a slot of its own; None stands for a filter as a whole."""


def _by_destination(
    members: Sequence[Member],
) -> Iterable[tuple[int | None, Iterable[tuple[Member, Conjunctions]]]]:
    """Yield members with their conjunctions, large destinations one by one, then all others."""
    found: list[tuple[Member, Conjunctions]] = []
    sizes: dict[int, int] = {}
    for member in members:
        conjunctions = to_conjunctions(member.filter.tree)
        slots: Conjunctions = (None,)
        if conjunctions is not None:
            slots = tuple(terms for terms in conjunctions if not _contradicts(terms))
        found.append((member, slots))
        sizes[member.destination] = sizes.get(member.destination, 0) + len(slots)

    def own_segment(entry: tuple[Member, Conjunctions]) -> int | None:
        destination = entry[0].destination
        return destination if sizes[destination] >= _SEGMENT_SLOTS_MIN else None

    found.sort(
        key=lambda entry: (own_segment(entry) is None, entry[0].destination, entry[0].number)
    )
    return groupby(found, own_segment)


def _contradicts(terms: Conjunction) -> bool:
    """Tell whether one attribute must be both there and absent: one column cannot say both."""
    absent = [t.attribute for t in terms if type(t) is PresenceTerm and not t.present]
    return bool(absent) and any(
        isinstance(term, PresenceTerm) and term.present and term.attribute in absent
        for term in terms
    )


def _with_prefixes(terms: Conjunction) -> Iterable[Term]:
    """Add what LIKE implies and columns can answer: the value is text, with the prefix.

    A column takes one set for each slot, so what is said of one attribute is joined.
    """
    sets: dict[ColumnKey, list[ValueSet]] = {}
    for term in terms:
        if isinstance(term, ValueTerm):
            sets.setdefault((term.attribute, term.values.kind), []).append(term.values)
        elif isinstance(term, LikeTerm):
            prefix = "" if term.negated else term.pattern.prefix
            sets.setdefault((term.attribute, Kind.TEXT), []).append(with_prefix(prefix))
    yield from (term for term in terms if isinstance(term, PresenceTerm))
    for (attribute, _), joined in sets.items():
        yield ValueTerm(attribute, intersection(joined))


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
