"""`octopis durable move`: a durable subscription goes to another broker, with all that it has."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, Any

import typer
import uvloop

from octopis.cli import output
from octopis.cli.live.credentials import credentials_of
from octopis.cli.live.secrets import SecretOption, secret_of
from octopis.cli.options import (
    ConfigOption,
    CredentialsOption,
    DurableName,
    OverlayOption,
    StateOption,
    addresses_of,
)
from octopis.client.client import Client
from octopis.client.moving import TIMEOUT_S, Move, Progress, Stage
from octopis.errors import ConnectionFailed, OperationFailed

_RECONNECT_S = 10.0


def move(  # noqa: PLR0913, PLR0917 - each is an option of the command
    name: DurableName,
    to: Annotated[str, typer.Option("--to", metavar="BROKER", help="Where it goes, as in b,2.")],
    abort: Annotated[
        bool,
        typer.Option("--abort", help="Let it stay where it is, if it has not left there yet."),
    ] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=0.1, help="How long each broker may take, in seconds.")
    ] = TIMEOUT_S,
    secret_file: SecretOption = None,
    overlay: OverlayOption = None,
    config: ConfigOption = None,
    credentials: CredentialsOption = None,
    state: StateOption = None,
) -> None:
    """Move a durable subscription to another broker, while all goes on.

    Nothing is lost, nothing comes twice, and positions stay; who reads it is told where it lives
    then. All brokers have to be there. It may be stopped and run again at any time.
    """
    _, addresses = addresses_of(overlay, config, state)
    given = credentials_of(addresses.values(), credentials, state)
    options = {"secret": secret_of(secret_file), "credentials": given}
    work = _Command(name, to, timeout_s)
    uvloop.run(work.abort(addresses, options) if abort else work.run(addresses, options))


class _Command:
    def __init__(self, name: str, to: str, timeout_s: float) -> None:
        self._name, self._to, self._timeout_s = name, to, timeout_s
        self._stage: Stage | None = None

    async def run(self, addresses: Mapping[str, str], options: dict[str, Any]) -> None:
        loop, running = asyncio.get_running_loop(), asyncio.current_task()
        assert running is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, running.cancel)
        try:
            async with _connected(addresses, options) as clients:
                async for each in self._move(clients).run():
                    self._show(each)
        except asyncio.CancelledError:
            sys.stderr.write("\n")
            raise OperationFailed(
                "stopped: the same command goes on from here, or with --abort lets it stay, as "
                "long as it has not left"
            ) from None
        output.say(f"{self._name} lives at {self._to} now.")

    async def abort(self, addresses: Mapping[str, str], options: dict[str, Any]) -> None:
        async with _connected(addresses, options) as clients:
            await self._move(clients).abort()
        output.say(f"{self._name} stays where it is.")

    def _move(self, clients: Mapping[str, Client]) -> Move:
        return Move(clients, self._name, self._to, timeout_s=self._timeout_s)

    def _show(self, progress: Progress) -> None:
        """Say each step once; of what is many, how far it is."""
        stage, done, total = progress
        if sys.stderr.isatty() and stage is Stage.COPIED and done < total:
            sys.stderr.write(f"\rcopied: {done:,} of {total:,}")
        elif stage is not self._stage and (stage is not Stage.COPIED or done == total):
            self._stage = stage
            clear = "\r\033[K" if sys.stderr.isatty() else ""
            sys.stderr.write(f"{clear}{stage.value}\n")
        sys.stderr.flush()


@asynccontextmanager
async def _connected(
    addresses: Mapping[str, str], options: dict[str, Any]
) -> AsyncIterator[dict[str, Client]]:
    """Connect to every broker, or raise OperationFailed that names who does not answer."""
    made = {
        broker: Client(f"octopis://{address}", reconnect_s=_RECONNECT_S, **options)
        for broker, address in addresses.items()
    }
    async with AsyncExitStack() as stack:
        found = await asyncio.gather(
            *(stack.enter_async_context(each) for each in made.values()), return_exceptions=True
        )
        silent = []
        for broker, outcome in zip(made, found, strict=True):
            if isinstance(outcome, ConnectionFailed):
                silent.append(broker)
            elif isinstance(outcome, BaseException):
                raise outcome
        if silent:
            raise OperationFailed(
                f"no answer from {' '.join(silent)}: a broker that is away may have something for "
                "it, so all have to be there. All stays as it is"
            )
        yield made
