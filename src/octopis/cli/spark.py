"""A Spark session for a command, with our own progress on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from octopis.pipeline.spark.progress import watched
from octopis.pipeline.spark.session import open_spark


@contextmanager
def spark_for(work: str, master: str | None, unit: str = "tasks") -> Iterator[SparkSession]:
    """Open a session; show how far Spark is, where standard error is a terminal."""
    if not sys.stderr.isatty():
        with open_spark(master) as spark:
            yield spark
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        with open_spark(master) as spark:
            bar.update(task, description=work)
            with watched(spark, told):
                yield spark
