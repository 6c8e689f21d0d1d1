"""`octopis sub`: subscribe from the shell, and print what comes as JSON lines."""

import asyncio
import signal
import sys
from typing import Annotated

import typer
import uvloop

from octopis.cli import output
from octopis.cli.notifications import format_line
from octopis.cli.overlay_options import StateOption, default_url
from octopis.client.client import Client
from octopis.client.streams import Gap, Notifications
from octopis.errors import InvalidConfiguration

_SCHEME = "octopis://"


def sub(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[URL] FILTER...",
            help="The broker (that of the latest overlay here), and what to subscribe to: "
            "\"price > 50 AND symbol = 'IBM'\"; several filters mean any of them.",
        ),
    ],
    count: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many notifications.")
    ] = None,
    dialect: Annotated[
        str, typer.Option(help="How filters are written: sql, padres or python.")
    ] = "sql",
    state: StateOption = None,
) -> None:
    """Subscribe, and print one line of JSON for each notification, until Ctrl-C."""
    filters = list(words)
    url = filters.pop(0) if filters[0].startswith(_SCHEME) else default_url(state)
    if not filters:
        raise InvalidConfiguration("say what to subscribe to, such as \"symbol = 'IBM'\"")
    try:
        uvloop.run(_print(url, filters, dialect, count))
    except BrokenPipeError:
        output.be_quiet()


async def _print(url: str, filters: list[str], dialect: str, count: int | None) -> None:
    loop, printing = asyncio.get_running_loop(), asyncio.current_task()
    assert printing is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, printing.cancel)
    try:
        async with Client(url) as client:
            stream = client.subscribe(*filters, dialect=dialect, on_gap=_report)
            async with stream as notifications:
                sys.stderr.write(f"octopis: subscribed at {client.broker}\n")
                await _print_all(notifications, count)
    except asyncio.CancelledError:
        sys.stderr.write("octopis: stopped\n")


async def _print_all(notifications: Notifications, left: int | None) -> None:
    async for batch in notifications.batches():
        shown = batch[:left]
        sys.stdout.write("".join(map(format_line, shown)))
        sys.stdout.flush()
        if left is not None:
            left -= len(shown)
            if not left:
                break


def _report(gap: Gap) -> None:
    sys.stderr.write(f"octopis: notifications may be missing here: {gap.reason}\n")
