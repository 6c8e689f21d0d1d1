"""`octopis bench streaming-kills`: whether Spark reads and writes exactly once, whatever dies."""

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from octopis.cli import output
from octopis.errors import OperationFailed
from octopis.report import machine
from octopis.signals import stops_as_interrupts


def bench_streaming_kills(  # noqa: PLR0913, PLR0917 - the options of one command
    notifications: Annotated[int, typer.Option(min=1, help="Numbered, and published.")] = 200_000,
    drivers: Annotated[int, typer.Option(min=0, help="How often the driver is killed.")] = 10,
    brokers: Annotated[int, typer.Option(min=0, help="How often a broker is killed.")] = 5,
    workers: Annotated[int, typer.Option(min=0, help="How often a worker of Python's is.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the moments.")] = 1,
    as_json: output.JsonFlag = False,
) -> None:
    """Kill Spark's driver, its workers and brokers while a stream is read, and written back.

    A table and a durable subscriber of what was written must have every number once.
    """
    from octopis.benchmarks.spark import streaming_kills  # noqa: PLC0415 - loads Spark

    plan = streaming_kills.Plan(notifications, drivers, brokers, workers, seed)
    with stops_as_interrupts():
        found = streaming_kills.run(plan, lambda line: sys.stderr.write(f"{line}\n"))
    if as_json:
        output.print_json({"machine": machine.describe(), "seed": seed, **asdict(found)})
    else:
        output.print_table(
            f"{notifications:,} numbered notifications, source to sink and to a table",
            ("where", "rows", "different", "sum", "wanted"),
            [
                ("table", *asdict(found.table).values(), found.wanted.sum),
                ("written back", *asdict(found.written).values(), found.wanted.sum),
            ],
            caption=f"{found.told}; {found.took_s:.0f} s; {machine.describe()}",
        )
    if not found.is_exact:
        raise OperationFailed("what arrived is not what was published")
