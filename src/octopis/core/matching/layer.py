"""Subscriptions that are indexed together, divided by what must be there for them to match.

Every alternative of a filter stands in one of three homes:

    the main block       all attributes that it requires are common in this layer
    a list or a block    of the rarest attribute that it requires, where one is not common; few are
                         evaluated one by one, more than that become a block
    lists                of several attributes of which it requires one, if it has ORs to evaluate

So a notification looks at the main block, and at what stands under the attributes that it has. The
rest of the layer costs it nothing, however large it is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain

import numpy as np

from octopis.core.filters.operands import Attributes
from octopis.core.filters.terms import PresenceTerm
from octopis.core.filters.tree import terms_of
from octopis.core.matching.alternatives import (
    Alternative,
    alternatives,
    asks_for_absence,
    holds,
    names_of,
    one_of,
    rarest,
    required,
)
from octopis.core.matching.block import Block
from octopis.core.matching.interface import Batch
from octopis.core.matching.layout import Entry
from octopis.core.matching.lists import Listed, Member, listed
from octopis.core.matching.positions import Integers

_COMMON_MIN = 8
"""Entries that name an attribute, from which on it may have columns in a block."""

_COMMON_SHARE = 512
"""And at least one in so many entries: else its rows would be nearly empty."""

_COMMON_MAX = 1024
"""Attributes with columns in one block, the most frequent ones."""

_LISTED_MAX = 64
"""Entries under one attribute that cost less to evaluate than a block costs to read."""


class Layer:
    """An immutable part of the index; removing only marks what is no longer there."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self.terms = terms_in(members)
        self._removed: set[int] = set()
        self._lists: dict[str, list[Listed]] = {}
        self._blocks: dict[str | None, Block] = {}
        """By the attribute that a notification must have; the main block's is None."""
        self._divide(
            [
                Entry(member.number, member.destination, *each)
                for member in members
                for each in alternatives(member.filter.tree)
            ]
        )

    def _divide(self, entries: list[Entry]) -> None:
        """Find each entry its home."""
        needed = [required(entry.terms) for entry in entries]
        counts = _counts(entries, needed)
        common = _common(counts, len(entries))
        homes: dict[str | None, list[Entry]] = {}
        for entry, names in zip(entries, needed, strict=True):
            rare = names - common
            if rare:
                homes.setdefault(rarest(rare, counts), []).append(entry)
            elif not names and (some := one_of(entry.rest, counts)):
                self._list(entry, sorted(some))
            else:
                homes.setdefault(None, []).append(entry)
        for name, found in homes.items():
            if name is None:
                self._blocks[None] = Block(found, common)
            elif len(found) > _LISTED_MAX:
                within = _counts(found, [required(entry.terms) for entry in found])
                self._blocks[name] = Block(found, _common(within, len(found)))
            else:
                for entry in found:
                    self._list(entry, [name])

    def _list(self, entry: Entry, names: list[str]) -> None:
        alternative = Alternative(entry.terms, entry.rest)
        found = listed(entry.number, entry.destination, alternative, names)
        for name in names:
            self._lists.setdefault(name, []).append(found)

    # Removing

    @property
    def size(self) -> int:
        """How many subscriptions are left."""
        return len(self.members) - len(self._removed)

    def remove(self, number: int) -> None:
        """Take a subscription out."""
        self._removed.add(number)
        owners, places = self._by_owner
        first, last = np.searchsorted(owners, (number, number + 1)).tolist()
        for block, slot in places[first:last].tolist():
            self._numbered_blocks[block].remove(slot)

    def remove_all(self, numbers: list[int]) -> None:
        """Take many subscriptions out at once."""
        self._removed.update(numbers)
        owners, places = self._by_owner
        gone = places[np.isin(owners, numbers)]
        for number in np.unique(gone[:, 0]).tolist():
            self._numbered_blocks[number].remove_all(gone[gone[:, 0] == number, 1])

    def prepare(self) -> "Layer":
        """Do beforehand what else the first to be removed would wait for."""
        assert len(self._by_owner) == 2
        return self

    @cached_property
    def _numbered_blocks(self) -> list[Block]:
        return list(self._blocks.values())

    @cached_property
    def _by_owner(self) -> tuple[Integers, Integers]:
        """The owners of all slots in ascending order, and the block and slot of each."""
        owners = np.concatenate(
            [np.zeros(0, np.int64), *(block.owners for block in self._numbered_blocks)]
        )
        places = [
            np.stack([np.full(len(block.owners), number), np.arange(len(block.owners))], axis=1)
            for number, block in enumerate(self._numbered_blocks)
        ]
        order = np.argsort(owners, kind="stable")
        return owners[order], np.concatenate([np.zeros((0, 2), np.int64), *places])[order]

    # Matching

    @property
    def has_lists(self) -> bool:
        """Whether there is anything to evaluate one by one."""
        return bool(self._lists)

    def blocks_for(self, batch: Batch) -> Iterator[tuple[Block, list[int] | None]]:
        """Yield the blocks that the batch has to read, with the rows that have to (None: all)."""
        main = self._blocks.get(None)
        if main is not None and main.concerns(batch):
            yield main, None
        if len(self._blocks) > (main is not None):
            for name in dict.fromkeys(chain.from_iterable(batch)):
                block = self._blocks.get(name)
                if block is not None:
                    yield block, [row for row, found in enumerate(batch) if name in found]

    def reached(self, attributes: Attributes, bits: int) -> int:
        """Return `bits` with those of destinations on that have a listed entry which matches."""
        for each in self._listed(attributes):
            if not bits >> each.destination & 1 and holds(each.nodes, attributes):
                bits |= 1 << each.destination
        return bits

    def listed_matches(self, attributes: Attributes, behind: int | None = None) -> Iterator[int]:
        """Yield the owners of listed entries that match; one may come several times.

        Or only those `behind` one destination.
        """
        for each in self._listed(attributes):
            if behind in (None, each.destination) and holds(each.nodes, attributes):
                yield each.number

    def _listed(self, attributes: Attributes) -> Iterator[Listed]:
        """Yield the entries under the names of a notification, those under several once."""
        if self._lists.keys().isdisjoint(attributes):  # mostly so, and quick
            return
        seen: set[int] = set()
        for name in attributes:
            for each in self._lists.get(name, ()):
                if each.number in self._removed:
                    continue
                if each.is_shared:
                    if id(each) in seen:
                        continue
                    seen.add(id(each))
                yield each


