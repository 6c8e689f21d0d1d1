"""The stream: a durable subscription whose positions are Spark's offsets.

One process of Spark's has this reader for as long as a query runs: it says how far there is
something to read, and acknowledges what Spark has finished. Tasks read for themselves.
"""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from octopis.core.wire.durable import DurableInfo
from octopis.errors import InvalidConfiguration, InvalidSubscription
from octopis.pipeline.streaming.columns import Columns
from octopis.pipeline.streaming.connection import CONNECT_S, Connection, Gone
from octopis.pipeline.streaming.home import Home
from octopis.pipeline.streaming.offsets import Offset, located, restored
from octopis.pipeline.streaming.options import Options
from octopis.pipeline.streaming.ranges import Range, lost, made_anew, read_range, split

_WAIT_MS = 50
"""Where there is nothing to read, Spark asks again at once: so we wait a little for it."""

_Result = TypeVar("_Result")


class _Seen(msgspec.Struct, array_like=True):
    """What a read of one notification tells of the whole subscription."""

    request: int
    epoch: int
    missing: int
    end: int
    items: list[msgspec.Raw]


_decode_seen = msgspec.msgpack.Decoder(_Seen).decode


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a durable subscription on and on. Nothing is opened before Spark asks for offsets."""

    def __init__(self, options: Options, schema: T.StructType) -> None:
        self._options = options
        self._columns = Columns(schema, options.mode)
        self._home: Home | None = None
        self._is_checked = False
        self._stops_at_end = False
        self._target: int | None = None
        self._lost = 0
        """At least so many: of a subscription that is gone nobody knows what it had."""

        self._after: int | None = None
        """Where the batch begins that was planned last."""

    # Where to begin and how far there is

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where a new query begins; make the subscription if it is not there."""
        options = self._options
        home = Home(options.address, options.secret(), CONNECT_S, options.credentials_file)
        info = home.ask(lambda connection: opened(connection, options))
        home.close()
        self._is_checked = True
        end = Offset(info.name, info.epoch, info.end)
        return located("startingOffsets", options.starting, info.acked, end).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return how much one trigger takes; a limit of bytes is ours to keep."""
        return ReadMaxRows(self._options.max_offsets)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Know that the query ends where the subscription ends now."""
        self._stops_at_end = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return how far the next batch reads; wait a little where there is nothing."""
        begin = self._checked(restored(start, self._options.subscription))
        try:
            seen = self._seen(begin)
        except InvalidSubscription:  # it was dropped meanwhile: find out, and say so
            self._is_checked = False
            begin = self._checked(begin)
            seen = self._seen(begin)
        if seen.epoch != begin.epoch:
            return start
        if self._stops_at_end:
            self._target = seen.end if self._target is None else self._target
            seen.end = min(seen.end, self._target)
        self._after = begin.position
        if seen.end <= begin.position:
            return begin.as_json()
        gap = min(seen.missing, seen.end - begin.position)
        if gap:
            self._lose(
                gap,
                f"{gap:,} notifications of {begin.subscription!r} after position "
                f"{begin.position:,} are not there any more: they were dropped at the broker's "
                "quota, acknowledged by somebody else, or are damaged",
            )
        # One batch passes over the whole gap, so that no other counts it again.
        return begin.at(self._limited(begin.position + gap, seen.end, limit)).as_json()

    def _checked(self, begin: Offset) -> Offset:
        """Return where to begin, once it is known that a checkpoint fits the subscription."""
        leave_when_told()
        if self._is_checked:
            return begin
        options = self._options
        try:
            info = self._ask(lambda connection: reopened(connection, options))
        except Gone as gone:
            self._lose(1, str(gone))
            info = self._ask(lambda connection: opened(connection, options))
        else:
            if info.epoch != begin.epoch:
                self._lose(1, made_anew(info.name, begin.epoch, info.epoch))
        self._is_checked = True
        if info.epoch != begin.epoch:
            return Offset(info.name, info.epoch, info.acked)
        if info.end < begin.position:
            reason = (
                f"the checkpoint has read {info.name!r} up to {begin.position:,}, and it ends at "
                f"{info.end:,}: is the broker's folder an older one?"
            )
            raise InvalidConfiguration(reason)
        return begin

    def _lose(self, count: int, reason: str) -> None:
        self._lost += count
        lost(self._options, reason)

    def _seen(self, begin: Offset) -> _Seen:
        """Ask what there is after a position; it is answered when there is something."""
        name = begin.subscription

        def look(connection: Connection) -> _Seen:
            number = connection.ask_to_read(name, begin.position, 1, _WAIT_MS)
            return _decode_seen(connection.batch(number))

        seen = self._ask(look)
        if seen.epoch != begin.epoch:
            self._is_checked = False  # the next call finds out, and says so
        return seen

    def _limited(self, begin: int, end: int, limit: ReadLimit) -> int:
        if isinstance(limit, ReadAllAvailable):
            return end
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.max_offsets
        if self._options.max_bytes is not None:
            info = self._info()
            if info is not None and info.lag and info.bytes:
                most = min(most, max(1, self._options.max_bytes * info.lag // info.bytes))
        return min(end, begin + most)

    # What is read, and what is finished

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return what each task reads."""
        options = self._options
        begin = restored(start, options.subscription)
        upto = restored(end, options.subscription)
        # In another epoch all is new: this range was planned where losses do not matter.
        after = upto.at(begin.position if begin.epoch == upto.epoch else 0)
        return split(after, upto.position, options.min_partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one range."""
        assert isinstance(partition, Range)
        return read_range(partition, self._options, self._columns)

    def commit(self, end: dict[str, Any]) -> None:
        """Release what Spark will never ask for again."""
        done = restored(end, self._options.subscription)
        try:
            self._ask(
                lambda connection: connection.acknowledge(
                    done.subscription, done.epoch, done.position
                )
            )
        except InvalidSubscription as refusal:
            lost(self._options, f"what was read cannot be acknowledged: {refusal}")

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return what a query's progress shows: the last position, and how the rest is."""
        info = self._info()
        if info is None:
            return None
        end = Offset(info.name, info.epoch, info.end).as_json()
        more = {"committed": info.acked, "bytes": info.bytes, "dropped": info.dropped}
        return end | more | {"lost": self._lost, "after": self._after}

    def stop(self) -> None:
        """Let the connection go."""
        if self._home is not None:
            self._home.close()

    def _info(self) -> DurableInfo | None:
        return self._ask(lambda connection: connection.info(self._options.subscription))

    def _ask(self, work: Callable[[Connection], _Result]) -> _Result:
        if self._home is None:
            self._home = Home(
                self._options.address,
                self._options.secret(),
                credentials=self._options.credentials_file,
            )
        return self._home.ask(work)


def opened(connection: Connection, options: Options) -> DurableInfo:
    """Return a subscription, made now unless it is there.

    Raises InvalidConfiguration where the overlay keeps nothing.
    """
    try:
        return connection.open(options.subscription, options.filter)
    except InvalidConfiguration as refusal:
        raise InvalidConfiguration(
            f'{refusal}; or read at most once, without a durable one: .option("subscription", "")'
        ) from refusal


def reopened(connection: Connection, options: Options) -> DurableInfo:
    """Return a subscription that a checkpoint has read from. Raises Gone, or what is wrong."""
    connection.present(options.subscription)
    return opened(connection, options)


def leave_when_told() -> None:
    """End in order when Spark ends this process, which it does by a signal alone."""
    if signal.getsignal(signal.SIGTERM) is not _left:
        signal.signal(signal.SIGTERM, _left)


def _left(*_: object) -> None:
    sys.exit(0)
