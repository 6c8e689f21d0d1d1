"""The fast index: blocks of bits, with a little log-structured care for adds and removes.

New subscriptions wait in `pending` and are evaluated one by one; when they are too many for
that, they become a block, together with all blocks that are not much larger. So blocks grow
geometrically, and no change ever costs a rebuild of everything. Reading many blocks costs more
than reading one; when that has cost as much as joining them would, they are joined.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Generic

import numpy as np
import numpy.typing as npt

from octopis.core.filters import Filter
from octopis.core.matching.block import Block
from octopis.core.matching.column import Words
from octopis.core.matching.interface import Batch, Destination, Id
from octopis.core.matching.layout import Member, slots_of
from octopis.core.matching.positions import Integers

_PENDING_MAX = 64
_GROWTH = 2
"""A new block takes in every block at most so many times its size."""

_BUILD_EVALUATIONS = 4_000
"""Evaluations of pending filters that cost about as much as building a small block."""

_READ_MEMBERS = 10
"""Members that can be built anew at about the cost of reading one more block."""


class BitsetIndex(Generic[Id, Destination]):
    """A MatchingIndex on numpy bitsets."""

    def __init__(self) -> None:
        self._numbers: dict[Id, int] = {}
        self._ids: npt.NDArray[np.object_] = np.empty(64, np.object_)  # grows by doubling
        self._members: list[Member | None] = []
        self._block_of: list[Block | None] = []
        self._free: list[int] = []
        self._destination_numbers: dict[Destination, int] = {}
        self._known_answers: dict[bytes, tuple[Destination, ...]] = {}
        self._pending: dict[int, Member] = {}
        self._blocks: list[Block] = []
        self._evaluations = 0
        self._extra_reads = 0

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
            self._block_of.append(None)
            if number == len(self._ids):
                self._ids = np.concatenate([self._ids, np.empty_like(self._ids)])
        self._ids[number] = subscription
        self._numbers[subscription] = number
        member = Member(number, place, filter_)
        self._members[number] = self._pending[number] = member

    def add_many(self, entries: Iterable[tuple[Id, Filter, Destination]]) -> None:
        """Add many subscriptions at once."""
        for entry in entries:
            self.add(*entry)

    def remove(self, subscription: Id) -> None:
        """Remove a subscription, which must be there."""
        number = self._numbers.pop(subscription)
        block = self._block_of[number]
        if block is None:
            del self._pending[number]
        else:
            block.remove(number)
        self._block_of[number] = self._members[number] = None
        self._free.append(number)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, subscription: Id) -> bool:
        return subscription in self._numbers

    # Matching

    def destinations(self, batch: Batch) -> list[tuple[Destination, ...]]:
        """Return for each notification the destinations with any match behind them."""
        if not self._numbers:
            return [()] * len(batch)
        self._tidy(len(batch))
        reached = np.zeros((len(batch), len(self._destination_numbers)), np.bool_)
        for block in self._blocks:
            self._mark_reached(block, batch, reached)
        for member in self._pending.values():
            for row, attributes in enumerate(batch):
                if not reached[row, member.destination] and member.filter.matches(attributes):
                    reached[row, member.destination] = True
        packed = np.packbits(reached, axis=1)
        width, keys = packed.shape[1], packed.tobytes()
        return [self._destinations_in(keys[at : at + width]) for at in range(0, len(keys), width)]

    def _mark_reached(self, block: Block, batch: Batch, reached: npt.NDArray[np.bool_]) -> None:
        candidates = block.candidates(batch)
        certain = candidates & ~block.residual_bits if block.residual else candidates
        if not block.segments:
            return
        first_words = [segment.first for segment in block.segments]
        anything = np.bitwise_or.reduceat(certain, first_words, axis=1) != 0
        for segment, reaches in zip(block.segments, anything.T, strict=True):
            if segment.destination is not None:
                reached[:, segment.destination] |= reaches
            elif reaches.any():
                rows, slots = slots_of(certain[:, segment.first : segment.last])
                reached[rows, block.destinations[slots + 64 * segment.first]] = True
        if block.residual:
            rows, slots = slots_of(candidates & block.residual_bits)
            for row, slot, place in zip(
                rows.tolist(), slots.tolist(), block.destinations[slots].tolist(), strict=True
            ):
                if not reached[row, place] and block.residual[slot].truth(batch[row]) is True:
                    reached[row, place] = True

    def _destinations_in(self, key: bytes) -> tuple[Destination, ...]:
        """Return the destinations whose bits are on; the same few answers come again and again."""
        answer = self._known_answers.get(key)
        if answer is None:
            if len(self._known_answers) >= 4096:
                self._known_answers.clear()
            flags = np.unpackbits(np.frombuffer(key, np.uint8))
            places = list(self._destination_numbers)
            answer = tuple(places[number] for number in np.flatnonzero(flags).tolist())
            self._known_answers[key] = answer
        return answer

    def matches(self, batch: Batch) -> list[list[Id]]:
        """Return for each notification the subscriptions that match, in an order that repeats."""
        rows, numbers = self.match_numbers(batch)
        ids = self._ids[numbers].tolist()
        ends = np.searchsorted(rows, np.arange(len(batch) + 1)).tolist()
        return [ids[start:end] for start, end in pairwise(ends)]

    def match_numbers(self, batch: Batch) -> tuple[Integers, Integers]:
        """Return the matches as rows of the batch, ascending, and numbers of subscriptions."""
        self._tidy(len(batch))
        found = [self._match_block(block, batch) for block in self._blocks]
        if self._pending:
            waiting = [
                (row, number)
                for row, attributes in enumerate(batch)
                for number, member in self._pending.items()
                if member.filter.matches(attributes)
            ]
            pairs = np.array(waiting, np.int64).reshape(-1, 2)
            found.append((pairs[:, 0], pairs[:, 1]))
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if len(found) == 1:
            return found[0]
        rows = np.concatenate([rows for rows, _ in found])
        numbers = np.concatenate([numbers for _, numbers in found])
        order = np.argsort(rows, kind="stable")
        return rows[order], numbers[order]

    def _match_block(self, block: Block, batch: Batch) -> tuple[Integers, Integers]:
        candidates = block.candidates(batch)
        if block.residual:
            self._evaluate(block, batch, candidates)
        rows, slots = slots_of(candidates)
        numbers = block.owners[slots]
        if block.shares_owners:  # several conjunctions of one filter may hold
            pairs = np.unique(rows << 32 | numbers)
            return pairs >> 32, pairs & 0xFFFFFFFF
        return rows, numbers

    def _evaluate(self, block: Block, batch: Batch, candidates: Words) -> None:
        """Clear the bits of candidates whose other terms do not hold."""
        rows, slots = slots_of(candidates & block.residual_bits)
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            if block.residual[slot].truth(batch[row]) is not True:
                candidates[row, slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))

    # Blocks

    def _tidy(self, reads: int) -> None:
        """Build and join blocks where that pays, before they are read for `reads` notifications."""
        self._evaluations += len(self._pending) * reads
        if len(self._pending) > _PENDING_MAX or self._evaluations > _BUILD_EVALUATIONS:
            self._build(list(self._pending.values()))
            self._pending.clear()
            self._evaluations = 0
        self._blocks = [block for block in self._blocks if block.size]
        if len(self._blocks) > 1:
            self._extra_reads += len(self._blocks) - 1
            if self._extra_reads * _READ_MEMBERS > len(self):
                self._build([])
                self._extra_reads = 0

    def _build(self, members: list[Member]) -> None:
        """Make a block of `members` and all blocks not much larger (of all, if there are none)."""
        joining_all = not members
        while self._blocks:
            smallest = min(self._blocks, key=lambda block: block.size)
            if not joining_all and smallest.size > _GROWTH * len(members):
                break
            self._blocks.remove(smallest)
            members += [
                member for member in smallest.members if self._members[member.number] is member
            ]
        if members:
            block = Block(members)
            self._blocks.append(block)
            for member in members:
                self._block_of[member.number] = block
