"""Queries that stage and commit batches at a broker whose disk loses power and damages records.

Staging is the real one. What publishes is as small as it can be, and the queries do what drivers of
streams do: they write a batch until they are answered, and sometimes leave it and write the next.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from octopis.core.delivery.lasting.batches import SEQUENCE_BITS, Attempt, Commit
from octopis.core.delivery.lasting.memory import Publishers
from octopis.core.delivery.lasting.records import (
    Decision,
    Publication,
    Staged,
    decode_record,
)
from octopis.core.delivery.lasting.staging import Staging
from octopis.core.delivery.lasting.store import Shelf
from octopis.errors import InvalidNotification
from support.moving import TrialStore

QUOTA = 10_000
"""Of which 2,000 bytes may be staged: some ten pieces."""

PARTS = 2
QUERIES = (b"p", b"q", b"once")


class Row(NamedTuple):
    """A row that was published: whose it is, of which batch, and its number there."""

    query: bytes
    batch: int
    number: int


class Query:
    """Writes batches, each until it is answered. `sizes` are how many rows its parts have."""

    def __init__(self, name: bytes, chance: Random) -> None:
        self.name, self._chance = name, chance
        self.batch = -1
        self.answered: set[int] = set()
        self.left: set[int] = set()
        self._sizes: dict[int, list[int]] = {}
        self.begin_next()

    def begin_next(self) -> None:
        self.batch += 1
        self._sizes[self.batch] = [self._chance.randint(0, 4) for _ in range(PARTS)]
        self.begin_anew()

    def begin_anew(self) -> None:
        """Write the batch again, by attempts that nobody has seen."""
        self._attempts = [self._chance.getrandbits(40) for _ in range(PARTS)]
        self._staged = [0] * PARTS
        self.is_asking = False

    def rows(self, batch: int) -> int:
        return sum(self._sizes[batch])

    def step(self, trial: "Trial") -> None:
        """Stage some more, or commit; what is refused is written again."""
        try:
            for part, size in enumerate(self._sizes[self.batch]):
                if self._staged[part] < size:
                    self._stage(trial, part, size)
                    return
            sizes = self._sizes[self.batch]
            parts = zip(range(PARTS), self._attempts, sizes, strict=True)
            trial.commit(self.name, self.batch, [each for each in parts if each[2]])
            self.is_asking = True
        except InvalidNotification:
            self.begin_anew()

    def _stage(self, trial: "Trial", part: int, size: int) -> None:
        count = self._chance.randint(1, size - self._staged[part])
        attempt = Attempt(self.name, self.batch, part, self._attempts[part])
        if trial.stage(attempt, self._staged[part], count):
            self._staged[part] += count


class Trial:
    """One broker and its queries. The trial ends when all are answered, on a disk that is well."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311 - repeatable on purpose
        self.store = TrialStore(1)
        self.queries = [Query(name, self.chance) for name in QUERIES]
        self._freed: set[int] = set()
        self._damaged: set[int] = set()
        self._decided: dict[tuple[bytes, int], int] = {}
        """How many rows are to be published of what was decided, and not undone."""

        self._done: set[tuple[bytes, int]] = set()
        self._has_room = True
        self._now_ns = 0
        self._live([])

    def _live(self, records: list[tuple[int, bytes]]) -> None:
        self.shelf = Shelf(self.store)
        self.staging = Staging(self.shelf, QUOTA)
        self.publishers = Publishers()
        self._asked: set[tuple[bytes, int]] = set()
        self._finished: list[tuple[bytes, int]] = []
        for position, body in records:
            record = decode_record(body)
            if isinstance(record, Publication):
                self.publishers.note(record.publisher, record.sequence)
                self.shelf.found(position, holders=0)
            elif isinstance(record, Staged | Decision):
                self.staging.found(position, record)
        self.staging.recovered(self.publishers, self._now_ns)
        self._decided = {key: count for key, count in self._decided.items() if key in self._done}
        for commit in self.staging.commits.values():
            self._promise(commit)
        self._ending: list[tuple[bytes, int]] = []
        for query in self.queries:
            query.is_asking = False  # it asks again

    # What clients ask

    def stage(self, attempt: Attempt, first: int, count: int) -> bool:
        staging = self.staging
        if staging.is_decided(attempt.source, attempt.batch):
            return True
        there = max(0, staging.staged(attempt) - first)
        if there >= count:
            return True
        rows = bytes(100 * (count - there))
        if not staging.has_room(attempt, len(rows)):
            return False
        staging.stage(attempt, first + there, count - there, rows, self._now_ns)
        return True

    def commit(self, query: bytes, batch: int, attempts: list[tuple[int, int, int]]) -> None:
        commit = self.staging.decide(query, batch, attempts, is_one_off=query == b"once")
        if commit is None:
            self._finished.append((query, batch))
        else:
            self._asked.add((query, batch))
            self._promise(commit)

    def _promise(self, commit: Commit) -> None:
        """Know that all of a batch is published; nothing, where there is some of a later one."""
        source, batch = commit.key
        if self.publishers.last(source) >> SEQUENCE_BITS <= batch:
            self._decided[commit.key] = commit.count

    # What the broker does

    def publish(self) -> None:
        for commit in self.staging.due:
            count = min(self.chance.randint(0, 3), commit.count - commit.done)
            for row in range(commit.done, commit.done + count):
                self._publish(commit, row)
            commit.done += count
            if commit.done == commit.count:
                self.staging.finish(commit)
                self._ending.append(commit.key)
                self._answer(commit)

    def _publish(self, commit: Commit, row: int) -> None:
        piece, _ = commit.piece(row)
        self.store.read([piece.position])  # nobody has given it back
        source, sequence = commit.decision.source, commit.sequence(row)
        if not self.publishers.has(source, sequence):
            self.publishers.note(source, sequence)
            self.shelf.add(Publication(source, sequence, 0, b"", (), (), b""), holders=0)

    def _answer(self, commit: Commit) -> None:
        """Answer who waits for a batch, or for one before it."""
        source, batch = commit.key
        found = {each for each in self._asked if each[0] == source and each[1] <= batch}
        self._asked -= found
        self._finished += sorted(found)

    def sync(self) -> None:
        self.store.sync()
        self._freed = set(self.store._freed)
        self._done.update(self._ending)
        for name, batch in self._finished:
            query = self._of(name)
            query.answered.add(batch)
            if query.batch == batch:
                query.begin_next()
        self._finished.clear()

    def _of(self, name: bytes) -> Query:
        return next(each for each in self.queries if each.name == name)

    def write_again(self) -> None:
        """Move a record that somebody needs to the end of the log."""
        found = [
            (position, record)
            for position, record in self._records()
            if position not in self.store._freed
        ]
        if found:
            position, record = self.chance.choice(found)
            self.staging.moved(self.shelf.write_again(position, record), record)

    def _records(self) -> list[tuple[int, Staged | Decision]]:
        found = enumerate(map(decode_record, self.store._log), 1)
        return [(at, each) for at, each in found if isinstance(each, Staged | Decision)]

    # What goes wrong

    def leave(self) -> None:
        """Let the program of a query be interrupted, which then writes its next batch."""
        query = self.chance.choice(self.queries)
        query.left.add(query.batch)
        query.begin_next()

    def ask_again(self) -> None:
        """Let a batch that was answered, or left, be run again: other rows, by other attempts."""
        query = self.chance.choice(self.queries)
        if gone := query.answered | query.left:
            batch = self.chance.choice(sorted(gone))
            attempt = Attempt(query.name, batch, 0, self.chance.getrandbits(40))
            if self.stage(attempt, 0, 1):
                self.commit(query.name, batch, [(0, attempt.attempt, 1)])

    def damage(self) -> None:
        """Let a piece be damaged when it is read."""
        if self.staging.due:
            commit = self.chance.choice(self.staging.due)
            if commit.done < commit.count:
                self._damaged.add(commit.piece(commit.done)[0].position)
                self.staging.undo(commit)
                self._decided.pop(commit.key, None)
                self._asked.discard(commit.key)
                query = self._of(commit.key[0])
                if query.batch == commit.key[1]:
                    query.begin_anew()

    def crash(self) -> None:
        """Lose power: what was given back may be gone, and a staged record damaged."""
        records = self.store.crash(self.chance)
        gone = {each for each in sorted(self._freed) if self.chance.random() < 0.5}
        staged = [at for at, each in self._records() if isinstance(each, Staged)]
        self._damaged &= {*staged}
        if staged and self.chance.random() < 0.3:
            self._damaged.add(self.chance.choice(staged))
        gone |= self._damaged
        gone -= {at for at, each in records if isinstance(decode_record(each), Publication)}
        self.store._freed |= gone  # nobody gives back what is not there
        self._has_room = False  # what was dropped may be there again
        self._live([each for each in records if each[0] not in gone])

    # All of it

    def run(self, steps: int) -> None:
        wrong = [self.leave, self.ask_again, self.damage, self.crash, self.write_again]
        for _ in range(steps):
            self._now_ns += 1
            self._step(wrong)
            self.check_room()
        for query in self.queries:
            wanted = query.batch
            for _ in range(2_000):
                if wanted in query.answered:
                    break
                self._step([])
            assert wanted in query.answered, f"{query.name!r} waits for ever"
        while self.staging.commits:
            self.publish()

    def _step(self, wrong: list[Callable[[], None]]) -> None:
        if wrong and self.chance.random() < 0.15:
            self.chance.choice(wrong)()
            return
        well = [self.publish, self.sync, *(self._stepping(each) for each in self.queries)]
        self.chance.choice(well)()

    def _stepping(self, query: Query) -> Callable[[], None]:
        return lambda: None if query.is_asking else query.step(self)

    # What holds

    def published(self) -> list[Row]:
        rows = []
        for body in self.store._log:
            record = decode_record(body)
            if isinstance(record, Publication):
                batch, row = divmod(record.sequence, 1 << SEQUENCE_BITS)
                rows.append(Row(record.publisher, batch, row))
        return rows

    def check_room(self) -> None:
        staging = self.staging
        assert staging.bytes == sum(each.bytes for each in staging._rows.values())
        self._has_room |= staging.bytes <= staging.bytes_max
        assert staging.bytes <= 2 * staging.bytes_max or not self._has_room

    def check(self) -> None:
        """Make sure that each batch is published once, in order, whole where that was said."""
        published = self.published()
        for query in self.queries:
            own = [each for each in published if each.query == query.name]
            assert own == sorted(set(own)), "out of order, or twice"
            for batch in range(query.batch + 1):
                rows = [each.number for each in own if each.batch == batch]
                assert rows == list(range(len(rows))), "a hole"
                assert len(rows) >= self._decided.get((query.name, batch), 0), "not whole"
                if batch in query.answered - query.left:
                    assert len(rows) == query.rows(batch), "not whole, and answered"
                else:
                    assert not rows or batch in query.left or batch == query.batch

    def check_end(self) -> None:
        """Make sure that nothing is left on disk once nobody asks for it."""
        list(self.staging.drop_older(self._now_ns + 1))
        assert self.staging.bytes == 0
        assert not self.staging._rows
        left = {at for at, _ in self._records()} - self.store._freed
        assert not left, "records that nobody needs, and nobody has given back"
