"""Tables that executors write themselves, straight from Arrow to Parquet.

On its usual way a row leaves Python, becomes a row of Java and then a column again.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]

CODEC = "spark.sql.parquet.compression.codec"
_OTHER_NAMES = {"uncompressed": "none", "lz4_raw": "lz4"}
"""Of codecs, where Arrow has other ones than Spark."""


def write_by_executors(
    inputs: DataFrame,
    tables: Mapping[Path, pa.Schema],
    make: Callable[[Batches], Iterator[tuple[pa.RecordBatch, ...]]],
    codec: str = "zstd",
) -> list[int]:
    """Write what `make` gives for each partition of `inputs`; return the rows of each table.

    Each table is a new folder of parts; `make` yields a batch for every one of them. A task that
    was tried twice leaves two files: only those that Spark has heard of stay.
    """
    for folder in tables:
        folder.mkdir()
    compression = _OTHER_NAMES.get(codec, codec)

    def act(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        name = f"part-{context.partitionId():05d}-{context.taskAttemptId()}.parquet"
        rows = [0] * len(tables)
        with ExitStack() as stack:
            writers = [
                stack.enter_context(
                    pq.ParquetWriter(folder / name, schema, compression=compression)
                )
                for folder, schema in tables.items()
            ]
            for parts in make(batches):
                for number, (writer, part) in enumerate(zip(writers, parts, strict=True)):
                    writer.write_batch(part)
                    rows[number] += len(part)
        yield pa.RecordBatch.from_pydict({"part": [name], "rows": [rows]})

    written = inputs.mapInArrow(act, "part string, rows array<long>").collect()
    known = {row["part"] for row in written}
    for folder in tables:
        for path in folder.iterdir():
            if path.name not in known:
                path.unlink()
    return [sum(row["rows"][number] for row in written) for number in range(len(tables))]
