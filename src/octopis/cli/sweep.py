"""`octopis sweep`: many simulations, one in each Spark task."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from octopis.cli import options, output
from octopis.cli.spark import spark_for
from octopis.cli.topology import load
from octopis.errors import SweepFailed
from octopis.pipeline.runs import sweep as sweeping
from octopis.pipeline.runs.runs import Loaders, parse_runs


def sweep(
    runs: Annotated[Path, typer.Argument(metavar="RUNS.toml", help="The table of runs.")],
    out: Annotated[
        Path, typer.Option(help="The folder for the traces; what is done there stays done.")
    ] = Path("out/sweep"),
    master: options.Master = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Run a table of simulations, one in each Spark task; started again, go on where it stopped."""
    table = parse_runs(output.read_text(runs), runs, Loaders(load, options.load_profile))
    with spark_for("simulating", master, unit="runs") as spark:
        reports = sweeping.sweep(spark, table, out)
    if as_json:
        output.print_json(msgspec.to_builtins(reports))
    else:
        output.print_table(
            f"Runs in {out}",
            ("run", "algorithm", "state", "s", "error"),
            [(each.run, each.algorithm, each.state, each.took_s, each.error) for each in reports],
        )
        states = Counter(each.state for each in reports)
        output.say(", ".join(f"{count} {state}" for state, count in states.items()))
    failed = [each for each in reports if each.state == "failed"]
    if failed:
        raise SweepFailed(tuple(each.run for each in failed), len(reports), failed[0].error)
