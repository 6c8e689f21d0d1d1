"""Rows of a trace that come one by one, with numbers in place of names until they are written."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octopis.routing import Reason
from octopis.simulator.network import Network
from octopis.trace import TraceWriter
from octopis.trace.schemas import NAME, SCHEMAS
from octopis.workload.folder import Scenario

ROWS = 20_000
"""Rows that are collected before they are handed to the writer."""

LINK_KINDS = ("aCOL", "iCOL")
MESSAGES = ("notification", "subscription", "sync")
FATES = ("left", "dropped", "cut")
REASONS = tuple(reason.value for reason in Reason)

_VOCABULARY = {"source": "broker", "target": "broker"}
"""Columns that take their names from another column's list."""


class Rows:
    """Collects rows, and hands them to the writer a few thousand at a time."""

    def __init__(self, scenario: Scenario, network: Network, writer: TraceWriter) -> None:
        subscribers = scenario.subscribers
        names: dict[str, Sequence[str]] = {
            "broker": [station.broker.short for station in network.stations],
            "publisher": [publisher.name for publisher in scenario.publishers],
            "subscription": [subscriber.subscription for subscriber in subscribers],
            "client": [subscriber.client for subscriber in subscribers],
            "link_kind": LINK_KINDS,
            "message": MESSAGES,
            "fate": FATES,
            "reason": REASONS,
        }
        self._names = {kind: pa.array(each, pa.string()) for kind, each in names.items()}
        self._writer = writer
        self._waiting: dict[str, list[tuple[Any, ...]]] = {name: [] for name in SCHEMAS}

    def wanted(self, table: str) -> bool:
        """Tell whether the trace has this table."""
        return self._writer.wants(table)

    def add(self, table: str, row: tuple[Any, ...]) -> None:
        """Add a row in the order of the table's schema; names are numbers, None is null."""
        waiting = self._waiting[table]
        waiting.append(row)
        if len(waiting) >= ROWS:
            self._flush(table)

    def write(self, table: str, columns: dict[str, npt.NDArray[Any]]) -> None:
        """Add many rows, given as columns; names are numbers."""
        schema = SCHEMAS[table]
        self._writer.write(
            table,
            {name: self._column(schema.field(name), values) for name, values in columns.items()},
        )

    def flush(self) -> None:
        """Hand everything to the writer."""
        for table in self._waiting:
            self._flush(table)

    def _flush(self, table: str) -> None:
        waiting, self._waiting[table] = self._waiting[table], []
        if waiting:
            columns = zip(SCHEMAS[table], zip(*waiting, strict=True), strict=True)
            self._writer.write(
                table, {field.name: self._column(field, values) for field, values in columns}
            )

    def _column(self, field: pa.Field, values: Any) -> pa.Array:
        if field.type != NAME:
            return pa.array(values, field.type)
        names = self._names[_VOCABULARY.get(field.name, field.name)]
        numbers = values.astype(np.int32) if isinstance(values, np.ndarray) else values
        return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), names)
