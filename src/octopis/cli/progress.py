"""How far a command is, on standard error, and a Spark session that shows it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Tell(Protocol):
    """Told a phase, how many of how many are done, and what further columns show."""

    def __call__(self, phase: str, done: float, total: float | None, **fields: Any) -> None:
        """Show it."""


@contextmanager
def progress_bar(*columns: ProgressColumn, transient: bool = False) -> Iterator[Tell]:
    """Show how far something is, where standard error is a terminal.

    Each phase has a bar of its own; with `transient` only the latest is there, and in the end none.
    """
    with Progress(
        TextColumn("{task.description:<12}"),
        BarColumn(),
        *columns,
        console=Console(stderr=True),
        transient=transient,
        disable=not sys.stderr.isatty(),
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(phase: str, done: float, total: float | None, **fields: Any) -> None:
            if phase not in tasks:
                while transient and tasks:
                    bar.remove_task(tasks.popitem()[1])
                tasks[phase] = bar.add_task(phase, total=total, **fields)
            bar.update(tasks[phase], completed=done, total=total, **fields)

        yield tell


@contextmanager
def spark_for(work: str, master: str | None, unit: str = "tasks") -> Iterator["SparkSession"]:
    """Open a Spark session for a command, and show how far its tasks are."""
    from octopis.pipeline.spark.progress import watched  # noqa: PLC0415 - loads Spark
    from octopis.pipeline.spark.session import open_spark  # noqa: PLC0415

    columns = MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn()
    with progress_bar(*columns, transient=True) as tell:
        tell("starting Spark", 0, None)
        with open_spark(master) as spark:
            seen = sys.stderr.isatty()
            with watched(spark, lambda *done: tell(work, *done)) if seen else nullcontext():
                yield spark
