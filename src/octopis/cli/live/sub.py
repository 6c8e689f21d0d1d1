"""`octopis sub`: subscribe from the shell, and print JSON lines (see notifications.py)."""

import asyncio
import os
import signal
import subprocess
import sys
from typing import Annotated

import typer
import uvloop

from octopis.cli import output
from octopis.cli.filter import DialectOption
from octopis.cli.notifications import format_line
from octopis.cli.options import StateOption, address_first
from octopis.client.client import Client
from octopis.client.streams import Gap, Notifications
from octopis.core.filters import Filter, parse_filter
from octopis.errors import InvalidConfiguration, OctopisError

_READY = b"ready"


def sub(  # noqa: PLR0913, PLR0917 - each is an option of the command
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
    background: Annotated[
        bool,
        typer.Option(
            "--background",
            help="Return as soon as every broker knows the subscription, and go on printing.",
        ),
    ] = False,
    dialect: DialectOption = "sql",
    state: StateOption = None,
    ready_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Subscribe, and print one line of JSON for each notification, until Ctrl-C.

    It says when every broker knows the subscription: what is published from then on will come.
    """
    url, texts = address_first(words, state)
    if not texts:
        raise InvalidConfiguration("say what to subscribe to, such as \"symbol = 'IBM'\"")
    filters = [parse_filter(text, dialect) for text in texts]
    if background:
        counted = [] if count is None else ["--count", str(count)]
        _go_on_in_background([*counted, "--dialect", dialect, "--", url, *texts])
        return
    try:
        uvloop.run(_Subscriber(count, ready_fd).run(url, filters))
    except BrokenPipeError:
        output.be_quiet()


class _Subscriber:
    """Prints what comes, and says when the subscription is known everywhere."""

    def __init__(self, count: int | None, ready_fd: int | None) -> None:
        self._left = count
        self._ready_fd = ready_fd

    async def run(self, url: str, filters: list[Filter]) -> None:
        loop, running = asyncio.get_running_loop(), asyncio.current_task()
        assert running is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, running.cancel)
        try:
            async with Client(url) as client:
                stream = client.subscribe(*filters, on_gap=_report)
                async with stream as notifications:
                    _say(f"subscribed at {client.broker}")
                    await self._print(client, notifications)
        except asyncio.CancelledError:
            _say("stopped")

    async def _print(self, client: Client, notifications: Notifications) -> None:
        if self._ready_fd is not None:
            await client.settled()
            self._say_ready(self._ready_fd)
            await self._print_all(notifications)
            return
        confirming = asyncio.create_task(self._confirm(client))
        try:
            await self._print_all(notifications)
        finally:
            confirming.cancel()
            await asyncio.gather(confirming, return_exceptions=True)

    async def _confirm(self, client: Client) -> None:
        try:
            await client.settled()
        except OctopisError as failure:
            _say(f"subscribed, but {failure}")
        else:
            _say("subscribed at every broker")

    def _say_ready(self, descriptor: int) -> None:
        # Where the command that started us is gone, this raises: nobody would know of us.
        os.write(descriptor, _READY)
        os.close(descriptor)

    async def _print_all(self, notifications: Notifications) -> None:
        async for batch in notifications.batches():
            shown = batch[: self._left]
            sys.stdout.write("".join(map(format_line, shown)))
            sys.stdout.flush()
            if self._left is not None:
                self._left -= len(shown)
                if not self._left:
                    break


def _go_on_in_background(words: list[str]) -> None:
    """Start another process that subscribes, and return when it is subscribed everywhere.

    It has our standard output and error, and a session of its own: Ctrl-C is for us alone. What
    goes wrong before it is ready, it says itself; then its exit status becomes ours.
    """
    ready, said = os.pipe()
    command = [sys.executable, "-P", "-m", "octopis", "sub", "--ready-fd", str(said), *words]
    process = subprocess.Popen(  # noqa: S603 - our own program
        command, stdin=subprocess.DEVNULL, pass_fds=[said], start_new_session=True
    )
    os.close(said)
    try:
        heard = os.read(ready, len(_READY))
        if heard != _READY:
            raise typer.Exit(process.wait() or 1)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    finally:
        os.close(ready)
    process.returncode = 0  # it goes on without us: there is nothing to wait for
    _say(f"subscribed at every broker; process {process.pid} goes on (kill {process.pid} ends it)")


def _say(text: str) -> None:
    sys.stderr.write(f"octopis: {text}\n")
    sys.stderr.flush()


def _report(gap: Gap) -> None:
    _say(f"notifications may be missing here: {gap.reason}")
