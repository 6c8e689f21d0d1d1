"""`octopis store`: look at what brokers keep on disk."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from octopis.cli import output
from octopis.store.check import Report, check, stores_in

app = typer.Typer(help="What brokers keep on disk: check.", no_args_is_help=True)


@app.callback()
def _store() -> None:
    """Let `check` be a word of its own, also while it is the only one."""


@app.command(name="check")
def check_stores(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a broker, or of such folders.")
    ],
    as_json: output.JsonFlag = False,
) -> None:
    """Read every record of brokers that are down, and say what is damaged; change nothing."""
    reports = [check(each) for each in stores_in(folder)]
    if as_json:
        output.print_json([msgspec.to_builtins(report) for report in reports])
    else:
        for report in reports:
            _print(report)
    if any(report.damages for report in reports):
        raise typer.Exit(1)


def _print(report: Report) -> None:
    facts: list[tuple[str, object]] = [
        ("format version", report.version),
        ("broker", report.owner),
        ("epoch", str(report.epoch)),
        ("segments", report.segments),
        ("records", report.records),
        ("bytes", report.bytes),
        *((f"state: {kind}", count) for kind, count in report.state.items()),
    ]
    output.print_facts(f"{'damaged' if report.damages else 'ok'}: {report.folder}", facts)
    for each in report.unfinished:
        output.say(f"cut short: {each.segment} at byte {each.offset:,}: the end was being written")
    for each in report.damages:
        where = f"{each.segment} at byte {each.offset:,}, {each.length:,} bytes"
        output.say(f"damage: {where}: {each.reason}")
