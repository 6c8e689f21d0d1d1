"""The fast index: layers of blocks and lists, with a little log-structured care for changes.

New subscriptions wait in `pending` and are evaluated one by one; when they are too many for
that, those who ask for what few ask for go to lists, where they stay. The others become a layer;
how layers grow and are joined stands in `layers`.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Generic

import numpy as np
import numpy.typing as npt

from octopis.core.filters import Filter
from octopis.core.filters.operands import Attributes
from octopis.core.filters.tree import terms_of
from octopis.core.matching.block import Block
from octopis.core.matching.interface import Batch, Destination, Id
from octopis.core.matching.layers import SHRINK, Layers, Submit
from octopis.core.matching.lists import Member, RareLists
from octopis.core.matching.positions import Integers

_PENDING_MAX = 64
_PENDING_TERMS_MAX = 512
"""Pending subscriptions, and their terms: indexing so many takes a few milliseconds."""

_SMALL_TERMS = 512
"""Terms of an index that one block reads sooner than they are evaluated, whatever they ask for."""

_BUILD_EVALUATIONS = 4_000
"""Evaluations of pending filters that cost about as much as building a small layer."""

_EVALUATION_TERMS = 8
"""A pending filter counts as one evaluation, and one more for every so many terms."""

Matches = list[tuple[Block, list[int] | None, tuple[Integers, Integers]]]
"""For each block the rows of a batch that it was read for (None: all), and what matches."""


class BitsetIndex(Generic[Id, Destination]):
    """A MatchingIndex on numpy bitsets."""

    def __init__(self, submit: Submit | None = None) -> None:
        self._layers = Layers(submit)
        self._forget_numbers()
        self._destination_numbers: dict[Destination, int] = {}
        self._known_answers: dict[int, tuple[Destination, ...]] = {}
        self._pending: dict[int, Member] = {}
        self._pending_weight = self._pending_terms = 0
        self._evaluations = 0

    def _forget_numbers(self) -> None:
        self._numbers: dict[Id, int] = {}
        self._ids: npt.NDArray[np.object_] = np.empty(64, np.object_)  # grows by doubling
        self._members: list[Member | None] = []
        self._layers.begin_anew(self._members)
        self._free: list[int] = []
        self._terms = 0
        self._rare = RareLists()

    # Adding and removing

    def add(self, subscription: Id, filter_: Filter, destination: Destination) -> None:
        """Add a subscription; its id must not be there yet."""
        assert subscription not in self._numbers, f"{subscription!r} is there already"
        place = self._destination_numbers.setdefault(destination, len(self._destination_numbers))
        if self._free:
            number = self._free.pop()
        else:
            number = len(self._members)
            self._members.append(None)
            if number == len(self._ids):
                self._ids = np.concatenate([self._ids, np.empty_like(self._ids)])
        self._ids[number] = subscription
        self._numbers[subscription] = number
        member = Member(number, place, filter_)
        self._members[number] = self._pending[number] = member
        self._pending_weight += _weight(filter_)
        self._pending_terms += (terms := terms_of(filter_.tree))
        self._terms += terms

    def add_many(self, entries: Iterable[tuple[Id, Filter, Destination]]) -> None:
        """Add many subscriptions at once."""
        for entry in entries:
            self.add(*entry)

    def hear_of(self, destinations: Iterable[Destination]) -> None:
        """Take these in as the next destinations."""
        for destination in destinations:
            self._destination_numbers.setdefault(destination, len(self._destination_numbers))

    def remove(self, subscription: Id) -> None:
        """Remove a subscription, which must be there."""
        number = self._numbers.pop(subscription)
        member = self._members[number]
        assert member is not None, f"{subscription!r} has a number, but no filter"
        terms = terms_of(member.filter.tree)
        self._terms -= terms
        if self._pending.pop(number, None) is not None:
            self._pending_weight -= _weight(member.filter)
            self._pending_terms -= terms
        elif not self._layers.remove(number):
            self._rare.remove(number)
        self._ids[number] = self._members[number] = None
        self._free.append(number)
        if not self._numbers:
            self._forget_numbers()

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, subscription: Id) -> bool:
        return subscription in self._numbers

    # Matching

    def destinations(self, batch: Batch) -> list[tuple[Destination, ...]]:
        """Return for each notification the destinations with any match behind them."""
        return list(map(self._destinations_in, self.reached(batch)))

    def reached(self, batch: Batch) -> list[int]:
        """Return the same as bits, in the order in which destinations were heard of."""
        if not self._numbers:
            return [0] * len(batch)
        self._tidy(len(batch))
        found = self._blocks_reached(batch)
        if self._evaluates():
            found = list(map(self._with_evaluated, found, batch))
        return found

    def reached_and_matches(
        self, batch: Batch, destination: Destination
    ) -> tuple[list[int], list[list[Id]]]:
        """Return what `reached` does, and the matches behind one destination, in one go."""
        place = self._destination_numbers.get(destination)
        if place is None or not self._numbers:
            return self.reached(batch), [[] for _ in batch]
        self._tidy(len(batch))
        matches: Matches = []
        found = self._blocks_reached(batch, place, matches)
        joined = self._joined(batch, matches, place)
        if self._evaluates():  # what stands behind it has been evaluated just now
            here, rows = 1 << place, set(joined[0].tolist())
            found = [
                self._with_evaluated(bits | here, batch[row]) & (-1 if row in rows else ~here)
                for row, bits in enumerate(found)
            ]
        return found, self._ids_of(batch, joined)

    def _blocks_reached(
        self, batch: Batch, behind: int = -1, matches: Matches | None = None
    ) -> list[int]:
        """Return for each notification the bits of destinations that blocks find.

        Add to `matches`, if they are asked for, those behind one destination.
        """
        words = -(-len(self._destination_numbers) // 64)
        reached: npt.NDArray[np.bool_] | None = None
        for layer in self._layers:
            for block, rows in layer.blocks_for(batch):
                if reached is None:
                    reached = np.zeros((len(batch), 64 * words), np.bool_)
                part = batch if rows is None else [batch[row] for row in rows]
                some = reached if rows is None else reached[rows]
                if matches is None:
                    block.mark_reached(part, some)
                else:
                    matches.append((block, rows, block.mark_and_match(part, some, behind)))
                if rows is not None:
                    reached[rows] = some
        if reached is None:
            return [0] * len(batch)
        packed = np.packbits(reached, axis=1, bitorder="little")
        if words == 1:
            found: list[int] = packed.view("<u8")[:, 0].tolist()
            return found
        octets, width = packed.tobytes(), 8 * words
        return [
            int.from_bytes(octets[start : start + width], "little")
            for start in range(0, len(octets), width)
        ]

    def _with_evaluated(self, bits: int, attributes: Attributes) -> int:
        """Return the bits with those of destinations that only evaluation finds."""
        for layer in self._layers:
            if layer.has_lists:
                bits = layer.reached(attributes, bits)
        bits = self._rare.reached(attributes, bits)
        for member in self._pending.values():
            if not bits >> member.destination & 1 and member.filter.matches(attributes):
                bits |= 1 << member.destination
        return bits

    def _destinations_in(self, bits: int) -> tuple[Destination, ...]:
        """Return the destinations whose bits are on; the same few answers come again and again."""
        answer = self._known_answers.get(bits)
        if answer is None:
            if len(self._known_answers) >= 4096:
                self._known_answers.clear()
            answer = tuple(
                place
                for number, place in enumerate(self._destination_numbers)
                if bits >> number & 1
            )
            self._known_answers[bits] = answer
        return answer

    def matches(self, batch: Batch) -> list[list[Id]]:
        """Return for each notification the subscriptions that match, in an order that repeats."""
        return self._ids_of(batch, self.match_numbers(batch))

    def _ids_of(self, batch: Batch, matches: tuple[Integers, Integers]) -> list[list[Id]]:
        rows, numbers = matches
        ids = self._ids[numbers].tolist()
        ends = np.searchsorted(rows, np.arange(len(batch) + 1)).tolist()
        return [ids[start:end] for start, end in pairwise(ends)]

    def match_numbers(self, batch: Batch) -> tuple[Integers, Integers]:
        """Return the matches as rows of the batch, ascending, and numbers of subscriptions."""
        self._tidy(len(batch))
        matches: Matches = []
        for layer in self._layers:
            for block, rows in layer.blocks_for(batch):
                part = batch if rows is None else [batch[row] for row in rows]
                matches.append((block, rows, block.matches(part)))
        return self._joined(batch, matches)

    def _joined(
        self, batch: Batch, matches: Matches, behind: int | None = None
    ) -> tuple[Integers, Integers]:
        """Join matches of blocks and those (behind one destination) that only evaluation finds."""
        found = [
            each if rows is None else (np.array(rows, np.int64)[each[0]], each[1])
            for _, rows, each in matches
        ]
        comes_once = not any(block.shares_owners for block, _, _ in matches)
        evaluated = (
            []
            if not self._evaluates()
            else [
                (row, number)
                for row, attributes in enumerate(batch)
                for number in self._evaluated_matches(attributes, behind)
            ]
        )
        if evaluated or not found:
            pairs = np.array(evaluated, np.int64).reshape(-1, 2)
            found.append((pairs[:, 0], pairs[:, 1]))
        if len(found) == 1 and comes_once and not evaluated:
            return found[0]
        # Several alternatives of a filter may hold, in one block or in several.
        pairs = np.unique(np.concatenate([rows << 32 | numbers for rows, numbers in found]))
        return pairs >> 32, pairs & 0xFFFFFFFF

    def _evaluates(self) -> bool:
        return (
            bool(self._pending)
            or bool(self._rare)
            or any(layer.has_lists for layer in self._layers)
        )

    def _evaluated_matches(self, attributes: Attributes, behind: int | None) -> Iterator[int]:
        for layer in self._layers:
            yield from layer.listed_matches(attributes, behind)
        yield from self._rare.matches(attributes, behind)
        for number, member in self._pending.items():
            if behind in (None, member.destination) and member.filter.matches(attributes):
                yield number

    # Keeping it fast

    def tidy(self) -> None:
        """Put what was added where it is found fast; else the next notification does so."""
        self._tidy(0)

    def _tidy(self, reads: int) -> None:
        """Build and join layers where that pays, before they are read for `reads` notifications."""
        self._layers.take_in_joined()
        few_left = len(self) * SHRINK < len(self._members) > _PENDING_MAX
        if few_left and self._layers.builds_at_once(self._terms):
            self._add_all_anew()
        self._evaluations += self._pending_weight * reads
        if (
            len(self._pending) > _PENDING_MAX
            or self._pending_terms > _PENDING_TERMS_MAX
            or self._evaluations > _BUILD_EVALUATIONS
        ):
            self._index_pending()
        self._layers.shrink()
        if reads:
            self._layers.join_if_read_often(len(self))

    def _index_pending(self) -> None:
        members = list(self._pending.values())
        if self._terms > _SMALL_TERMS:
            members = self._rare.take(members)
        self._pending.clear()
        self._pending_weight = self._pending_terms = self._evaluations = 0
        if members:
            self._layers.build(members)

    def _add_all_anew(self) -> None:
        """Number what is left from 0 on: lists of numbers never become shorter otherwise."""
        ids, members = self._ids, [member for member in self._members if member is not None]
        places = list(self._destination_numbers)
        self._forget_numbers()
        self._pending = {}
        self._pending_weight = self._pending_terms = 0
        for old in members:
            self.add(ids[old.number], old.filter, places[old.destination])


def _weight(filter_: Filter) -> int:
    """Return how many evaluations one of a pending filter counts as."""
    return 1 + terms_of(filter_.tree) // _EVALUATION_TERMS
