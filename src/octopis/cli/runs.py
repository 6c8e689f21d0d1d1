"""`octopis sweep` and `octopis trace`: many simulations on Spark, and what runs left behind."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from octopis.cli import options, output
from octopis.cli.pictures import check_picture_paths, write_figure
from octopis.cli.spark import spark_for
from octopis.cli.topology import load
from octopis.errors import DeliveriesWrong, InvalidConfiguration, SweepFailed
from octopis.files import check_new_folder
from octopis.pipeline.results.check import UNORDERED, Verdict
from octopis.pipeline.results.check import check as check_trace
from octopis.pipeline.results.metrics import write_results
from octopis.pipeline.runs import sweep as sweeping
from octopis.pipeline.runs.run_table import Loaders, parse_runs
from octopis.pipeline.spark.traces import open_trace
from octopis.scenario.folder import read_scenario
from octopis.trace.runs import run_summary

trace_app = typer.Typer(
    help="What runs have left behind: metrics and check on Spark, plot.", no_args_is_help=True
)

_MS = 1e6


def sweep(
    runs: Annotated[Path, typer.Argument(metavar="RUNS.toml", help="The table of runs.")],
    out: Annotated[
        Path, typer.Option(help="The folder for the traces; what is done there stays done.")
    ] = Path("out/sweep"),
    master: options.Master = None,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Run a table of simulations, one in each Spark task; started again, go on where it stopped."""
    table = parse_runs(output.read_text(runs), runs, Loaders(load, options.load_profile))
    sweeping.check_runs(table, out.absolute())
    with spark_for("simulating", master, conf, unit="runs", goes_on=True) as spark:
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


@trace_app.command()
def metrics(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="Folders of runs.")],
    out: Annotated[Path, typer.Option(help="The folder to write; new.")] = Path("out/metrics"),
    master: options.Master = None,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Measure runs: messages, delays, lengths, queues and stability, as Parquet and CSV."""
    check_new_folder(out)
    for trace in traces:
        open_trace(trace)
    with spark_for("measuring", master, conf) as spark:
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


@trace_app.command()
def check(  # noqa: PLR0913, PLR0917 - each is an option of the command
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="The folder of a run.")],
    scenario: Annotated[
        Path | None, typer.Option(help="Its scenario. [what the sweep beside it says]")
    ] = None,
    any_order: Annotated[
        bool,
        typer.Option("--any-order", help="Count deliveries out of order, but let them pass."),
    ] = False,
    master: options.Master = None,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Compare a run's deliveries with the ground truth; exit 1 where any is wrong."""
    folder = scenario or sweeping.scenario_of(trace)
    if folder is None and run_summary(trace).source != "live":
        raise InvalidConfiguration(f"say which scenario {trace} was run from: --scenario DIR")
    loaded = None if folder is None else read_scenario(folder)
    open_trace(trace)
    with spark_for("checking", master, conf) as spark:
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


@trace_app.command()
def plot(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="Folders of runs.")],
    out: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A .svg or .png file. [runs.png]"),
    ] = None,
    force: output.ForceFlag = False,
) -> None:
    """Draw runs side by side: their delays, and their queues (over time at level full)."""
    from octopis.report.run_pictures import draw_runs  # noqa: PLC0415 - loads Matplotlib

    paths = out or [Path("runs.png")]
    check_picture_paths(paths, force=force)
    write_figure(draw_runs(traces), paths)
    for path in paths:
        output.say(f"wrote {path}")


def _print_verdict(trace: Path, verdict: Verdict) -> None:
    due = "not known" if verdict.due is None else verdict.due
    facts: list[tuple[str, object]] = [("due", due), ("delivered", verdict.delivered)]
    output.print_facts(f"Deliveries of {trace.name}", [*facts, *verdict.faults.items()])
    if verdict.due is None:
        output.say(
            "What was due is not known, so nothing can be told of what is lost or was not asked "
            "for. Where a scenario was played, say --scenario DIR."
        )
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
