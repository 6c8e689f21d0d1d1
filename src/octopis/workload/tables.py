"""The tables of a scenario: who subscribes to what and where, who publishes, and what and when.

An attribute that is null in the notifications table is absent from the notification.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from octopis.errors import InvalidConfiguration, InvalidFilter
from octopis.filters import Filter, parse_filter
from octopis.model import BrokerId, Value
from octopis.topology import SCOT

SUBSCRIPTIONS = pa.schema(
    [
        ("subscription", pa.string()),
        ("client", pa.string()),
        ("broker", pa.string()),
        ("filter", pa.string()),
        ("subscribe_ns", pa.int64()),
    ]
)
PUBLISHERS = pa.schema(
    [("publisher", pa.string()), ("broker", pa.string()), ("high_rate", pa.bool_())]
)
NOTIFICATION_COLUMNS = ("publisher", "sequence", "intended_ns", "attributes")
BATCH = 1024
"""Notifications that are read, and matched, together."""


class Subscriber(NamedTuple):
    """One row of the subscriptions table."""

    subscription: str
    client: str
    broker: BrokerId
    wanted: Filter
    subscribe_ns: int


class Publisher(NamedTuple):
    """One row of the publishers table."""

    name: str
    broker: BrokerId
    high_rate: bool


class Publications(NamedTuple):
    """Consecutive rows of the notifications table, in columns."""

    publishers: list[int]
    sequences: list[int]
    intended_ns: list[int]
    attributes: list[dict[str, Value]]


def read_subscribers(path: Path, scot: SCOT) -> list[Subscriber]:
    """Return the subscriptions, sorted by time, or raise InvalidConfiguration."""
    rows = _read(path, SUBSCRIPTIONS)
    found = []
    seen: set[str] = set()
    for number, row in enumerate(rows.to_pylist()):
        where = f"{path}, row {number}"
        if None in row.values():
            raise InvalidConfiguration(f"{where}: every column needs a value")
        if row["subscription"] in seen:
            raise InvalidConfiguration(f"{where}: the id {row['subscription']!r} was there before")
        seen.add(row["subscription"])
        try:
            wanted = parse_filter(row["filter"])
        except InvalidFilter as failure:
            raise InvalidConfiguration(f"{where}: {failure}") from failure
        broker = scot.broker(row["broker"])
        time_ns = _time(row["subscribe_ns"], where)
        found.append(Subscriber(row["subscription"], row["client"], broker, wanted, time_ns))
    return sorted(found, key=lambda subscriber: subscriber.subscribe_ns)


def read_publishers(path: Path, scot: SCOT) -> list[Publisher]:
    """Return the publishers, or raise InvalidConfiguration."""
    found: dict[str, Publisher] = {}
    for number, row in enumerate(_read(path, PUBLISHERS).to_pylist()):
        if None in row.values():
            raise InvalidConfiguration(f"{path}, row {number}: every column needs a value")
        name = row["publisher"]
        if name in found:
            raise InvalidConfiguration(f"{path}, row {number}: publisher {name!r} was there before")
        found[name] = Publisher(name, scot.broker(row["broker"]), row["high_rate"])
    return list(found.values())


def count_notifications(path: Path) -> int:
    """Return how many notifications there are, or raise InvalidConfiguration."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def notification_schema(path: Path) -> pa.Schema:
    """Return the columns of the notifications, or raise InvalidConfiguration."""
    with _opened(path) as file:
        return pa.schema([file.schema_arrow.field(name) for name in _columns(file, path)])


def read_publications(path: Path, publishers: list[Publisher]) -> Iterator[Publications]:
    """Yield the notifications, batch by batch; memory holds a batch at a time."""
    numbers = {publisher.name: number for number, publisher in enumerate(publishers)}
    row, last_ns = 0, 0
    with _opened(path) as file:
        for batch in file.iter_batches(BATCH, columns=_columns(file, path)):
            names = batch.column("publisher").to_pylist()
            times = batch.column("intended_ns").to_pylist()
            for place, (name, time_ns) in enumerate(zip(names, times, strict=True), start=row):
                if name not in numbers:
                    raise InvalidConfiguration(f"{path}, row {place}: no publisher {name!r}")
                if time_ns is None or time_ns < last_ns:
                    raise InvalidConfiguration(
                        f"{path}, row {place}: intended_ns must not be empty and must not fall"
                    )
                last_ns = time_ns
            row += len(batch)
            yield Publications(
                [numbers[name] for name in names],
                batch.column("sequence").to_pylist(),
                times,
                attributes_of(batch.column("attributes")),
            )


def attributes_of(column: pa.StructArray) -> list[dict[str, Value]]:
    """Return the attributes of each notification; nulls are absent."""
    names = [field.name for field in column.type]
    values = [child.to_pylist() for child in column.flatten()]
    if not names:
        return [{} for _ in range(len(column))]
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*values, strict=True)
    ]


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    with _opened(path) as file:
        for field in schema:
            if field.name not in file.schema_arrow.names:
                raise InvalidConfiguration(f"{path}: the column {field.name} is missing")
        try:
            return file.read(columns=schema.names).cast(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as failure:
            raise InvalidConfiguration(f"{path}: {failure}") from failure


def _columns(file: pq.ParquetFile, path: Path) -> list[str]:
    missing = [name for name in NOTIFICATION_COLUMNS if name not in file.schema_arrow.names]
    if missing:
        raise InvalidConfiguration(f"{path}: the column {missing[0]} is missing")
    return list(NOTIFICATION_COLUMNS)


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except FileNotFoundError as failure:
        raise InvalidConfiguration(f"there is no {path}") from failure
    except (OSError, pa.ArrowInvalid) as failure:
        raise InvalidConfiguration(f"{path} is not a Parquet file: {failure}") from failure


def _time(time_ns: int, where: str) -> int:
    if time_ns < 0:
        raise InvalidConfiguration(f"{where}: subscribe_ns must be 0 or more, not {time_ns}")
    return time_ns
