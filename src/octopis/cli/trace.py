"""`octopis trace`: what runs have left behind, measured and checked on Spark."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from octopis.cli import options, output
from octopis.cli.spark import spark_for
from octopis.errors import DeliveriesWrong, InvalidConfiguration
from octopis.pipeline.results.check import UNORDERED, Verdict
from octopis.pipeline.results.check import check as check_trace
from octopis.pipeline.results.results import write_results
from octopis.pipeline.runs.sweep import scenario_of
from octopis.scenario.folder import read_scenario

app = typer.Typer(
    help="What runs have left behind, on Spark: metrics, check.", no_args_is_help=True
)

_MS = 1e6


@app.command()
def metrics(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="Folders of runs.")],
    out: Annotated[Path, typer.Option(help="The folder to write; new.")] = Path("out/metrics"),
    master: options.Master = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure runs: messages, delays, lengths, queues and stability, as Parquet and CSV."""
    with spark_for("measuring", master) as spark:
        rows = write_results(spark, traces, out)
    if as_json:
        output.print_json(rows)
        return
    output.print_table(
        "Runs (delays in ms)",
        ("run", "deliveries", "lost", "subscription IMs", "notification IMs", "mean delay", "p99"),
        [_shown(row) for row in rows],
    )
    output.say(f"All tables, as Parquet and CSV: {out}")


@app.command()
def check(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="The folder of a run.")],
    scenario: Annotated[
        Path | None, typer.Option(help="Its scenario. [what the sweep beside it says]")
    ] = None,
    any_order: Annotated[
        bool,
        typer.Option("--any-order", help="Count deliveries out of order, but let them pass."),
    ] = False,
    master: options.Master = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Compare a run's deliveries with the ground truth; exit 1 where any is wrong."""
    folder = scenario or scenario_of(trace)
    if folder is None:
        raise InvalidConfiguration(f"say which scenario {trace} was run from: --scenario DIR")
    loaded = read_scenario(folder)
    with spark_for("checking", master) as spark:
        verdict = check_trace(spark, trace, loaded)
    if as_json:
        output.print_json(asdict(verdict))
    else:
        _print_verdict(trace, verdict)
    wrong = {
        fault: count
        for fault, count in verdict.faults.items()
        if count and not (any_order and fault == UNORDERED)
    }
    if wrong:
        raise DeliveriesWrong(str(trace), wrong)


def _print_verdict(trace: Path, verdict: Verdict) -> None:
    facts: list[tuple[str, object]] = [("due", verdict.due), ("delivered", verdict.delivered)]
    output.print_facts(f"Deliveries of {trace.name}", [*facts, *verdict.faults.items()])
    if verdict.examples:
        output.print_table(
            "The first of each kind",
            tuple(verdict.examples[0]),
            [tuple(row.values()) for row in verdict.examples],
        )


def _shown(row: dict[str, Any]) -> tuple[object, ...]:
    def delay(name: str) -> object:
        value = row.get(f"notification_delay_{name}_ns")
        return "" if value is None else value / _MS

    counts = ("deliveries", "deliveries_lost", "subscription_ims", "notification_ims")
    return (row["run"], *(row[name] for name in counts), delay("mean"), delay("p99"))
