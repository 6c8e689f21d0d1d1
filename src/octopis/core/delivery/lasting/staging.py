"""Notifications that are staged, and published all together or not at all.

Whoever writes batches (a streaming query, say) stages the rows of a batch in parts, each perhaps in
several attempts, and then commits: it names the attempts that count. The decision is on disk before
the first of them is published, so after a crash the broker goes on with it; and a batch that was
committed before is known, whoever sends it again, with whatever attempts.

    Staged      a row of an attempt at a part of a batch
    Decision    which attempts of a batch are published

Staged rows stay until their batch is published, so they have a share of the quota for themselves: a
batch that is longer can never be committed, and is refused. Whoever staged first may go on where
others wait for room, so that no two wait for each other; and what nobody has gone on with for long
is dropped.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from octopis.core.delivery.lasting.memory import Publishers
from octopis.core.delivery.lasting.records import Decision, Staged
from octopis.core.delivery.lasting.store import Shelf
from octopis.errors import InvalidNotification

STAGED_SHARE = 0.2
"""So much of the quota is for the rows of one batch, or of several that are shorter together."""

_ROW_BYTES = 64
"""About what a row takes on disk beside its body."""

_KIND = "committed"
SEQUENCE_BITS = 32
"""A row's number within its batch stands below the batch's number."""


class Attempt(NamedTuple):
    """One attempt at a part of a batch."""

    source: bytes
    batch: int
    part: int
    attempt: int


class _Rows:
    """The rows of an attempt: where they are in the log, how long, and when the last came."""

    __slots__ = ("bytes", "staged_ns", "where")

    def __init__(self, staged_ns: int) -> None:
        self.where: list[int] = []
        self.bytes = 0
        self.staged_ns = staged_ns


class Commit:
    """A batch that is being published: `parts` are where its rows are in the log, in order."""

    def __init__(self, decision: Decision, position: int, parts: list[list[int]]) -> None:
        self.decision = decision
        self.position = position
        self._parts = parts
        self.count = sum(map(len, parts))
        self.done = 0
        """How many rows are published."""

    def where(self, start: int, end: int) -> list[int]:
        """Return where some of the rows are in the log."""
        found: list[int] = []
        for part in self._parts:
            found += islice(part, max(0, start), max(0, end))
            start, end = start - len(part), end - len(part)
        return found

    @property
    def key(self) -> tuple[bytes, int]:
        """Whose batch it is, and which."""
        return self.decision.source, self.decision.batch

    def sequence(self, row: int) -> int:
        """Return the number by which a row is known to be published."""
        return self.decision.batch << SEQUENCE_BITS | row


class Staging:
    """What is staged at one broker, and what is being published of it."""

    def __init__(self, shelf: Shelf, quota_bytes: int) -> None:
        self._shelf = shelf
        self._store = shelf.store
        self.bytes_max = int(STAGED_SHARE * quota_bytes)
        self.bytes = 0
        """How many are staged, about."""

        self._rows: dict[Attempt, _Rows] = {}
        self.commits: dict[tuple[bytes, int], Commit] = {}
        self._decisions: list[tuple[int, Decision]] = []

    # From earlier lives

    def found(self, position: int, record: Staged | Decision) -> None:
        """Take in a record from an earlier life."""
        if isinstance(record, Decision):
            self._decisions.append((position, record))
            return
        attempt = Attempt(record.source, record.batch, record.part, record.attempt)
        rows = self._rows.setdefault(attempt, _Rows(0))
        if record.row == len(rows.where):
            self._add(rows, position, len(record.body))
        elif record.row < len(rows.where):  # it was written again, further on
            self._shelf.store.free(rows.where[record.row])
            rows.where[record.row] = position
        else:  # one before it is damaged: this attempt does not count any more
            self._shelf.store.free(position)

    def recovered(self, publishers: Publishers, now_ns: int) -> None:
        """Go on with batches that were decided; drop what belongs to those that are done."""
        for rows in self._rows.values():
            rows.staged_ns = now_ns
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
        parts = [self._rows[each].where for each in attempts if each in self._rows]
        commit = Commit(decision, position, parts)
        if last >> SEQUENCE_BITS == batch:
            commit.done = min(commit.count, (last & (1 << SEQUENCE_BITS) - 1) + 1)
        self.commits[commit.key] = commit
        return commit

    # Staging

    def staged(self, attempt: Attempt) -> int:
        """Return how many rows of an attempt are there."""
        rows = self._rows.get(attempt)
        return len(rows.where) if rows is not None else 0

    def has_room(self, attempt: Attempt, first: int, bodies: Sequence[bytes]) -> bool:
        """Tell whether these rows may be staged now. Raises InvalidNotification: they never may.

        Where room is short, attempts are dropped that later ones have followed.
        """
        fresh = bodies[max(0, self.staged(attempt) - first) :]
        size = sum(map(len, fresh)) + _ROW_BYTES * len(fresh)
        if self.bytes + size <= self.bytes_max:
            return True
        self._drop_followed(attempt)
        source = attempt.source
        own = sum(rows.bytes for each, rows in self._rows.items() if each.source == source)
        if own + size > self.bytes_max:
            raise InvalidNotification(
                f"batch {attempt.batch} is too long for this broker: {self.bytes_max:,} bytes, "
                f"{STAGED_SHARE:.0%} of durability.quota_bytes, may be staged. Raise that and "
                "restart the broker, or write shorter batches (maxOffsetsPerTrigger): one that a "
                "checkpoint has begun stays as long as it is"
            )
        return self.bytes + size <= self.bytes_max or next(iter(self._rows)).source == source

    def _drop_followed(self, last: Attempt) -> None:
        newest: dict[tuple[bytes, int, int], Attempt] = {}
        for each in dict.fromkeys([*self._rows, last]):  # in the order in which they began
            before = newest.pop(each[:3], None)
            newest[each[:3]] = each
            if before is not None and before[:2] not in self.commits:
                self.drop(before)

    def stage(self, attempt: Attempt, first: int, bodies: Sequence[bytes], now_ns: int) -> None:
        """Keep rows of an attempt, from the row `first` on; those that are there are left out."""
        rows = self._rows.get(attempt)
        there = 0 if rows is None else len(rows.where)
        if first > there:
            raise InvalidNotification(f"row {first:,} is staged after row {there:,}")
        rows = self._rows.setdefault(attempt, _Rows(now_ns))
        rows.staged_ns = now_ns
        for row, body in enumerate(bodies, first):
            if row >= there:
                self._add(rows, self._shelf.add(Staged(*attempt, row, body), 1), len(body))

    def _add(self, rows: _Rows, position: int, size: int) -> None:
        rows.where.append(position)
        rows.bytes += size + _ROW_BYTES
        self.bytes += size + _ROW_BYTES

    def drop(self, attempt: Attempt) -> None:
        """Forget an attempt."""
        rows = self._rows.pop(attempt, None)
        if rows is not None:
            self.bytes -= rows.bytes
            for position in rows.where:
                self._shelf.release(position)

    def drop_older(self, than_ns: int) -> Iterator[tuple[Attempt, int]]:
        """Drop attempts that nobody has gone on with since; yield each, with its rows."""
        for each, rows in list(self._rows.items()):
            if rows.staged_ns < than_ns and each[:2] not in self.commits:
                self.drop(each)
                yield each, len(rows.where)

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
                        "here: stage and commit at the same broker, within durability.staged_s, "
                        "and write the batch again"
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
        rows = self._rows.get(attempt)
        if rows is not None and record.row < len(rows.where):
            rows.where[record.row] = position
