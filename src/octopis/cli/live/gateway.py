"""`octopis gateway`: doors to a live overlay for whoever speaks HTTP or WebSocket."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
import uvloop
from msgspec import structs

from octopis.cli import output
from octopis.cli.live.credentials import credentials_at, credentials_of
from octopis.cli.options import ConfigOption, OverlayOption, StateOption, base_of
from octopis.core.filters import parse_filter
from octopis.errors import InvalidConfiguration
from octopis.gateway.overlay_view import OverlayView, view_of_address, view_of_document
from octopis.gateway.security import security_of
from octopis.gateway.serving.server import (
    check_place,
    listen,
    quiet_uvicorn,
    serve,
    stop_at_signals,
    tls_of,
    url_of,
)
from octopis.gateway.settings import GatewayLimits, GatewayOptions, parse_limits, parse_origins
from octopis.logs import log_to_stderr
from octopis.overlay.deployment import raise_file_limit, spare_the_collector
from octopis.overlay.gateway import DEFAULT_PORT
from octopis.overlay.process import LOG_FORMAT
from octopis.overlay.registry import CONFIGURATION_FILE, find
from octopis.overlay.settings import PORT_MAX

app = typer.Typer(
    help="HTTP, WebSocket, server-sent events and CloudEvents for a live overlay: run.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Doors to a live overlay."""


_Address = Annotated[
    str | None,
    typer.Argument(
        metavar="[ADDRESS]",
        help="Brokers, as in octopis://127.0.0.1:7400, where nothing else is known.",
    ),
]
_Host = Annotated[str, typer.Option(help="Where it listens: on this machine alone.")]
_Port = Annotated[
    int, typer.Option(min=0, max=PORT_MAX, help="And at which port; 0 for any that is free.")
]
_AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(help="Let pages of this origin use it, too (CORS); may be repeated."),
]
_Limit = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help=f"Change a limit: {', '.join(GatewayLimits.__struct_fields__)}; may be repeated.",
    ),
]
_CredentialsFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="With which it looks how brokers are, at an overlay with security: a file of "
        "credentials. [OCTOPIS_CREDENTIALS, or those of the overlay that runs here]",
    ),
]
_Ca = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Whom brokers' certificates come from. \\[as the credentials say, or the overlay]",
    ),
]
_Certificate = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Speak TLS, with this certificate.")
]
_Key = Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate's private key.")]
_Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Let other machines in without TLS, or without anybody's token."
    ),
]


@app.command()
def run(  # noqa: PLR0913, PLR0917 - each is an option of the command
    address: _Address = None,
    overlay: OverlayOption = None,
    config: ConfigOption = None,
    host: _Host = "127.0.0.1",
    port: _Port = DEFAULT_PORT,
    allow_origin: _AllowOrigin = None,
    limit: _Limit = None,
    credentials: _CredentialsFile = None,
    ca: _Ca = None,
    certificate: _Certificate = None,
    key: _Key = None,
    insecure: _Insecure = False,
    state: StateOption = None,
) -> None:
    """Run a gateway for an overlay, until Ctrl-C; its address is printed, and a page is there."""
    view, slow = _view(address, overlay, config, state)
    if address is None:
        own = credentials_of(view.addresses.values(), credentials, state)
    else:
        own = credentials_at(address, credentials, state)
    view = structs.replace(view, security=security_of(view.overlay, own, ca))
    options = GatewayOptions(
        host=host,
        port=port,
        allow_origins=parse_origins(allow_origin or []),
        slow=slow,
        certificate=str(certificate or ""),
        key=str(key or ""),
        insecure=insecure,
        limits=parse_limits(limit or []),
    )
    check_place(view, options)
    tls_of(options)  # what is wrong with it is said at once
    log_to_stderr(LOG_FORMAT, logging.WARNING)
    quiet_uvicorn()
    raise_file_limit()
    parse_filter("TRUE")  # the language is loaded before anybody waits for it
    spare_the_collector()
    uvloop.run(_serve(view, options))


async def _serve(view: OverlayView, options: GatewayOptions) -> None:
    listener = listen(options.host, options.port)
    url = url_of(listener, options)

    def ready() -> None:
        output.say(f"The gateway of {view.name} is at {url}, what it answers at {url}/docs.")
        sys.stdout.flush()

    stop = asyncio.Event()
    stop_at_signals(stop)
    await serve(view, options, listener, stop, ready)
    output.say("The gateway has stopped.")


def _view(
    address: str | None, name: str | None, config: Path | None, state: Path | None
) -> tuple[OverlayView, str]:
    """Return the overlay that is meant, and what it does with slow clients."""
    if sum(each is not None for each in (address, name, config)) > 1:
        raise InvalidConfiguration("give an address, --overlay or --config, not several of them")
    if address is not None:
        return view_of_address(address), GatewayOptions().slow
    if config is None:
        found = find(base_of(state), name)
        view = view_of_document(found.name, Path(found.folder) / CONFIGURATION_FILE)
    else:
        view = view_of_document("", config)
    assert view.overlay is not None
    return view, view.overlay.configuration.client_queues.policy.value