def _counts(entries: list[Entry], needed: list[set[str]]) -> Counter[str]:
    """Return how many entries name each attribute: those they need, and those to be absent."""
    counts = Counter(chain.from_iterable(needed))
    for entry in entries:
        if PresenceTerm in map(type, entry.terms):
            for term in entry.terms:
                if asks_for_absence(term):
                    counts.update(names_of(term))
    return counts


def _common(counts: Counter[str], entries: int) -> set[str]:
    """Return the attributes that are worth columns in a block of so many entries."""
    least = max(_COMMON_MIN, entries / _COMMON_SHARE)
    often = [name for name, count in counts.items() if count >= least]
    if len(often) > _COMMON_MAX:
        often = sorted(often, key=lambda name: (-counts[name], name))[:_COMMON_MAX]
    return set(often)


def prepared_layer(members: Sequence[Member]) -> Layer:
    """Return a layer of the members that has done beforehand all that can be."""
    return Layer(members).prepare()


def terms_in(members: Sequence[Member]) -> int:
    """Return how many terms the members' filters have."""
    return sum(terms_of(member.filter.tree) for member in members)


def cut(members: Sequence[Member], terms_max: int) -> Iterator[list[Member]]:
    """Yield the members in parts, which end where they have `terms_max` terms or more."""
    part: list[Member] = []
    terms = 0
    for member in members:
        part.append(member)
        terms += terms_of(member.filter.tree)
        if terms >= terms_max:
            yield part
            part, terms = [], 0
    if part:
        yield part
