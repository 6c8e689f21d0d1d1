"""How simulated runs are shown: a progress bar, the summary, and the moments before a violation."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from octopis.cli import output
from octopis.simulator.ledger import Progress as Told
from octopis.trace import RunSummary


@contextmanager
def progress_bar() -> Iterator[Told]:
    """Show how far a run is, on standard error, where that is a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("virtual {task.fields[virtual]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not sys.stderr.isatty()) as bar:
        tasks: dict[str, TaskID] = {}

        def told(phase: str, done: int, total: int, now_ns: int) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(phase, total=total, rate="", virtual="")
            task = bar.tasks[tasks[phase]]
            rate = f"{task.speed:,.0f}/s" if task.speed else ""
            virtual = f"{now_ns / 1e9:,.1f} s"
            bar.update(tasks[phase], completed=done, rate=rate, virtual=virtual)

        yield told


def print_summary(summary: RunSummary, folder: Path) -> None:
    """Print how a run went."""
    duration_s = (summary.end_ns - summary.begin_ns) / 1e9
    facts: list[tuple[str, object]] = [
        ("algorithm", summary.algorithm),
        ("brokers", summary.brokers),
        ("subscriptions", summary.subscriptions),
        ("notifications", summary.notifications),
        ("deliveries", summary.deliveries),
        ("deliveries lost", summary.deliveries_lost),
        ("subscription IMs", summary.subscription_ims),
        ("... of which duplicates", summary.subscription_duplicates),
        ("notification IMs", summary.notification_ims),
        ("longest queue", f"{summary.queue_length_max:,} messages"),
        ("longest wait for a broker", f"{summary.input_wait_max_ns / 1e6:,.3f} ms"),
        ("virtual time", f"{duration_s:,.3f} s from the first notification due to the last copy"),
    ]
    if summary.dnr_cases:
        cases = ", ".join(f"{name}: {count:,}" for name, count in summary.dnr_cases.items())
        facts.append(("cases of dynamic routing", cases))
    if summary.sync_ims:
        facts.append(("IMs of links that came back", summary.sync_ims))
    output.print_facts(f"{summary.scenario}, seed {summary.seed}", facts)
    for bound in summary.queue_bounds:
        output.say(
            f"The queue from {bound.source} to {bound.target} reached its bound "
            f"{bound.first_ns / 1e9:,.3f} s into the run; {bound.policy} took away "
            f"{bound.dropped:,} messages."
        )
    output.say(f"Trace: {folder}")


def print_moments(violation: str, messages: list[dict[str, Any]]) -> None:
    """Print the messages just before a violation."""
    output.say(violation)
    columns = ("s", "from", "to", "link", "message", "about", "queue", "carries", "reason", "fate")
    output.print_table("The moments before", columns, [_moment(each) for each in messages])


def _moment(row: dict[str, Any]) -> tuple[object, ...]:
    about = row["subscription"] or f"{row['publisher']} {row['sequence']}"
    carries = row["cbv_p"] or (f"{row['bids']} ids" if row["bids"] else "")
    return (
        f"{row['enqueued_ns'] / 1e9:.6f}",
        row["source"],
        row["target"],
        row["link_kind"],
        row["message"],
        "" if row["message"] == "sync" else about,
        row["queue_length"],
        carries,
        row["reason"],
        row["fate"],
    )
