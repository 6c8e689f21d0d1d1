"""The small tables of a scenario: who subscribes to what, who publishes, and where."""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from octopis.core.filters import Filter, parse_filter
from octopis.core.model import BrokerId
from octopis.core.topology import SCOT
from octopis.errors import InvalidConfiguration, InvalidFilter, InvalidTopology

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
TIME_NS_MAX = 10**17
"""About three years: with it, all times of a run fit in 64 bits."""


class Subscriber(NamedTuple):
    """One row of the subscriptions table."""

    subscription: str
    client: str
    broker: BrokerId
    filter: Filter
    subscribe_ns: int


class Publisher(NamedTuple):
    """One row of the publishers table."""

    name: str
    broker: BrokerId
    high_rate: bool


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
            filter_ = parse_filter(row["filter"])
        except InvalidFilter as failure:
            raise InvalidConfiguration(f"{where}: {failure}") from failure
        broker = _broker(scot, row["broker"], where)
        time_ns = check_time(row["subscribe_ns"], "subscribe_ns", where)
        found.append(Subscriber(row["subscription"], row["client"], broker, filter_, time_ns))
    return sorted(found, key=lambda subscriber: subscriber.subscribe_ns)


def read_publishers(path: Path, scot: SCOT) -> list[Publisher]:
    """Return the publishers, or raise InvalidConfiguration."""
    found: dict[str, Publisher] = {}
    for number, row in enumerate(_read(path, PUBLISHERS).to_pylist()):
        where, name = f"{path}, row {number}", row["publisher"]
        if None in row.values():
            raise InvalidConfiguration(f"{where}: every column needs a value")
        if name in found:
            raise InvalidConfiguration(f"{where}: publisher {name!r} was there before")
        found[name] = Publisher(name, _broker(scot, row["broker"], where), row["high_rate"])
    return list(found.values())


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    with opened(path) as file:
        for field in schema:
            if field.name not in file.schema_arrow.names:
                raise InvalidConfiguration(f"{path}: the column {field.name} is missing")
        try:
            return file.read(columns=schema.names).cast(schema)
        except (pa.ArrowException, OSError, ValueError) as failure:
            raise InvalidConfiguration(f"{path}: {one_line(failure)}") from failure


def opened(path: Path) -> pq.ParquetFile:
    """Return a Parquet file, or raise InvalidConfiguration."""
    try:
        return pq.ParquetFile(path.resolve())  # Arrow takes a colon for part of an address
    except FileNotFoundError as failure:
        raise InvalidConfiguration(f"there is no {path}") from failure
    except (OSError, pa.ArrowInvalid) as failure:
        reason = f"{path} is not a Parquet file: {one_line(failure)}"
        raise InvalidConfiguration(reason) from failure


def part_files(path: Path) -> list[Path]:
    """Return the files of a table: itself, or the parts in its folder, in the order of names."""
    if not path.is_dir():
        return [path]
    parts = sorted(path.glob("*.parquet"))
    if not parts:
        raise InvalidConfiguration(f"{path} holds no part of a table")
    return parts


def one_line(failure: Exception) -> str:
    """Return what Arrow says as one line: errors are sentences."""
    return " ".join(str(failure).split())


def _broker(scot: SCOT, name: str, where: str) -> BrokerId:
    try:
        return scot.broker(name)
    except InvalidTopology as failure:
        raise InvalidConfiguration(f"{where}: {failure}") from failure


def check_time(time_ns: int, column: str, where: str) -> int:
    """Return a time that a run can handle, or raise InvalidConfiguration."""
    if not 0 <= time_ns <= TIME_NS_MAX:
        raise InvalidConfiguration(
            f"{where}: {column} must be from 0 to {TIME_NS_MAX:,}, not {time_ns:,}"
        )
    return time_ns
