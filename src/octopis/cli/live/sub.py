"""`octopis sub`: subscribe from the shell, and print JSON lines (see notifications.py)."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
import uvloop

from octopis.cli import output
from octopis.cli.filter import DialectOption
from octopis.cli.live.credentials import credentials_at
from octopis.cli.live.durable import home_url
from octopis.cli.live.secrets import SecretOption, secret_of
from octopis.cli.notifications import format_line
from octopis.cli.options import CredentialsOption, StateOption, address_first
from octopis.client.client import Client
from octopis.client.durable import DurableNotifications
from octopis.client.streams import Gap, Notifications
from octopis.core.delivery.lasting.records import Policy
from octopis.core.filters import Filter, parse_filter
from octopis.errors import ConnectionLost, InvalidConfiguration, OctopisError

_READY = b"ready"
_AT_ONCE = 1_000
"""Notifications that are printed before they are acknowledged."""

_LAST_ACK_S = 2.0


def sub(  # noqa: PLR0913, PLR0917 - each is an option of the command
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URL] FILTER...",
            help="The broker (that of the latest overlay here), and what to subscribe to: "
            "\"price > 50 AND symbol = 'IBM'\"; several filters mean any of them. A durable "
            "subscription that is there needs none.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Stop after so many notifications; 0: when every broker knows a durable one.",
        ),
    ] = None,
    durable: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Keep the subscription under this name, and what matches until it is printed, "
            "also while nobody reads: needs `overlay up --durable`.",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="earliest|new|POSITION",
            help="Where a durable one begins. [behind the last that was printed]",
        ),
    ] = None,
    policy: Annotated[
        Policy | None,
        typer.Option(
            help="When a broker's disk is full: publishers wait (refuse), or it loses its oldest "
            "(drop_oldest), or what comes (suspend). [refuse]"
        ),
    ] = None,
    background: Annotated[
        bool,
        typer.Option(
            "--background",
            help="Return as soon as every broker knows the subscription, and go on printing.",
        ),
    ] = False,
    dialect: DialectOption = "sql",
    secret_file: SecretOption = None,
    credentials: CredentialsOption = None,
    state: StateOption = None,
    ready_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Subscribe, and print one line of JSON for each notification, until Ctrl-C.

    It says when every broker knows the subscription: what is published from then on will come.

    With --durable NAME the subscription stays when this command ends, and the next one of that
    name goes on behind the last line that was printed. `octopis durable drop NAME` ends it.
    """
    url, texts = address_first(words or [], state)
    if durable is None:
        _check_passing(texts, count, is_lasting=bool(start or policy))
    filters = [parse_filter(text, dialect) for text in texts]
    secret = secret_of(secret_file)
    lasting = {} if durable is None else _lasting(durable, start, policy)
    if durable is not None and url not in (words or []):
        url = home_url(durable, credentials, state) or url
    if background:
        given = {
            "--count": count,
            "--durable": durable,
            "--start": start,
            "--policy": None if policy is None else policy.value,
            "--secret-file": secret_file,
            "--credentials": credentials,
            "--state": state,
            "--dialect": dialect,
        }
        _go_on_in_background(given, [url, *texts])
        return
    about = {"secret": secret, "credentials": credentials_at(url, credentials, state)}
    try:
        uvloop.run(_Subscriber(count, ready_fd).run(url, about, filters, lasting))
    except BrokenPipeError:
        output.be_quiet()


def _check_passing(texts: list[str], count: int | None, *, is_lasting: bool) -> None:
    """Raise InvalidConfiguration where a subscription that is not durable cannot be so."""
    if not texts:
        raise InvalidConfiguration("say what to subscribe to, such as \"symbol = 'IBM'\"")
    if count == 0:
        raise InvalidConfiguration("--count 0 is for durable subscriptions: say --durable NAME")
    if is_lasting:
        raise InvalidConfiguration("--start and --policy are for durable ones: say --durable NAME")


def _lasting(name: str, start: str | None, policy: Policy | None) -> dict[str, Any]:
    """Return what the client is told of a durable subscription."""
    begin: str | int | None = start
    if start is not None and start not in {"earliest", "new"}:
        if not (start.isascii() and start.isdecimal()):
            raise InvalidConfiguration(
                f"--start is earliest, new or a position such as 17, not {start!r}"
            )
        begin = int(start)
    chosen = None if policy is None else policy.value
    return {"durable": name, "start": begin, "policy": chosen, "acks": "manual"}


_Stream = Notifications | DurableNotifications


class _Subscriber:
    """Prints what comes, and says when the subscription is known everywhere."""

    def __init__(self, count: int | None, ready_fd: int | None) -> None:
        self._left = count
        self._ready_fd = ready_fd

    async def run(
        self, url: str, options: dict[str, Any], filters: list[Filter], lasting: dict[str, Any]
    ) -> None:
        loop, running = asyncio.get_running_loop(), asyncio.current_task()
        assert running is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, running.cancel)
        try:
            async with Client(url, **options) as client:
                stream: _Stream = client.subscribe(*filters, on_gap=_report, **lasting)
                async with stream as notifications:
                    _say(f"subscribed at {client.broker}")
                    await self._print(client, notifications)
        except asyncio.CancelledError:
            _say("stopped")

    async def _print(self, client: Client, notifications: _Stream) -> None:
        if self._ready_fd is not None or self._left == 0:
            await client.settled()
            if self._ready_fd is not None:
                self._say_ready(self._ready_fd)
            else:
                _say("subscribed at every broker")
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

    async def _print_all(self, notifications: _Stream) -> None:
        if self._left == 0:
            return
        async for batch in notifications.batches():
            shown = batch[: self._left]
            for place in range(0, len(shown), _AT_ONCE):
                piece = shown[place : place + _AT_ONCE]
                sys.stdout.write("".join(map(format_line, piece)))
                sys.stdout.flush()
                if isinstance(notifications, DurableNotifications):
                    await _acknowledge(notifications, piece[-1].position)
            if self._left is not None:
                self._left -= len(shown)
                if not self._left:
                    break


async def _acknowledge(stream: DurableNotifications, position: int) -> None:
    """Have the broker know what was printed, however often the connection breaks meanwhile."""
    try:
        await _acknowledged(stream, position)
    except asyncio.CancelledError:  # it is printed: whoever comes next shall not print it again
        async with asyncio.timeout(_LAST_ACK_S):
            await _acknowledged(stream, position)
        raise


async def _acknowledged(stream: DurableNotifications, position: int) -> None:
    while stream.acked < position:
        try:
            await stream.ack(position)
        except ConnectionLost:  # the client dials again, or says at last that it cannot
            await asyncio.sleep(0)


def _go_on_in_background(given: Mapping[str, object], words: list[str]) -> None:
    """Start another process that subscribes, and return when it is subscribed everywhere.

    `given` are its options, where they are not None.

    It has our standard output and error, and a session of its own: Ctrl-C is for us alone. What
    goes wrong before it is ready, it says itself; then its exit status becomes ours.
    """
    ready, said = os.pipe()
    options = [f"{name}={value}" for name, value in given.items() if value is not None]
    command = [sys.executable, "-P", "-m", "octopis", "sub", "--ready-fd", str(said), *options]
    process = subprocess.Popen(  # noqa: S603 - our own program
        [*command, "--", *words],
        stdin=subprocess.DEVNULL,
        pass_fds=[said],
        start_new_session=True,
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
