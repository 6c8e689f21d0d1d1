"""The notifications of a scenario: who publishes what, and when it should.

The table may be large, so it is read batch by batch, and may be a folder of parts, in the order of
their names. An attribute that is null is absent.
"""

from collections.abc import Collection, Iterator
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from octopis.core.model import Value
from octopis.errors import InvalidConfiguration
from octopis.scenario.tables import Publisher, check_time, one_line, opened, part_files

COLUMNS = {"publisher": pa.string(), "sequence": pa.int64(), "intended_ns": pa.int64()}
"""Beside `attributes`, a struct of texts, numbers and booleans."""

NOTIFICATION_COLUMNS = (*COLUMNS, "attributes")

BATCH = 1024
"""Notifications that are read, and matched, together."""


class Publications(NamedTuple):
    """Consecutive rows of the table, in columns; publishers are numbers."""

    publishers: list[int]
    sequences: list[int]
    intended_ns: list[int]
    attributes: list[dict[str, Value]]

    def without(self, publishers: set[int]) -> "Publications":
        """Return the rows of all other publishers."""
        is_kept = [publisher not in publishers for publisher in self.publishers]
        return Publications(
            list(compress(self.publishers, is_kept)),
            list(compress(self.sequences, is_kept)),
            list(compress(self.intended_ns, is_kept)),
            list(compress(self.attributes, is_kept)),
        )


def count_notifications(path: Path) -> int:
    """Return how many notifications there are, or raise InvalidConfiguration."""
    notification_schema(path)
    rows = 0
    for part in part_files(path):
        with opened(part) as file:
            rows += int(file.metadata.num_rows)
    return rows


def count_of(path: Path, publishers: Collection[str]) -> int:
    """Return how many notifications are those of some publishers."""
    rows = 0
    for part in part_files(path):
        with opened(part) as file:
            names = file.read(columns=["publisher"])["publisher"].cast(pa.string())
            rows += pc.sum(pc.is_in(names, pa.array(publishers, pa.string()))).as_py() or 0
    return rows


def notification_schema(path: Path) -> pa.Schema:
    """Return the columns of the notifications, or raise InvalidConfiguration."""
    first, *others = part_files(path)
    schema = _part_schema(first)
    for part in others:
        if not _part_schema(part).equals(schema):
            raise InvalidConfiguration(f"{part} has other columns than {first}")
    return schema


def _part_schema(path: Path) -> pa.Schema:
    with opened(path) as file:
        schema = file.schema_arrow
    for name in NOTIFICATION_COLUMNS:
        if name not in schema.names:
            raise InvalidConfiguration(f"{path}: the column {name} is missing")
    _check_attributes(schema.field("attributes").type, path)
    return pa.schema([schema.field(name) for name in NOTIFICATION_COLUMNS])


def read_publications(path: Path, publishers: list[Publisher]) -> Iterator[Publications]:
    """Yield the notifications, or raise InvalidConfiguration with the row that is wrong.

    Times must not fall, and each publisher's sequence numbers must rise, from part to part, too.
    """
    order = _Order({publisher.name: number for number, publisher in enumerate(publishers)})
    for part in part_files(path):
        row = 0
        with opened(part) as file:
            try:
                for batch in file.iter_batches(BATCH, columns=list(NOTIFICATION_COLUMNS)):
                    columns = [_cast(batch, name, kind, part) for name, kind in COLUMNS.items()]
                    numbers = order.check(columns, part, row)
                    _check_finite(batch.column("attributes"), part, row)
                    row += len(batch)
                    attributes = attributes_of(batch.column("attributes"))
                    yield Publications(numbers, columns[1], columns[2], attributes)
            except (OSError, pa.ArrowException) as failure:
                reason = f"{part}, after row {row}: {one_line(failure)}"
                raise InvalidConfiguration(reason) from failure


class _Order:
    """What the rows so far ask of the next."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._last_sequences: dict[str, int] = {}
        self._last_ns = 0

    def check(self, columns: list[list[Any]], path: Path, row: int) -> list[int]:
        """Return the publishers' numbers; raise InvalidConfiguration with the row that is wrong."""
        for name, sequence, time_ns in zip(*columns, strict=True):
            where = f"{path}, row {row}"
            if name is None or sequence is None or time_ns is None:
                raise InvalidConfiguration(f"{where}: only attributes may be empty")
            if name not in self._numbers:
                raise InvalidConfiguration(f"{where}: there is no publisher {name!r}")
            if time_ns < self._last_ns:
                raise InvalidConfiguration(f"{where}: intended_ns must not fall")
            if sequence <= self._last_sequences.get(name, sequence - 1):
                raise InvalidConfiguration(f"{where}: the sequence of {name} must rise")
            self._last_ns = check_time(time_ns, "intended_ns", where)
            self._last_sequences[name] = sequence
            row += 1
        return [self._numbers[name] for name in columns[0]]


def _cast(batch: pa.RecordBatch, name: str, kind: pa.DataType, path: Path) -> list[Any]:
    column = batch.column(name)
    if pa.types.is_floating(column.type) or (kind != pa.string() and not _is_integer(column.type)):
        raise InvalidConfiguration(f"{path}: {name} must be of type {kind}, not {column.type}")
    values: list[Any] = column.cast(kind).to_pylist()
    return values


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind))


def _check_attributes(kind: pa.DataType, path: Path) -> None:
    if not pa.types.is_struct(kind):
        raise InvalidConfiguration(f"{path}: attributes must be a struct, not {kind}")
    for field in kind:
        is_text = pa.types.is_string, pa.types.is_large_string
        plain = *is_text, pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean
        dictionary = pa.types.is_dictionary(field.type) and pa.types.is_string(
            field.type.value_type
        )
        if not dictionary and not any(test(field.type) for test in plain):
            raise InvalidConfiguration(
                f"{path}: the attribute {field.name} is of type {field.type}; attributes are "
                f"texts, integers, floats and booleans"
            )


def _check_finite(column: pa.StructArray, path: Path, first_row: int) -> None:
    for field, child in zip(column.type, column.flatten(), strict=True):
        if pa.types.is_floating(child.type):
            bad = pc.index(pc.is_finite(child), False).as_py()
            if bad >= 0:
                raise InvalidConfiguration(
                    f"{path}, row {first_row + bad}: {field.name} is {child[bad]}, which compares "
                    f"with nothing: leave it empty"
                )


def attributes_of(column: pa.StructArray) -> list[dict[str, Value]]:
    """Return the attributes of each notification; nulls are absent."""
    names = [field.name for field in column.type]
    if not names:
        return [{} for _ in range(len(column))]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*(child.to_pylist() for child in column.flatten()), strict=True)
    ]
