"""Subscriptions that somebody has written down: a text of filters, or a table with their places.

A text has one filter in each line; empty lines, and those that begin with #, are passed over. A
table (CSV or Parquet) has the columns `filter` and, where that is known, `subscriber` and `broker`.
"""

import csv
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from octopis.core.filters import Filter, parse_filter
from octopis.core.model import BrokerId
from octopis.core.model.suggestion import did_you_mean
from octopis.core.topology import SCOT
from octopis.errors import InvalidConfiguration, InvalidFilter, InvalidTopology
from octopis.files import check_local
from octopis.scenario.tables import one_line

COLUMNS = ("filter", "subscriber", "broker")


class WantedSubscription(NamedTuple):
    """A filter, and whose it is; None where nobody says it."""

    filter: str
    subscriber: str | None = None
    broker: BrokerId | None = None
    where: str = ""
    """The file and line that it stands in."""


def read_wanted(path: Path, scot: SCOT) -> list[WantedSubscription]:
    """Return the subscriptions in a file, or raise InvalidConfiguration with the line."""
    check_local(path)
    places: dict[str, BrokerId] = {}
    found = []
    for line, row in _rows(path):
        where = f"{path}, line {line}"
        text = (row.get("filter") or "").strip()
        if not text:
            raise InvalidConfiguration(f"{where}: there is no filter")
        try:
            parse_filter(text)
        except InvalidFilter as failure:
            raise InvalidConfiguration(f"{where}: {failure}") from failure
        subscriber, broker = row.get("subscriber") or None, _broker(row, scot, where)
        if subscriber and broker and places.setdefault(subscriber, broker) != broker:
            raise InvalidConfiguration(
                f"{where}: {subscriber!r} is at {places[subscriber]} and at {broker}: "
                "a subscriber has one broker"
            )
        found.append(WantedSubscription(text, subscriber, broker, where))
    if not found:
        raise InvalidConfiguration(f"{path} holds no subscription")
    return found


def check_known(wanted: Collection[WantedSubscription], attributes: Collection[str]) -> None:
    """Raise InvalidConfiguration for a filter that names an attribute which the data has not."""
    for each in wanted:
        check_names(parse_filter(each.filter), attributes, each.where)


def check_names(filter_: Filter, attributes: Collection[str], where: str) -> None:
    """Raise InvalidConfiguration where a filter names an attribute that no row has."""
    for name in sorted(filter_.names()):
        if name not in attributes:
            hint = did_you_mean(name, attributes) or f"; there are {', '.join(attributes)}"
            raise InvalidConfiguration(f"{where}: no row has an attribute {name!r}{hint}")


def _broker(row: Mapping[str, str | None], scot: SCOT, where: str) -> BrokerId | None:
    name = row.get("broker")
    try:
        return scot.broker(name) if name else None
    except InvalidTopology as failure:
        raise InvalidConfiguration(f"{where}: {failure}") from failure


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows of a file with their lines, by column."""
    try:
        if path.suffix == ".parquet":
            table = pq.read_table(path.resolve())
            _check_columns(table.column_names, path)
            yield from enumerate(table.cast(_texts(table)).to_pylist(), 1)
            return
        with path.open(encoding="utf-8-sig", newline="") as lines:
            if path.suffix == ".csv":
                reader = csv.DictReader(lines)
                _check_columns(reader.fieldnames or [], path)
                for row in reader:
                    yield reader.line_num, row
                return
            for number, line in enumerate(lines, 1):
                if line.strip() and not line.lstrip().startswith("#"):
                    yield number, {"filter": line}
    except FileNotFoundError as failure:
        raise InvalidConfiguration(f"there is no {path}") from failure
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException) as failure:
        raise InvalidConfiguration(f"cannot read {path}: {one_line(failure)}") from failure


def _texts(table: pa.Table) -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in table.column_names])


def _check_columns(names: Collection[str], path: Path) -> None:
    if "filter" not in names:
        raise InvalidConfiguration(f"{path} has no column 'filter'{did_you_mean('filter', names)}")
    for name in names:
        if name not in COLUMNS:
            hint = did_you_mean(name, COLUMNS) or f"; known are {', '.join(COLUMNS)}"
            raise InvalidConfiguration(f"{path}: unknown column {name!r}{hint}")
