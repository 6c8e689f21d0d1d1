"""How long the deliveries of a trace took, without Spark: for one run, and what fits in memory."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from octopis.trace.runs import parts_of

Nanoseconds = npt.NDArray[np.int64]


def read_tables(trace: Path, table: str, columns: list[str]) -> pa.Table | None:
    """Return some columns of a trace's table, or None where its level does not have it."""
    # Absolute: Arrow takes a relative path with a colon in it for an address.
    paths = [part.resolve() / f"{table}.parquet" for part in parts_of(trace)]
    if not all(path.exists() for path in paths):
        return None
    return pa.concat_tables([pq.read_table(path, columns=columns) for path in paths])


def read_delays(trace: Path) -> tuple[Nanoseconds, Nanoseconds] | None:
    """Return when each delivery came, and its delay; None where the trace does not tell."""
    deliveries = read_tables(trace, "deliveries", ["delivered_ns", "delay_ns"])
    if deliveries is None:
        return None
    delivered_ns, delays_ns = (
        column.to_numpy().astype(np.int64, copy=False) for column in deliveries.columns
    )
    return delivered_ns, delays_ns


def quantile(values: Nanoseconds, share: float) -> int | None:
    """Return the least value that at least such a share of all does not exceed; exact."""
    if not len(values):
        return None
    place = max(0, int(np.ceil(share * len(values))) - 1)
    return int(np.partition(values, place)[place])
