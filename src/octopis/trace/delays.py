"""How long the deliveries of a trace took: from the intended time of publication to each.

A trace is the folder of a run, or that of a live overlay, in which each broker has left its own.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from octopis.errors import InvalidConfiguration
from octopis.trace.summary import FILE

_SEQUENCE_BITS = 40

Nanoseconds = npt.NDArray[np.int64]


def parts_of(trace: Path) -> list[Path]:
    """Return the folders that hold a trace's tables: one, or one of each broker.

    Raises InvalidConfiguration where there is no finished trace.
    """
    if (trace / FILE).exists():
        return [trace]
    parts = sorted(path.parent for path in trace.glob(f"*/{FILE}"))
    if not parts:
        raise InvalidConfiguration(f"{trace} holds no finished trace: no {FILE}")
    return parts


def read_tables(trace: Path, table: str, columns: list[str]) -> pa.Table | None:
    """Return some columns of a trace's table, or None where its level does not have it."""
    # Absolute: Arrow takes a relative path with a colon in it for an address.
    paths = [part.resolve() / f"{table}.parquet" for part in parts_of(trace)]
    if not all(path.exists() for path in paths):
        return None
    return pa.concat_tables([pq.read_table(path, columns=columns) for path in paths])


def read_delays(trace: Path) -> tuple[Nanoseconds, Nanoseconds] | None:
    """Return when each delivery came, and its delay; None where the trace does not tell.

    Deliveries of notifications that were still under way when the run ended are left out.
    """
    deliveries = read_tables(trace, "deliveries", ["publisher", "sequence", "delivered_ns"])
    publications = read_tables(trace, "publications", ["publisher", "sequence", "intended_ns"])
    if deliveries is None or publications is None:
        return None
    publishers = _publishers(publications)
    names = {name: number for number, name in enumerate(publishers.dictionary.to_pylist())}
    known = _keys(publications, publishers, names)
    order = np.argsort(known)
    intended_ns = _integers(publications, "intended_ns")[order]
    wanted = _keys(deliveries, _publishers(deliveries), names)
    # One place more, so that there is one for what is not known.
    known = np.append(known[order], np.iinfo(np.int64).max)
    places = np.searchsorted(known, wanted)
    found = known[places] == wanted
    delivered_ns = _integers(deliveries, "delivered_ns")[found]
    return delivered_ns, delivered_ns - intended_ns[places[found]]


def quantile(values: Nanoseconds, share: float) -> int | None:
    """Return the least value that at least such a share of all does not exceed; exact."""
    if not len(values):
        return None
    place = max(0, int(np.ceil(share * len(values))) - 1)
    return int(np.partition(values, place)[place])


def _publishers(table: pa.Table) -> pa.DictionaryArray:
    """Return the publishers as numbers and names: millions of rows repeat a few names."""
    column = table.column("publisher")
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.unify_dictionaries().combine_chunks()


def _keys(table: pa.Table, publishers: pa.DictionaryArray, names: dict[str, int]) -> Nanoseconds:
    """Return one number for each row's publisher and sequence; -1 for an unknown publisher."""
    own = np.array([names.get(name, -1) for name in publishers.dictionary.to_pylist()], np.int64)
    numbers = own[publishers.indices.to_numpy()] if len(publishers) else own[:0]
    return np.where(numbers < 0, -1, (numbers << _SEQUENCE_BITS) | _integers(table, "sequence"))


def _integers(table: pa.Table, column: str) -> Nanoseconds:
    values: Nanoseconds = table.column(column).to_numpy().astype(np.int64, copy=False)
    return values
