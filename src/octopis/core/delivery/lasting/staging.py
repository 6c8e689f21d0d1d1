"""Notifications that are staged, and published all together or not at all.

Whoever writes batches (a streaming query, say) stages the rows of a batch in parts, each perhaps in
several attempts, and then commits: it names the attempts that count. The decision is on disk before
the first of them is published, so after a crash the broker goes on with it; and a batch that was
committed before is known, whoever sends it again, with whatever attempts. Where rows of a decided
batch are damaged nothing more of it is published, and the decision is undone: the batch is to be
written again, and what was published of it is known by the numbers of its rows. Batches of one
query are published one after the other, as they were decided: what is published of a later one is
all that is known of those before it.

    Staged      rows of an attempt at a part of a batch: a piece, as it came
    Decision    which attempts of a batch are published

Staged rows stay until their batch is published, so they have a share of the quota for themselves: a
batch that is longer can never be committed, and is refused. Whoever staged first may go on where
others wait for room, so that no two wait for each other; and what nobody has gone on with for long
is dropped.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter

from octopis.core.delivery.lasting.batches import SEQUENCE_BITS, Attempt, Commit, Piece
from octopis.core.delivery.lasting.committed import QUERIES_MAX, Committed
from octopis.core.delivery.lasting.memory import Publishers
from octopis.core.delivery.lasting.records import Decision, Staged
from octopis.core.delivery.lasting.store import Shelf
from octopis.errors import InvalidNotification

STAGED_SHARE = 0.2
"""So much of the quota is for the rows of one batch, or of several that are shorter together."""

_PIECE_BYTES = 64
"""About what a piece takes on disk beside its rows."""


@dataclass(slots=True)
class _Rows:
    """The rows of an attempt: their pieces, how long these are, and when the last came."""

    staged_ns: int
    pieces: list[Piece] = field(default_factory=list)
    bytes: int = 0

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.pieces[-1].until if self.pieces else 0


class Staging:
    """What is staged at one broker, and what is being published of it."""

    def __init__(self, shelf: Shelf, quota_bytes: int, queries_max: int = QUERIES_MAX) -> None:
        self._shelf = shelf
        self._store = shelf.store
        self.bytes_max = int(STAGED_SHARE * quota_bytes)
        self.bytes = 0
        """How many are staged, about."""

        self._committed = Committed(shelf.store, queries_max)
        self._rows: dict[Attempt, _Rows] = {}
        self.commits: dict[tuple[bytes, int], Commit] = {}
        self._found: dict[Attempt, dict[int, Piece]] = {}
        self._decisions: dict[tuple[bytes, int], tuple[int, Decision]] = {}
        self.undone: list[str] = []
        """Of which decided batches rows were not found in this life, and what is there of them."""

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
        pieces[record.first] = _piece_of(record, position)

    def recovered(self, publishers: Publishers, now_ns: int) -> None:
        """Go on with batches that were decided; drop what belongs to those that are done.

        What is left of a batch that is not whole stays staged: whoever commits it again is told.
        """
        for attempt, found in self._found.items():
            for piece in self._in_order(found):
                self._add(attempt, piece, now_ns)
        self._found.clear()
        for position, decision in sorted(self._decisions.values(), key=lambda each: each[1].batch):
            if self.is_committed(decision.source, decision.batch):
                self._store.free(position)
            elif missing := self._missing(decision):
                self._store.free(position)
                self.undone.append(missing)
            else:
                self._begin(decision, position, publishers.last(decision.source))
        self._decisions.clear()
        chosen = {each for commit in self.commits.values() for each in commit.attempts}
        for attempt in list(self._rows):
            if attempt not in chosen and self.is_decided(attempt.source, attempt.batch):
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

    def _missing(self, decision: Decision) -> str:
        """Return what is not there of a batch, in a sentence; nothing where all is."""
        for part, number, count in decision.attempts:
            there = self.staged(Attempt(decision.source, decision.batch, part, number))
            if there != count:
                return f"{there:,} of {count:,} rows of part {part} of batch {decision.batch}"
        return ""

    def _begin(self, decision: Decision, position: int, last: int) -> Commit:
        source, batch = decision.source, decision.batch
        attempts = [Attempt(source, batch, part, number) for part, number, _ in decision.attempts]
        found = [self._rows[each].pieces for each in attempts if each in self._rows]
        commit = Commit(decision, position, list(chain.from_iterable(found)))
        if last >> SEQUENCE_BITS == batch:
            commit.done = min(commit.count, (last & (1 << SEQUENCE_BITS) - 1) + 1)
        self.commits[commit.key] = commit
        return commit

    # Staging

    def staged(self, attempt: Attempt) -> int:
        """Return how many rows of an attempt are there."""
        rows = self._rows.get(attempt)
        return rows.count if rows is not None else 0

    def has_room(self, attempt: Attempt, size: int) -> bool:
        """Tell whether a piece so long may be staged now.

        Where room is short, attempts are dropped that later ones have followed, or a later batch
        of their source. Raises InvalidNotification: it never may.
        """
        size += _PIECE_BYTES
        if self.bytes + size <= self.bytes_max:
            return True
        self._drop_followed(attempt)
        left = {each: rows for each, rows in self._rows.items() if each[:2] not in self.commits}
        own = sum(rows.bytes for each, rows in left.items() if each[:2] == attempt[:2])
        if own + size > self.bytes_max:
            raise InvalidNotification(
                f"batch {attempt.batch} is too long for this broker: {self.bytes_max:,} bytes, "
                f"{STAGED_SHARE:.0%} of durability.quota_bytes, may be staged. Raise that and "
                "restart the broker, or write shorter batches (maxOffsetsPerTrigger): one that a "
                "checkpoint has begun stays as long as it is"
            )
        decided = self.bytes - sum(rows.bytes for rows in left.values())
        is_first = next(iter(left), attempt)[:2] == attempt[:2]
        return self.bytes + size <= self.bytes_max or (
            is_first and decided + own + size <= self.bytes_max
        )

    def _drop_followed(self, last: Attempt) -> None:
        newest: dict[tuple[bytes, int, int], Attempt] = {}
        for each in dict.fromkeys([*self._rows, last]):  # in the order in which they began
            before = newest.pop(each[:3], None)
            newest[each[:3]] = each
            if before is not None and before[:2] not in self.commits:
                self.drop(before)
        for each in list(self._rows):
            is_earlier = each.source == last.source and each.batch < last.batch
            if is_earlier and each[:2] not in self.commits:
                self.drop(each)

    def stage(self, attempt: Attempt, first: int, count: int, rows: bytes, now_ns: int) -> None:
        """Keep so many rows of an attempt, from the row `first` on, which is the next."""
        there = self.staged(attempt)
        if first > there:
            raise InvalidNotification(f"row {first:,} is staged after row {there:,}")
        assert first == there, "what is there already is left out"
        record = Staged(*attempt, first, count, rows)
        self._add(attempt, _piece_of(record, self._shelf.add(record, 1)), now_ns)

    def touch(self, attempt: Attempt, now_ns: int) -> None:
        """Know that somebody goes on with an attempt, with what is there already."""
        if attempt in self._rows:
            self._rows[attempt].staged_ns = now_ns

    def _add(self, attempt: Attempt, piece: Piece, now_ns: int) -> None:
        rows = self._rows.setdefault(attempt, _Rows(now_ns))
        rows.staged_ns = now_ns
        rows.pieces.append(piece)
        rows.bytes += piece.bytes
        self.bytes += piece.bytes

    def drop(self, attempt: Attempt) -> None:
        """Forget an attempt."""
        rows = self._rows.pop(attempt, None)
        if rows is not None:
            self.bytes -= rows.bytes
            for piece in rows.pieces:
                self._shelf.release(piece.position)

    def drop_older(self, than_ns: int) -> Iterator[tuple[Attempt, int]]:
        """Drop attempts that nobody has gone on with since; yield each, with its rows."""
        for each, rows in list(self._rows.items()):
            if rows.staged_ns < than_ns and each[:2] not in self.commits:
                self.drop(each)
                yield each, rows.count

    # Committing

    def is_committed(self, source: bytes, batch: int) -> bool:
        """Tell whether a batch, or a later one of the same source, was published."""
        return self._committed.has(source, batch)

    def is_decided(self, source: bytes, batch: int) -> bool:
        """Tell whether it is known what a batch publishes: nothing that comes later counts."""
        is_going = self._going(source, batch) is not None
        return is_going or self.is_committed(source, batch)

    def _going(self, source: bytes, batch: int) -> Commit | None:
        """Return the batch that is being published where it is this one, or a later one."""
        for (whose, which), commit in self.commits.items():
            if whose == source and which >= batch:
                return commit
        return None

    @property
    def due(self) -> list[Commit]:
        """The batches that are published now: of each source the first that is decided."""
        first: dict[bytes, Commit] = {}
        for (source, _), commit in self.commits.items():
            first.setdefault(source, commit)
        return list(first.values())

    def decide(
        self,
        source: bytes,
        batch: int,
        attempts: Iterable[tuple[int, int, int]],
        *,
        is_one_off: bool = False,
    ) -> Commit | None:
        """Return the batch to publish, of these parts, attempts and row counts; None: it was.

        Where it is decided already, that decision stands; where a later one is, nothing of this
        one is published, and that is returned. Raises InvalidNotification where rows are not here,
        or one query too many would have to be remembered.
        """
        going = self._going(source, batch)
        if going is not None:
            return going
        decision = Decision(source, batch, tuple(dict.fromkeys(attempts)), is_one_off)
        is_committed = self.is_committed(source, batch)
        if not is_committed and (missing := self._missing(decision)):
            raise InvalidNotification(
                f"{missing} are staged here: stage and commit at the same broker, within "
                "durability.staged_s, and write the batch again"
            )
        if not is_one_off and not is_committed:
            self._committed.check(source)
        chosen = set() if is_committed else {each[:2] for each in decision.attempts}
        for each in list(self._rows):
            is_other = each[2:] not in chosen or each.batch != batch
            is_going = each[:2] in self.commits
            if each.source == source and each.batch <= batch and is_other and not is_going:
                self.drop(each)
        if is_committed:
            return None
        position = self._shelf.add(decision, 1)
        return self._begin(decision, position, -1)

    def finish(self, commit: Commit) -> None:
        """Know that all rows of a batch are published, in records before this."""
        self._committed.note(*commit.key, is_one_off=commit.decision.is_one_off)
        self._end(commit)

    def undo(self, commit: Commit) -> None:
        """Know that rows of a batch cannot be read: it is to be written again, all of it."""
        self._end(commit)

    def _end(self, commit: Commit) -> None:
        for each in commit.attempts:
            self.drop(each)
        self._shelf.release(commit.position)
        del self.commits[commit.key]

    def moved(self, position: int, record: Staged | Decision) -> None:
        """Know that a record is at another place of the log now."""
        if isinstance(record, Decision):
            commit = self.commits.get((record.source, record.batch))
            if commit is not None:
                commit.position = position
            return
        rows = self._rows.get(_attempt_of(record))
        pieces = rows.pieces if rows is not None else []
        place = bisect_left(pieces, record.first, key=attrgetter("first"))
        if place < len(pieces) and pieces[place].first == record.first:
            pieces[place].position = position


def _attempt_of(record: Staged) -> Attempt:
    return Attempt(record.source, record.batch, record.part, record.attempt)


def _piece_of(record: Staged, position: int) -> Piece:
    return Piece(position, record.first, record.count, len(record.rows) + _PIECE_BYTES)
