"""How commands work on Spark: a session for each, how far it is, what a user hears of its end."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from pyspark.sql import SparkSession
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

from octopis.cli import output
from octopis.errors import SparkDied
from octopis.pipeline.spark.progress import watched
from octopis.pipeline.spark.session import open_spark
from octopis.pipeline.spark.settings import parse_conf
from octopis.signals import stops_as_interrupts


@contextmanager
def spark_for(  # noqa: PLR0913 - what a command may say of its session
    work: str,
    master: str | None,
    conf: list[str] | None,
    *,
    unit: str = "tasks",
    goes_on: bool = False,
    defaults: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Open a Spark session for a command, and show how far its tasks are.

    `goes_on` says that the command, started again, does only what is not done yet. `defaults` are
    Spark's settings for this command, where the user says nothing else.
    """
    settings = parse_conf(conf or [])
    columns = MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn()
    with (
        deaths_explained() if goes_on else nullcontext(),
        stops_as_interrupts(),
        output.progress_bar(*columns, transient=True) as tell,
    ):
        tell("starting Spark", 0, None)
        with open_spark(master, settings, defaults=defaults) as spark:
            seen = sys.stderr.isatty()
            with watched(spark, lambda *done: tell(work, *done)) if seen else nullcontext():
                yield spark


@contextmanager
def deaths_explained() -> Iterator[None]:
    """Say of a Spark that has died that the command will go on where it stopped."""
    try:
        yield
    except SparkDied as death:
        hint = "started again, the command goes on where it stopped"
        raise SparkDied(death.reason, death.memory, hint) from death
