"""Notifications that are staged, and published all together or not at all.

Whoever writes batches (a streaming query, say) stages the rows of a batch in parts, each perhaps in
several attempts, and then commits: it names the attempts that count. The decision is on disk before
the first of them is published, so after a crash the broker goes on with it; and a batch that was
committed before is known, whoever sends it again, with whatever attempts.

    Staged      rows of an attempt at a part of a batch: a piece, as it came
    Decision    which attempts of a batch are published
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from octopis.core.delivery.lasting.memory import Publishers
from octopis.core.delivery.lasting.records import Decision, Staged
from octopis.core.delivery.lasting.store import Shelf
from octopis.errors import InvalidNotification

_KIND = "committed"
SEQUENCE_BITS = 32
"""A row's number within its batch stands below the batch's number."""


class Attempt(NamedTuple):
    """One attempt at a part of a batch."""

    source: bytes
    batch: int
    part: int
    attempt: int


@dataclass(slots=True)
class Piece:
    """So many rows of an attempt, from the row `first` on: one record of the log."""

    position: int
    first: int
    count: int

    @property
    def until(self) -> int:
        """The row behind the last one."""
        return self.first + self.count


class Commit:
    """A batch that is being published: `pieces` are where its `count` rows are, in order."""

    def __init__(self, decision: Decision, position: int, pieces: list[Piece]) -> None:
        self.decision = decision
        self.position = position
        self.pieces = pieces
        self._ends = list(accumulate(each.count for each in pieces))
        self.count = self._ends[-1] if pieces else 0
        self.done = 0
        """How many of them are published."""

    @property
    def key(self) -> tuple[bytes, int]:
        """Whose batch it is, and which."""
        return self.decision.source, self.decision.batch

    def sequence(self, row: int) -> int:
        """Return the number by which a row is known to be published."""
        return self.decision.batch << SEQUENCE_BITS | row

    def piece(self, row: int) -> tuple[Piece, int]:
        """Return where a row is, and the number of the first row there in the whole batch."""
        number = bisect_right(self._ends, row)
        piece = self.pieces[number]
        return piece, self._ends[number] - piece.count


class Staging:
    """What is staged at one broker, and what is being published of it."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._store = shelf.store
        self._pieces: dict[Attempt, list[Piece]] = {}
        self.commits: dict[tuple[bytes, int], Commit] = {}
        self._found: dict[Attempt, dict[int, Piece]] = {}
        self._decisions: dict[tuple[bytes, int], tuple[int, Decision]] = {}

    # From earlier lives

    def found(self, position: int, record: Staged | Decision) -> None:
        """Take in a record from an earlier life."""
        if isinstance(record, Decision):
            key = record.source, record.batch
            if key in self._decisions:  # it was written again, further on
                self._store.free(self._decisions[key][0])
            self._decisions[key] = position, record
            return
        pieces = self._found.setdefault(_attempt_of(record), {})
        before = pieces.get(record.first)
        if before is not None:  # it was written again, further on
            self._store.free(before.position)
        pieces[record.first] = Piece(position, record.first, record.count)

    def recovered(self, publishers: Publishers) -> None:
        """Go on with batches that were decided; drop what belongs to those that are done."""
        for attempt, found in self._found.items():
            self._pieces[attempt] = self._in_order(found)
        self._found.clear()
        for position, decision in self._decisions.values():
            if self.is_committed(decision.source, decision.batch):
                self._store.free(position)
            else:
                self._begin(decision, position, publishers.last(decision.source))
        self._decisions.clear()
        for attempt in list(self._pieces):
            is_decided = (attempt.source, attempt.batch) in self.commits
            if not is_decided and self.is_committed(attempt.source, attempt.batch):
                self.drop(attempt)

    def _in_order(self, found: dict[int, Piece]) -> list[Piece]:
        """Return the pieces of an attempt, up to one that is damaged; what is left is freed.

        They may have been written again, so they lie in any order in the log.
        """
        pieces = []
        until = 0
        while (piece := found.pop(until, None)) is not None:
            pieces.append(piece)
            until = piece.until
        for left in found.values():
            self._store.free(left.position)
        return pieces

    def _begin(self, decision: Decision, position: int, last: int) -> Commit:
        source, batch = decision.source, decision.batch
        attempts = [Attempt(source, batch, part, number) for part, number in decision.attempts]
        pieces = [piece for each in attempts for piece in self._pieces.get(each, ())]
        commit = Commit(decision, position, pieces)
        if last >> SEQUENCE_BITS == batch:
            commit.done = min(commit.count, (last & (1 << SEQUENCE_BITS) - 1) + 1)
        self.commits[commit.key] = commit
        return commit

    # Staging

    def staged(self, attempt: Attempt) -> int:
        """Return how many rows of an attempt are there."""
        pieces = self._pieces.get(attempt)
        return pieces[-1].until if pieces else 0

    def stage(self, attempt: Attempt, first: int, count: int, rows: bytes) -> None:
        """Keep so many rows of an attempt, from the row `first` on, which is the next."""
        there = self.staged(attempt)
        if first > there:
            raise InvalidNotification(f"row {first:,} is staged after row {there:,}")
        assert first == there, "what is there already is left out"
        position = self._shelf.add(Staged(*attempt, first, count, rows), 1)
        self._pieces.setdefault(attempt, []).append(Piece(position, first, count))

    def drop(self, attempt: Attempt) -> None:
        """Forget an attempt."""
        for piece in self._pieces.pop(attempt, ()):
            self._shelf.release(piece.position)

    def _piece(self, record: Staged) -> Piece | None:
        """Return the piece that a record holds, if there is one."""
        pieces = self._pieces.get(_attempt_of(record), [])
        place = bisect_left(pieces, record.first, key=attrgetter("first"))
        is_there = place < len(pieces) and pieces[place].first == record.first
        return pieces[place] if is_there else None

    # Committing

    def is_committed(self, source: bytes, batch: int) -> bool:
        """Tell whether a batch, or a later one of the same source, was published."""
        value = self._store.items(_KIND).get(source.hex())
        return value is not None and int.from_bytes(value, "big", signed=True) >= batch

    def decide(
        self, source: bytes, batch: int, attempts: Iterable[tuple[int, int, int]]
    ) -> Commit | None:
        """Return the batch to publish, of these parts, attempts and row counts; None: it was.

        Where it is decided already, that decision stands. Raises InvalidNotification where rows
        are not here.
        """
        if (source, batch) in self.commits:
            return self.commits[source, batch]
        chosen = []
        if not self.is_committed(source, batch):
            for part, number, count in attempts:
                there = self.staged(Attempt(source, batch, part, number))
                if there != count:
                    raise InvalidNotification(
                        f"{there:,} of {count:,} rows of part {part} of batch {batch} are staged "
                        "here: stage and commit at the same broker, and write the batch again"
                    )
                chosen.append((part, number))
        for each in list(self._pieces):
            is_other = (each.part, each.attempt) not in chosen or each.batch != batch
            if each.source == source and each.batch <= batch and is_other:
                self.drop(each)
        if self.is_committed(source, batch):
            return None
        decision = Decision(source, batch, tuple(chosen))
        position = self._shelf.add(decision, 1)
        return self._begin(decision, position, -1)

    def finish(self, commit: Commit) -> None:
        """Know that all rows of a batch are published, in records before this."""
        source, batch = commit.key
        self._store.put(_KIND, source.hex(), batch.to_bytes(8, "big", signed=True))
        for part, number in commit.decision.attempts:
            self.drop(Attempt(source, batch, part, number))
        self._shelf.release(commit.position)
        del self.commits[commit.key]

    def moved(self, position: int, record: Staged | Decision) -> None:
        """Know that a record is at another place of the log now."""
        if isinstance(record, Decision):
            commit = self.commits.get((record.source, record.batch))
            if commit is not None:
                commit.position = position
            return
        piece = self._piece(record)
        if piece is not None:
            piece.position = position


def _attempt_of(record: Staged) -> Attempt:
    return Attempt(record.source, record.batch, record.part, record.attempt)
