"""A range of positions, read by one task: several reads under way, rows as Arrow batches."""

import logging
from collections import deque
from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from octopis.core.wire.durable import READ_BYTES, READ_MAX, DurableInfo
from octopis.errors import ConnectionFailed, DataLost, InvalidSubscription
from octopis.pipeline.streaming.columns import Columns, Rows
from octopis.pipeline.streaming.connection import Body, Connection, Gone
from octopis.pipeline.streaming.home import Home, give_back, take_home
from octopis.pipeline.streaming.offsets import Offset
from octopis.pipeline.streaming.options import Options

AHEAD = 3
"""Reads under way at a time: the broker reads its disk while a task makes columns."""

PIECE = 125_000
"""What a task reads at most, unless more tasks are wanted: so that all cores have something."""

_FIRST = 1_000
_log = logging.getLogger(__name__)


class Range(InputPartition):
    """What one task reads: all after a position, up to and with another."""

    def __init__(self, after: Offset, upto: int) -> None:
        super().__init__((after.position, upto))
        self.after = after
        self.upto = upto


def split(after: Offset, upto: int, least: int) -> list[InputPartition]:
    """Return ranges of about the same length, at least so many if there are positions enough."""
    length = upto - after.position
    if length <= 0:
        return []
    pieces = min(length, max(least, -(-length // PIECE)))
    cuts = [after.position + length * piece // pieces for piece in range(pieces + 1)]
    return [Range(after.at(low), high) for low, high in pairwise(cuts)]


def lost(options: Options, reason: str) -> None:
    """Say that something is lost: by an error, or where the user wants to go on, in the log."""
    if options.fail_on_data_loss:
        raise DataLost(reason)
    _log.warning("data was lost, and failOnDataLoss is false: %s", reason)


def made_anew(name: str, before: int, epoch: int) -> str:
    """Return what to say of a subscription that is not the one whose offsets a query has."""
    return (
        f"the durable subscription {name!r} was made anew since the checkpoint was written, which "
        f"is of epoch {before}, and it is of epoch {epoch}: what it had before is gone"
    )


def read_range(partition: Range, options: Options, columns: Columns) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range, always the same in the same order. Raises DataLost."""
    secret = options.secret()
    home = take_home(options.address, secret, options.credentials_file)
    task = _Task(partition, options, columns)
    try:
        while not task.is_done:
            try:
                connection = home.ask(task.begin)  # it has waited long enough where this fails
                try:
                    yield from task.rows(connection)
                except ConnectionFailed as failure:
                    _log.warning("reading goes on after a break: %s", failure)
                    home.close()
            except InvalidSubscription:
                home.close()
                loss = task.loss(home)
                if loss is None:
                    raise
                task.lose(loss)
        task.count()
    except BaseException:
        home.close()
        raise
    give_back(options.address, secret, home, options.credentials_file)


class _Task:
    """How far one task has come in its range."""

    def __init__(self, partition: Range, options: Options, columns: Columns) -> None:
        self._range = partition
        self._options = options
        self._columns = columns
        self._at = partition.after.position
        self._rows = self._refused = 0
        self._size = _FIRST
        self._asked: deque[tuple[int, int]] = deque()
        self._next_at = self._at
        self._first: Body | None = None

    @property
    def is_done(self) -> bool:
        return self._at >= self._range.upto

    def begin(self, connection: Connection) -> Connection:
        """Ask a broker for the rest of the range, and wait for its first answer: it may refuse."""
        self._asked.clear()
        self._next_at = self._at
        self._ask(connection)
        self._first = connection.batch(self._asked[0][0])
        return connection

    def _ask(self, connection: Connection) -> None:
        name, upto = self._options.subscription, self._range.upto
        while self._next_at < upto and len(self._asked) < AHEAD:
            at, end = self._next_at, min(self._next_at + self._size, upto)
            self._asked.append((connection.ask_to_read(name, at, end - at), end))
            self._next_at = end

    def rows(self, connection: Connection) -> Iterator[pa.RecordBatch]:
        """Yield the rest of the range over a connection on which it has begun.

        The first answer is there already, so the task comes further even if that breaks at once.
        """
        name = self._options.subscription
        while not self.is_done:
            number, end = self._asked.popleft()
            body = connection.batch(number) if self._first is None else self._first
            self._first = None
            found = self._columns.rows(body, end)
            if found.epoch != self._range.after.epoch:
                self.lose(made_anew(name, self._range.after.epoch, found.epoch))
                return
            last = self._last(found, end)
            self._adapt(len(body), len(found.positions))
            self._at = last
            self._rows += len(found.positions)
            self._refused += found.refused
            if found.positions:
                yield found.batch
            if last < end:  # it was more than one answer holds
                number = connection.ask_to_read(name, last, end - last)
                self._asked.appendleft((number, end))
            self._ask(connection)

    def _last(self, found: Rows, end: int) -> int:
        """Return up to where an answer tells all that there is."""
        if found.end < end:
            reason = f"{self._options.subscription!r} ends at {found.end:,}, before {end:,}"
            raise InvalidSubscription(reason, self._options.subscription)
        if found.positions:
            return found.positions[-1]
        # All that it looked at is gone or damaged; behind that there may be more.
        return min(end, self._at + found.missing) if found.missing else end

    def _adapt(self, size: int, count: int) -> None:
        """Ask for as many as fit into an answer."""
        if count:
            self._size = max(1, min(READ_MAX, READ_BYTES * 3 // 4 * count // size))

    def loss(self, home: Home) -> str | None:
        """Return what is lost where a broker refuses to read; None where no loss explains it.

        Raises InvalidSubscription where it is another's by now.
        """
        name, epoch = self._options.subscription, self._range.after.epoch

        def now(connection: Connection) -> DurableInfo:
            connection.present(name)
            return connection.open(name, None)

        try:
            info = home.ask(now)
        except Gone as gone:
            return str(gone)
        return None if info.epoch == epoch else made_anew(name, epoch, info.epoch)

    def lose(self, reason: str) -> None:
        """Pass over the rest of the range, or raise DataLost."""
        self._at = self._range.upto
        self._rows = self._range.upto - self._range.after.position
        lost(self._options, reason)

    def count(self) -> None:
        """Say what is missing of the range, and what did not fit."""
        first, upto = self._range.after.position + 1, self._range.upto
        missing = upto - first + 1 - self._rows
        if missing:
            name = self._options.subscription
            lost(
                self._options,
                f"{missing:,} notifications of {name!r} between the positions {first:,} and "
                f"{upto:,} were dropped at the broker's quota, released, or are damaged",
            )
        if self._refused:
            _log.warning("%d rows have values that do not fit their columns", self._refused)
