"""The stream without a durable subscription: what passes by is read at most once.

The process that Spark keeps for the source holds an ordinary subscription, and what has come since
in a bounded buffer. It hands the rows to the tasks itself. Nothing is kept elsewhere: what a query
had not finished when it was ended is gone, and so is what comes while none runs.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from octopis.client.streams import Gap, Received
from octopis.client.sync_client import SyncClient, connect_sync
from octopis.client.sync_streams import SyncNotifications
from octopis.core.wire.durable import encode_batch
from octopis.core.wire.frames import FrameDecoder
from octopis.core.wire.published import encode_published
from octopis.errors import OctopisError
from octopis.pipeline.streaming.columns import Columns
from octopis.pipeline.streaming.offsets import Offset, restored
from octopis.pipeline.streaming.options import Options
from octopis.pipeline.streaming.reader import leave_when_told

BUFFER_MAX = 100_000
"""How many wait for Spark at most: what is more waits at the broker, which drops it one day."""

BYTES_MAX = 64 * 2**20
"""How long they may be together, likewise."""

_WAIT_S = 0.05
_PIECE = 5_000
_log = logging.getLogger(__name__)


class Passed(InputPartition):
    """Rows on their way to a task, as a broker would send them."""

    def __init__(self, frame: bytes) -> None:
        super().__init__(None)
        self.frame = frame


class PassingReader(DataSourceStreamReader):
    """Reads an ordinary subscription: at most once."""

    def __init__(self, options: Options, schema: T.StructType) -> None:
        self._options = options
        self._columns = Columns(schema, options.mode)
        self._catch: _Catch | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where a query begins: with what comes from now on."""
        return self._caught().offset(0).as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return how much one trigger takes."""
        return ReadMaxRows(self._options.max_offsets)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return how far the next batch reads; wait a little where there is nothing."""
        leave_when_told()
        begin, catch = restored(start, ""), self._caught()
        is_new = begin.epoch != catch.epoch
        begin = catch.offset(0) if is_new else begin
        # Spark asks on only when it has done with what came before. Its own word for that,
        # `commit`, comes with the next batch, which may need the room.
        catch.forget(begin.position)
        most = BUFFER_MAX if isinstance(limit, ReadAllAvailable) else self._options.max_offsets
        end = min(catch.wait(begin.position), begin.position + most)
        if end == begin.position:
            return start
        if is_new:
            _log.warning("a gap: what came while no query ran was not kept")
        return begin.at(end).as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the rows themselves."""
        begin, upto, catch = restored(start, ""), restored(end, ""), self._caught()
        if upto.epoch != catch.epoch:
            _log.warning("a batch of an earlier run is lost: nothing was kept of it")
            return []
        after = begin.position if begin.epoch == upto.epoch else 0
        return catch.between(after, upto.position)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows that came along."""
        assert isinstance(partition, Passed)
        for frame in FrameDecoder(len(partition.frame)).receive_data(partition.frame):
            yield self._columns.rows(frame.body, 2**62).batch

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Return what a query's progress shows."""
        catch = self._caught()
        more = {"committed": catch.first - 1, "lost": catch.gaps}
        return catch.offset(catch.end).as_json() | more

    def stop(self) -> None:
        """Unsubscribe."""
        if self._catch is not None:
            self._catch.close()

    def _caught(self) -> "_Catch":
        if self._catch is None:
            self._catch = _Catch(self._options)
        return self._catch


class _Catch:
    """What an ordinary subscription has brought, numbered from 1. `gaps` counts what it missed."""

    def __init__(self, options: Options) -> None:
        self.epoch = time.time_ns()
        self.first = 1
        self.end = 0
        self.gaps = 0
        self._failure: OctopisError | None = None
        self._kept: deque[bytes] = deque()
        """As a broker would send them."""

        self._bytes = 0
        self._changed = threading.Condition()
        self._client: SyncClient = connect_sync(
            options.address,
            secret=options.secret() or None,
            credentials=options.credentials_file,
        )
        self._client.open()
        assert options.filter is not None
        self._stream = self._client.subscribe(options.filter, on_gap=self._gap)
        try:
            self._stream.open()
        except BaseException:
            self._client.close()
            raise
        threading.Thread(target=self._take, args=(self._stream,), daemon=True).start()

    def _take(self, stream: SyncNotifications) -> None:
        try:
            for batch in stream.batches():
                for row in map(_encoded, batch):
                    self._keep(row)
        except OctopisError as failure:
            self._failure = failure

    def _keep(self, row: bytes) -> None:
        with self._changed:
            self._changed.wait_for(self._has_room)
            self._kept.append(row)
            self._bytes += len(row)
            self.end += 1
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._kept) < BUFFER_MAX and self._bytes < BYTES_MAX

    def _gap(self, gap: Gap) -> None:
        self.gaps += gap.dropped or 1
        _log.warning("notifications may be missing: %s", gap.reason)

    def offset(self, position: int) -> Offset:
        """Return the offset of a position here."""
        return Offset("", self.epoch, position)

    def wait(self, after: int) -> int:
        """Return the last position, as soon as there is one, or after a little while."""
        with self._changed:
            self._changed.wait_for(lambda: self.end > after, _WAIT_S)
            if self._failure is not None and self.end <= after:
                raise self._failure
            return self.end

    def between(self, after: int, upto: int) -> list[InputPartition]:
        """Return the rows of a range, as a broker would send them."""
        with self._changed:
            rows = list(islice(self._kept, after + 1 - self.first, upto + 1 - self.first))
        partitions: list[InputPartition] = []
        for at in range(0, len(rows), _PIECE):
            piece = rows[at : at + _PIECE]
            first = after + 1 + at
            positions = range(first, first + len(piece))
            partitions.append(Passed(encode_batch(0, self.epoch, 0, upto, positions, piece)))
        return partitions

    def forget(self, upto: int) -> None:
        """Make room."""
        with self._changed:
            while self.first <= upto and self._kept:
                self._bytes -= len(self._kept.popleft())
                self.first += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Say goodbye."""
        self._client.close()


def _encoded(row: Received) -> bytes:
    about = row.publisher, row.sequence, row.intended_ns
    return encode_published(row.attributes, row.payload, *about)
