"""The sink: tasks stage the rows of a batch, and the driver has the broker publish them, once.

Spark may run a task several times, and a whole batch again after a crash. Each attempt is staged
under a number of its own; `commit` names those that count, and the broker knows a batch that it has
published, by the query's id and the batch's number, whoever asks again.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.taskcontext import TaskContext

from octopis.client.sync_client import connect_sync
from octopis.errors import InvalidConfiguration, InvalidNotification, OperationFailed
from octopis.pipeline.streaming.connection import PATIENCE_S
from octopis.pipeline.streaming.options import Mode
from octopis.pipeline.streaming.rows import Limits, Notifications, Rows
from octopis.pipeline.streaming.sink_options import SinkOptions
from octopis.pipeline.streaming.staging import Attempt, Stage, staging_at

_CHUNK_BYTES = 2**18
_log = logging.getLogger(__name__)


class Batch(NamedTuple):
    """Whose batch it is, and which."""

    query: str
    number: int


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task tells the driver: the attempt that it has staged, and what it refused."""

    attempt: Attempt | None
    rows: int
    refused: dict[str, int] = field(default_factory=dict)


class Sink:
    """Writes one batch after the other to the overlay; made anew wherever Spark needs it."""

    def __init__(self, options: SinkOptions, schema: T.StructType, *, goes_on: bool = True) -> None:
        Rows(schema)  # what is wrong with it is said before anything runs
        self._options = options
        self._schema = schema
        self._goes_on = goes_on
        """Whether more batches of the same query may come."""

    # In tasks

    def write(self, batches: Iterator[pa.RecordBatch], batch: Batch) -> Written:
        """Stage, or publish, all rows of a task."""
        if self._options.at_least_once:
            return self._publish(batches)
        context = TaskContext.get()
        assert context is not None, "Spark writes in tasks"
        attempt = Attempt(batch.query, batch.number, context.partitionId())
        with self._staging(batch.query) as stage:
            return self._stage(batches, stage, attempt)

    def _staging(self, query: str) -> AbstractContextManager[Stage]:
        return staging_at(self._options.place_of(query), query, keeps=self._goes_on)

    def _stage(self, batches: Iterator[pa.RecordBatch], stage: Stage, attempt: Attempt) -> Written:
        stage.begin(attempt)
        welcome = stage.limits()
        limits = Limits(min(_CHUNK_BYTES, welcome.publish_window), welcome.frame_max // 2)
        staged = 0
        refused: Counter[str] = Counter()
        for found in self._read(batches):
            known_by = stage.publisher, stage.numbered + 1
            for rows, body in found.encoded(*known_by, time.time_ns(), limits):
                stage.stage(attempt, staged, body)
                staged += rows
            refused += found.refused
            self._refuse(found)
        stage.wait()
        return Written(attempt, staged, dict(refused))

    def _publish(self, batches: Iterator[pa.RecordBatch]) -> Written:
        published = 0
        refused: Counter[str] = Counter()
        options = self._options
        with connect_sync(
            options.address,
            retry_s=PATIENCE_S,
            resend=True,
            credentials=options.credentials_file,
        ) as client:
            for found in self._read(batches):
                found.shorten(client.bytes_max)
                attributes = map(msgspec.to_builtins, found.attributes)
                published += client.publish_many(zip(attributes, found.payloads, strict=True))
                refused += found.refused
                self._refuse(found)
        return Written(None, published, dict(refused))

    def _read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[Notifications]:
        rows = Rows(self._schema)
        for batch in batches:
            found = rows.read(batch)
            self._refuse(found)
            yield found

    def _refuse(self, found: Notifications) -> None:
        """Raise InvalidNotification where rows were refused, and the user wants none to be."""
        if found.refused and self._options.mode is Mode.FAILFAST:
            reason, count = found.refused.most_common(1)[0]
            raise InvalidNotification(
                f"{count:,} rows cannot be published, and the mode is FAILFAST: {reason}"
            )

    # On the driver

    def commit(self, messages: list[WriterCommitMessage | None], number: int) -> None:
        """Publish what the tasks have staged, unless this batch was published before."""
        written = [each for each in messages if isinstance(each, Written)]
        _say_refused(written, number)
        attempts = [(each.attempt, each.rows) for each in written if each.attempt is not None]
        if not attempts:
            return
        query = attempts[0][0].query
        # In the order of parts: by it tasks know whether the numbers of a publisher go on.
        chosen = sorted((each.part, each.number, rows) for each, rows in attempts if rows)
        with self._staging(query) as stage:
            stage.commit(query, number, chosen, one_off=not self._goes_on)

    def abort(self, messages: list[WriterCommitMessage | None], number: int) -> None:
        """Drop what was staged: the batch has failed."""
        written = [each for each in messages if isinstance(each, Written)]
        attempts = [each.attempt for each in written if each.attempt is not None]
        if attempts:
            query = attempts[0].query
            with self._staging(query) as stage:
                stage.drop(query, number, [(each.part, each.number) for each in attempts])


def _say_refused(written: list[Written], number: int) -> None:
    refused: Counter[str] = Counter()
    for each in written:
        refused.update(each.refused)
    for reason, count in refused.most_common():
        _log.warning("batch %d: %d rows were refused: %s", number, count, reason)


class StreamSink(DataSourceStreamArrowWriter):
    """What `df.writeStream` writes by."""

    def __init__(self, options: SinkOptions, schema: T.StructType) -> None:
        self._sink = Sink(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Stage the rows of a task."""
        return self._sink.write(iterator, _streamed())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish a batch."""
        self._sink.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop a batch."""
        self._sink.abort(messages, batchId)


class BatchSink(DataSourceArrowWriter):
    """What `df.write` writes by: all of it is one batch."""

    def __init__(self, options: SinkOptions, schema: T.StructType) -> None:
        self._sink = Sink(options, schema, goes_on=options.transaction is not None)
        self._batch = Batch(*(options.transaction or (f"batch {uuid4()}", 0)))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Stage the rows of a task."""
        return self._sink.write(iterator, self._batch)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish all."""
        self._sink.commit(messages, self._batch.number)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish nothing."""
        self._sink.abort(messages, self._batch.number)


def _streamed() -> Batch:
    """Return the batch that this task belongs to: Spark says it in the task's properties alone."""
    context = TaskContext.get()
    assert context is not None, "Spark writes in tasks"
    query = context.getLocalProperty("sql.streaming.queryId")
    number = context.getLocalProperty("streaming.sql.batchId")
    if query is None or number is None:
        raise OperationFailed(
            "this Spark does not tell its tasks the query's id and the batch's number, without "
            'which nothing is published exactly once: say .option("atLeastOnce", "true")'
        )
    return Batch(query, int(number))


def check_append(*, overwrites: bool, streams: bool) -> None:
    """Raise InvalidConfiguration where a user wants what was published before to be replaced."""
    if overwrites:
        instead = 'outputMode("append") or outputMode("update")' if streams else 'mode("append")'
        raise InvalidConfiguration(f"what is published cannot be replaced: write with {instead}")
