"""Writes the tables of a trace while the run goes on; memory holds a row group at most."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from octopis.files import empty_folder
from octopis.trace.schemas import NAME, SCHEMAS
from octopis.trace.summary import Level

ROW_GROUP = 250_000
"""Rows that wait in memory before they are written."""


class TraceWriter:
    """The tables of one level, in one folder. Use it as a context manager."""

    def __init__(self, folder: Path, level: Level, row_group: int | None = None) -> None:
        """Make the files; raise InvalidConfiguration where the folder holds something already."""
        self.folder = folder = empty_folder(folder)
        self.level = level
        self._tables = {name: _Table(folder, name, row_group or ROW_GROUP) for name in level.tables}

    def wants(self, table: str) -> bool:
        """Tell whether rows of a table are written at this level."""
        return table in self._tables

    def write(self, table: str, columns: Mapping[str, Any]) -> None:
        """Add rows, given as columns; columns that are not given are null."""
        self._tables[table].add(columns)

    def write_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows in the order of the table's columns."""
        self.write(table, dict(zip(SCHEMAS[table].names, zip(*rows, strict=True), strict=True)))

    def close(self) -> None:
        """Write what waits, and finish every file."""
        for table in self._tables.values():
            table.close()

    def discard(self) -> None:
        """Remove the files of a run that never began, and their folder."""
        self.close()
        for name in self._tables:
            (self.folder / f"{name}.parquet").unlink()
        self.folder.rmdir()
        self._tables = {}

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Table:
    def __init__(self, folder: Path, name: str, row_group: int) -> None:
        self._row_group = row_group
        self._schema = SCHEMAS[name]
        names = [field.name for field in self._schema if field.type == NAME]
        self._file = pq.ParquetWriter(
            folder / f"{name}.parquet",
            self._schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=names,
            # Smallest and largest name of a row group help nobody, and take longer than the rest.
            write_statistics=[each for each in self._schema.names if each not in names],
        )
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, columns: Mapping[str, Any]) -> None:
        length = len(next(iter(columns.values())))
        if not length:
            return
        arrays = [
            _array(columns[field.name], field.type)
            if field.name in columns
            else pa.nulls(length, field.type)
            for field in self._schema
        ]
        assert len(columns) == sum(name in columns for name in self._schema.names), "unknown column"
        self._waiting.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows += length
        if self._rows >= self._row_group:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._rows:
            table = pa.Table.from_batches(self._waiting, self._schema).unify_dictionaries()
            self._file.write_table(table, row_group_size=self._rows)
        self._waiting, self._rows = [], 0


def _array(values: Sequence[Any] | pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if kind == NAME:
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, kind)
