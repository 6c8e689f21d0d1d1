"""How `octopis evaluate` shows its progress and its results."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from octopis.cli import output
from octopis.evaluation.agenda import Progress, Told
from octopis.evaluation.report import VERDICTS, Report
from octopis.evaluation.tables import shown, spread

_LINE_EVERY_S = 30.0


@contextmanager
def shown_progress() -> Iterator[Told]:
    """Show how far it is on standard error: a bar on a terminal, a line now and then elsewhere."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[detail]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0, detail="")

        def told(progress: Progress) -> None:
            bar.update(
                task, description=progress.stage, completed=progress.share, detail=_detail(progress)
            )

        yield told


def _lines() -> Told:
    last_stage, last_s = "", 0.0

    def told(progress: Progress) -> None:
        nonlocal last_stage, last_s
        now = time.monotonic()
        if progress.stage != last_stage or now - last_s >= _LINE_EVERY_S:
            last_stage, last_s = progress.stage, now
            sys.stderr.write(f"{progress.stage}: {progress.share:.0%}, {_detail(progress)}\n")
            sys.stderr.flush()

    return told


def _detail(progress: Progress) -> str:
    left = f", about {_clock(progress.left_s)} left" if progress.left_s >= 1 else ""
    return f"{progress.done} of {progress.total} done, {_clock(progress.elapsed_s)} so far{left}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def print_report(report: Report, page: Path) -> None:
    """Print both tables, and say where the page is."""
    output.print_table(
        "What must hold exactly",
        ("what", "found", "holds"),
        [(each.text, each.found, each.holds) for each in report.exact],
    )
    output.say("")
    output.print_table(
        "The paper's claims",
        ("claim", "", "paper", "ours", "over seeds", "direction holds"),
        [
            (
                each.claim.text,
                each.claim.unit,
                "" if each.claim.paper is None else f"{each.claim.paper:g}",
                shown(each.ours, each.claim.unit),
                spread(each),
                VERDICTS[each.verdict][1],
            )
            for each in report.outcomes
        ],
    )
    output.say(f"\nReport: {page} (reasons, figures, sensitivity); figures and tables beside it.")
