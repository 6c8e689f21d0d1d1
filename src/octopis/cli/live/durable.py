"""`octopis durable`: the durable subscriptions of an overlay, wherever in it they live."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from octopis.cli import output
from octopis.cli.live.credentials import credentials_of
from octopis.cli.live.disk_output import durable_document, print_durable, print_durables
from octopis.cli.live.durable_move import move
from octopis.cli.live.secrets import SecretOption, secret_of
from octopis.cli.options import (
    ConfigOption,
    CredentialsOption,
    DurableName,
    OverlayOption,
    StateOption,
    addresses_of,
    base_of,
)
from octopis.client.client import Client
from octopis.client.credentials import Given
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.overlay.durables import Hosted, ask_durables
from octopis.overlay.registry import overlays

app = typer.Typer(
    help="Durable subscriptions of a live overlay: list, show, move, drop.\n\n`octopis sub FILTER "
    "--durable NAME` makes one, where the overlay is `up --durable DIR`.",
    no_args_is_help=True,
)

app.command()(move)


@app.command(name="list")
def list_durables(
    overlay: OverlayOption = None,
    config: ConfigOption = None,
    credentials: CredentialsOption = None,
    state: StateOption = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Ask every broker for its durable subscriptions: where each lives, and how far it is behind.

    The lag is how many notifications are kept that nobody has acknowledged, from the oldest
    position to the newest.
    """
    called, addresses = addresses_of(overlay, config, state)
    given = credentials_of(addresses.values(), credentials, state)
    found = uvloop.run(ask_durables(addresses, credentials=given))
    if as_json:
        documents = [durable_document(each) for each in found.durables]
        output.print_json({"overlay": called, "durables": documents, "silent": found.silent})
    else:
        print_durables(called, found.durables)
    if found.silent:
        raise OperationFailed(f"no answer from {' '.join(found.silent)}")


@app.command()
def show(  # noqa: PLR0913, PLR0917 - each is an option of the command
    name: DurableName,
    overlay: OverlayOption = None,
    config: ConfigOption = None,
    credentials: CredentialsOption = None,
    state: StateOption = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Show one durable subscription: its filter, where it lives, what is kept for it, for whom."""
    _, addresses = addresses_of(overlay, config, state)
    given = credentials_of(addresses.values(), credentials, state)
    hosted = uvloop.run(ask_durables(addresses, credentials=given)).named(name)
    if as_json:
        output.print_json(durable_document(hosted))
    else:
        print_durable(hosted, addresses[hosted.host])


@app.command()
def drop(  # noqa: PLR0913, PLR0917 - each is an option of the command
    name: DurableName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    secret_file: SecretOption = None,
    overlay: OverlayOption = None,
    config: ConfigOption = None,
    credentials: CredentialsOption = None,
    state: StateOption = None,
) -> None:
    """End a durable subscription, with all that is kept for it: what is not read is gone."""
    secret = secret_of(secret_file)
    _, addresses = addresses_of(overlay, config, state)
    given = credentials_of(addresses.values(), credentials, state)
    hosted = uvloop.run(ask_durables(addresses, credentials=given)).named(name)
    if not yes:
        _ask(hosted)
    uvloop.run(_drop(name, addresses[hosted.host], secret, given))
    output.say(f"{name} at {hosted.host} is dropped.")


def _ask(hosted: Hosted) -> None:
    """Let the user say once more that it is meant."""
    info = hosted.info
    drop_it = (
        f"drop {info.name!r} at {hosted.host}, and what nobody has acknowledged ({info.lag:,})"
    )
    if not sys.stdin.isatty():
        raise InvalidConfiguration(f"say --yes to {drop_it}")
    typer.confirm(f"Do you want to {drop_it}?", abort=True)


async def _drop(name: str, address: str, secret: str | None, credentials: Given) -> None:
    options: dict[str, Any] = {"secret": secret, "credentials": credentials, "reconnect_s": 0}
    async with Client(f"octopis://{address}", **options) as client:
        await client.drop_durable(name)


def home_url(name: str, credentials: Path | None, state: Path | None) -> str | None:
    """Return where a durable subscription of the latest overlay lives; None if it is not there.

    Raises InvalidConfiguration where that overlay keeps nothing on disk.
    """
    running, _ = overlays(base_of(state))
    if not running:
        return None
    addresses = running[-1].addresses
    given = credentials_of(addresses.values(), credentials, state)
    hosted = uvloop.run(ask_durables(addresses, credentials=given)).get(name)
    return None if hosted is None else f"octopis://{addresses[hosted.host]}"
