"""Notifications that are staged, and published all together or not at all.

Whoever writes batches (a streaming query, say) stages the rows of a batch in parts, each perhaps in
several attempts, and then commits: it names the attempts that count. The decision is on disk before
the first of them is published, so after a crash the broker goes on with it; and a batch that was
committed before is known, whoever sends it again, with whatever attempts.

    Staged      a row of an attempt at a part of a batch
    Decision    which attempts of a batch are published
"""

from collections.abc import Iterable, Sequence
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


class Commit:
    """A batch that is being published: `rows` are where its rows are in the log, in order."""

    def __init__(self, decision: Decision, position: int, rows: list[int], done: int) -> None:
        self.decision = decision
        self.position = position
        self.rows = rows
        self.done = done
        """How many of them are published."""

    @property
    def key(self) -> tuple[bytes, int]:
        """Whose batch it is, and which."""
        return self.decision.source, self.decision.batch

    def sequence(self, row: int) -> int:
        """Return the number by which a row is known to be published."""
        return self.decision.batch << SEQUENCE_BITS | row


class Staging:
    """What is staged at one broker, and what is being published of it."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._store = shelf.store
        self._rows: dict[Attempt, list[int]] = {}
        self.commits: dict[tuple[bytes, int], Commit] = {}
        self._decisions: list[tuple[int, Decision]] = []

    # From earlier lives

    def found(self, position: int, record: Staged | Decision) -> None:
        """Take in a record from an earlier life."""
        if isinstance(record, Decision):
            self._decisions.append((position, record))
            return
        attempt = Attempt(record.source, record.batch, record.part, record.attempt)
        rows = self._rows.setdefault(attempt, [])
        if record.row == len(rows):
            rows.append(position)
        elif record.row < len(rows):  # it was written again, further on
            self._shelf.store.free(rows[record.row])
            rows[record.row] = position
        else:  # one before it is damaged: this attempt does not count any more
            self._shelf.store.free(position)

    def recovered(self, publishers: Publishers) -> None:
        """Go on with batches that were decided; drop what belongs to those that are done."""
        for position, decision in self._decisions:
            if self.is_committed(decision.source, decision.batch):
                self._store.free(position)
            else:
                self._begin(decision, position, publishers.last(decision.source))
        self._decisions.clear()
        for attempt in list(self._rows):
            is_decided = (attempt.source, attempt.batch) in self.commits
            if not is_decided and self.is_committed(attempt.source, attempt.batch):
                self.drop(attempt)

    def _begin(self, decision: Decision, position: int, last: int) -> Commit:
        source, batch = decision.source, decision.batch
        attempts = [Attempt(source, batch, part, number) for part, number in decision.attempts]
        rows = [row for each in attempts for row in self._rows.get(each, ())]
        commit = Commit(decision, position, rows, 0)
        if last >> SEQUENCE_BITS == batch:
            commit.done = min(len(rows), (last & (1 << SEQUENCE_BITS) - 1) + 1)
        self.commits[commit.key] = commit
        return commit

    # Staging

    def staged(self, attempt: Attempt) -> int:
        """Return how many rows of an attempt are there."""
        return len(self._rows.get(attempt, ()))

    def stage(self, attempt: Attempt, first: int, bodies: Sequence[bytes]) -> None:
        """Keep rows of an attempt, from the row `first` on; those that are there are left out."""
        rows = self._rows.setdefault(attempt, [])
        if first > len(rows):
            raise InvalidNotification(f"row {first:,} is staged after row {len(rows):,}")
        for row, body in enumerate(bodies, first):
            if row >= len(rows):
                rows.append(self._shelf.add(Staged(*attempt, row, body), 1))

    def drop(self, attempt: Attempt) -> None:
        """Forget an attempt."""
        for position in self._rows.pop(attempt, ()):
            self._shelf.release(position)

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
        for each in list(self._rows):
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
        attempt = Attempt(record.source, record.batch, record.part, record.attempt)
        rows = self._rows.get(attempt, [])
        if record.row < len(rows):
            before, rows[record.row] = rows[record.row], position
            commit = self.commits.get((record.source, record.batch))
            if commit is not None:
                commit.rows[commit.rows.index(before)] = position
