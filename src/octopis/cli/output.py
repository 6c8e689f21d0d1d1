"""How commands print: tables for people, JSON for programs, and how far they are meanwhile."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
)
from rich.table import Table

from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.files import pretty_json
from octopis.files import write_text as write_whole
from octopis.logs import one_line

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

_DAYS_FROM_H = 48

ForceFlag = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]


def console() -> Console:
    """Return a console on standard output as it is now; piped output is not wrapped at 80."""
    terminal = sys.stdout.isatty()
    return Console(width=None if terminal else 160, highlight=False, soft_wrap=not terminal)


def print_json(value: Any) -> None:
    """Print `value` as JSON on standard output."""
    sys.stdout.write(pretty_json(value).decode())


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = ""
) -> None:
    """Print `rows` under `columns`; numbers stand to the right."""
    lines = [tuple(row) for row in rows]
    table = Table(title=escape(title), title_justify="left", caption=caption or None, box=None)
    table.title_style, table.caption_style, table.caption_justify = "bold", "dim", "left"
    for position, column in enumerate(columns):
        numeric = bool(lines) and all(isinstance(line[position], int | float) for line in lines)
        table.add_column(column, justify="right" if numeric else "left", header_style="bold cyan")
    for line in lines:
        table.add_row(*(escape(_shown(cell)) for cell in line))
    console().print(table)


def print_facts(title: str, facts: Iterable[tuple[str, object]]) -> None:
    """Print names and values, one pair a line."""
    table = Table(title=escape(title), title_justify="left", box=None, show_header=False)
    table.title_style = "bold"
    table.add_column(style="cyan")
    table.add_column()
    for name, value in facts:
        table.add_row(name, escape(_shown(value)))
    console().print(table)


def say(text: str) -> None:
    """Print one line of plain text for people."""
    console().print(escape("\n".join(map(one_line, text.split("\n")))))


def ago(then_ns: int) -> str:
    """Say how long ago a time was (nanoseconds since 1970)."""
    return f"{_span(time.time_ns() - then_ns)} ago"


def in_time(then_ns: int) -> str:
    """Say how far ahead a time is (nanoseconds since 1970)."""
    return f"in {_span(then_ns - time.time_ns())}"


def _span(span_ns: int) -> str:
    seconds = max(0, span_ns) // 10**9
    hours, minutes = divmod(seconds // 60, 60)
    if hours >= _DAYS_FROM_H:
        return f"{hours // 24} days"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds % 60} s"


def be_quiet() -> None:
    """Print nothing more, also at interpreter exit: the reader has gone (`octopis ... | head`)."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_text(path: Path) -> str:
    """Return the text of a file that the user named, or raise InvalidConfiguration."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure.strerror}") from failure
    except UnicodeDecodeError as failure:
        raise InvalidConfiguration(f"{path} is not a text file in UTF-8") from failure


def write_text(path: Path, text: str) -> None:
    """Write a file that the user named, or raise OperationFailed."""
    try:
        write_whole(path, text)
    except OSError as failure:
        raise OperationFailed(f"cannot write {path}: {failure.strerror}") from failure


def check_new(paths: Iterable[Path], *, force: bool) -> None:
    """Raise InvalidConfiguration where a file is there already that nobody said to replace."""
    for path in paths:
        if path.exists() and not force:
            raise InvalidConfiguration(
                f"{path} is there already: choose another name, or say --force to replace it"
            )


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


def _shown(cell: object) -> str:
    match cell:
        case bool():
            return "yes" if cell else "no"
        case int():
            return f"{cell:,}"
        case float():
            return f"{cell:,.3g}" if abs(cell) < 1000 else f"{cell:,.0f}"
        case _:
            return one_line(str(cell))
