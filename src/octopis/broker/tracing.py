"""The traces of this process's brokers: rows go to a thread that writes them to Parquet.

What waits for the thread is bounded. Where the disk cannot keep up, brokers wait for it: a trace
with holes would be worse than a slow broker. A write that fails ends tracing, not the broker.
"""

import logging
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from octopis.core.model import BrokerId
from octopis.errors import InvalidConfiguration
from octopis.trace import Level, RunSummary, write_summary

PIECES_MAX = 256
ROW_GROUP = 20_000
"""Rows of a table that wait in memory; many brokers may share a process."""

Row = tuple[Any, ...]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TraceOptions:
    """Where traces go, one folder for each broker, and how much they hold."""

    folder: Path
    level: Level = Level.DELIVERIES


class Tracing:
    """Writes the traces of some brokers. Use it as a context manager."""

    def __init__(
        self, options: TraceOptions, brokers: Sequence[BrokerId], *, is_private: bool = False
    ) -> None:
        """Make the files; raise InvalidConfiguration where a folder holds something already.

        With `is_private` nobody but their owner gets into the folders: filters and names are there.
        """
        from octopis.trace.writer import TraceWriter  # noqa: PLC0415 - loads Arrow

        self.level = options.level
        try:
            self._writers = {
                broker: TraceWriter(options.folder / broker.short, options.level, ROW_GROUP)
                for broker in brokers
            }
            if is_private:
                for writer in self._writers.values():
                    writer.folder.chmod(0o700)
        except OSError as failure:
            raise InvalidConfiguration(
                f"cannot write a trace to {options.folder}: {failure.strerror}"
            ) from failure
        self._pieces: queue.Queue[tuple[BrokerId, str, list[Row]] | None] = queue.Queue(PIECES_MAX)
        self._failure: Exception | None = None
        self._rows_lost = 0
        self._thread = threading.Thread(target=self._write, name="trace")
        self._summaries: dict[BrokerId, RunSummary] = {}

    def __enter__(self) -> "Tracing":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Write what waits, finish every file, and then each broker's summary."""
        self._pieces.put(None)
        self._thread.join()
        for broker, writer in self._writers.items():
            try:
                writer.close()
                if broker in self._summaries and self._failure is None:
                    write_summary(writer.folder, self._summaries[broker])
            except OSError as failure:
                self._fail(failure)
        if self._failure is not None:
            _log.error("the trace is not complete: %d rows were not written", self._rows_lost)

    def add(self, broker: BrokerId, table: str, rows: list[Row]) -> None:
        """Hand over rows, in the order of the table's columns."""
        if rows:
            self._pieces.put((broker, table, rows))

    def finish(self, broker: BrokerId, summary: RunSummary) -> None:
        """Keep a broker's summary, which is written last."""
        self._summaries[broker] = summary

    def _write(self) -> None:
        while (piece := self._pieces.get()) is not None:
            broker, table, rows = piece
            if self._failure is not None:
                self._rows_lost += len(rows)
                continue
            try:
                self._writers[broker].write_rows(table, rows)
            except (OSError, ValueError, OverflowError) as failure:  # Arrow's are among these
                self._rows_lost += len(rows)
                self._fail(failure)

    def _fail(self, failure: Exception) -> None:
        if self._failure is None:
            self._failure = failure
            _log.error("the trace ends here, the brokers go on: %s", failure)
