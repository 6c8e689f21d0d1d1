"""Large tables written by the executors themselves, straight from Arrow to Parquet.

On its usual way a row leaves Python, becomes a row of Java and then a column again. For tens of
millions of small rows that costs more than making them; here columns stay columns, and names
that repeat are written once.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

Batches = Iterator[pa.RecordBatch]


def write_parts(
    inputs: DataFrame, folder: Path, schema: pa.Schema, make: Callable[[Batches], Batches]
) -> int:
    """Write what `make` gives for each partition of `inputs`; return how many rows there are.

    A task that was tried twice leaves two files: only those that Spark has heard of stay.
    """
    folder.mkdir()

    def act(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        name = f"part-{context.partitionId():05d}-{context.taskAttemptId()}.parquet"
        rows = 0
        with pq.ParquetWriter(folder / name, schema, compression="zstd") as writer:
            for batch in make(batches):
                writer.write_batch(batch)
                rows += len(batch)
        yield pa.RecordBatch.from_pydict({"part": [name], "rows": [rows]})

    written = inputs.mapInArrow(act, "part string, rows long").collect()
    known = {row["part"] for row in written}
    for path in folder.iterdir():
        if path.name not in known:
            path.unlink()
    return sum(row["rows"] for row in written)
