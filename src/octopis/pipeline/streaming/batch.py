"""The batch: what a durable subscription has now, or a part of it. Nothing is acknowledged."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceReader, InputPartition

from octopis.core.wire.durable import DurableInfo
from octopis.errors import InvalidSubscription
from octopis.pipeline.streaming.columns import Columns
from octopis.pipeline.streaming.connection import CONNECT_S, Connection
from octopis.pipeline.streaming.home import Home
from octopis.pipeline.streaming.offsets import Offset, located
from octopis.pipeline.streaming.options import Options
from octopis.pipeline.streaming.ranges import Range, read_range, split


class BatchReader(DataSourceReader):
    """Reads a range of a durable subscription that is there."""

    def __init__(self, options: Options, schema: T.StructType) -> None:
        self._options = options
        self._columns = Columns(schema, options.mode)

    def partitions(self) -> Sequence[InputPartition]:
        """Return what each task reads. Raises InvalidSubscription."""
        options = self._options
        home = Home(options.address, options.secret(), CONNECT_S, options.credentials_file)
        info = home.ask(self._found)
        home.close()
        end = Offset(info.name, info.epoch, info.end)
        first = located("startingOffsets", options.starting, info.acked, end)
        last = located("endingOffsets", options.ending, info.acked, end)
        # Spark makes one partition of its own of none, which would be no range.
        ranges = split(first, last.position, options.min_partitions)
        return ranges or [Range(first, first.position)]

    def _found(self, connection: Connection) -> DurableInfo:
        name = self._options.subscription
        if connection.info(name) is None:
            raise InvalidSubscription(
                f"there is no durable subscription {name!r} here, and reading once makes none: "
                "start a stream of that name, or client.subscribe(..., durable=...)",
                name,
            )
        return connection.open(name, self._options.filter)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one range."""
        assert isinstance(partition, Range)
        return read_range(partition, self._options, self._columns)
