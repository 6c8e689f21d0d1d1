"""`octopis pub`: publish from the shell, also the JSON lines that `octopis sub` prints."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from octopis.cli import output
from octopis.cli.live.credentials import credentials_at
from octopis.cli.live.secrets import SecretOption, secret_of
from octopis.cli.notifications import line_batches, parse_attributes, parse_line
from octopis.cli.options import CredentialsOption, StateOption, address_first
from octopis.client.client import Client
from octopis.client.credentials import Given
from octopis.client.publishing import Publication
from octopis.core.model import Value
from octopis.errors import ConnectionFailed, InvalidConfiguration, InvalidNotification, OctopisError

_PROGRESS_S = 0.5
_AT_ONCE = 5_000
"""Notifications of one batch, so that progress is seen."""


def pub(  # noqa: PLR0913, PLR0917 - each is an option of the command
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[URL] [NAME=VALUE]...",
            help="The broker (that of the latest overlay here), and attributes: symbol=IBM "
            "price=12.5.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="JSON lines to publish instead, - for standard input."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=1e-3, help="So many per second; as fast as it goes.")
    ] = None,
    payload: Annotated[str, typer.Option(help="Text that goes along, as UTF-8.")] = "",
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Publish when every broker knows all subscriptions made before."
        ),
    ] = False,
    secret_file: SecretOption = None,
    credentials: CredentialsOption = None,
    state: StateOption = None,
) -> None:
    """Publish a notification, or many from JSON lines; say how many were accepted."""
    url, given = address_first(words or [], state)
    if bool(given) == (file is not None):
        raise InvalidConfiguration(
            "say what to publish: attributes such as symbol=IBM price=12.5, or --file"
        )
    if file is None:
        attributes = parse_attributes(given).attributes
        source = _once(attributes, payload.encode())
    else:
        source = _lines(file, payload.encode())
    login = credentials_at(url, credentials, state)
    publisher = _Publisher(rate, secret_of(secret_file))
    try:
        uvloop.run(publisher.run(url, source, login, wait=wait))
    except (ConnectionFailed, InvalidNotification):
        # Of the batch that failed, nobody has counted what was accepted.
        sys.stderr.write(f"octopis: accepted: at least {_counted(publisher.accepted)}\n")
        raise
    output.say(f"accepted: {_counted(publisher.accepted)}")


_Notifications = list[tuple[dict[str, Value], bytes]]
_Batch = tuple[_Notifications, OctopisError | None]
"""Notifications, and what is wrong with the one after them."""


class _Publisher:
    def __init__(self, rate: float | None, secret: str | None) -> None:
        self.accepted = 0
        self._secret = secret
        self._rate = rate
        self._due_s = 0.0
        self._shown_at = time.monotonic()

    async def run(
        self, url: str, source: AsyncIterator[_Batch], credentials: Given, *, wait: bool
    ) -> None:
        options: dict[str, Any] = {"secret": self._secret, "credentials": credentials}
        async with Client(url, reconnect_s=5.0, **options) as client:
            if wait:
                await client.settled()
            self._due_s = time.time()
            async for batch, fault in source:
                waiting = batch
                while waiting:
                    count, publications = await self._due(waiting)
                    waiting = waiting[count:]
                    self.accepted += await client.publish_many(publications)
                    self._show()
                if fault is not None:
                    raise fault
        self._show(last=True)

    async def _due(self, waiting: _Notifications) -> tuple[int, list[Publication]]:
        """Return the notifications whose time has come, and how many they are."""
        if self._rate is None:
            return _AT_ONCE, list(waiting[:_AT_ONCE])
        await asyncio.sleep(self._due_s - time.time())
        due: list[Publication] = []
        now = time.time()
        while len(due) < len(waiting) and self._due_s <= now:
            due.append((*waiting[len(due)], int(self._due_s * 1e9)))
            self._due_s += 1 / self._rate
        return len(due), due

    def _show(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if sys.stderr.isatty() and (last or now - self._shown_at > _PROGRESS_S):
            self._shown_at = now
            sys.stderr.write(f"\raccepted: {self.accepted:,}" + ("\r\033[K" if last else ""))
            sys.stderr.flush()


def _counted(count: int) -> str:
    return f"{count:,} notification{'s' if count != 1 else ''}"


async def _once(attributes: dict[str, Value], payload: bytes) -> AsyncIterator[_Batch]:
    yield [(attributes, payload)], None


async def _lines(path: Path, payload: bytes) -> AsyncIterator[_Batch]:
    number, where = 0, "standard input" if str(path) == "-" else path
    async for lines in line_batches(path):
        batch: _Notifications = []
        for line in lines:
            number += 1
            if not line.strip():
                continue
            try:
                attributes, own = parse_line(line)
            except InvalidNotification as failure:
                yield batch, InvalidNotification(f"{where}, line {number}: {failure}")
                return
            batch.append((attributes, own or payload))
        yield batch, None
