"""Options that the commands of live overlays share."""

import os
from pathlib import Path
from typing import Annotated

import typer

from octopis.cli import output
from octopis.cli.topology import load
from octopis.client.address import DEFAULT_PORT
from octopis.core.routing import Algorithm
from octopis.core.topology import format_topology
from octopis.errors import InvalidConfiguration
from octopis.overlay.registry import find, overlays, state_base
from octopis.overlay.settings import NamedOverlay, configured

TopologyOption = Annotated[
    str | None,
    typer.Option(help="A name from `octopis topology list`, or a topology's TOML file."),
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="An overlay's TOML file; `octopis overlay config` writes one.")
]
AlgorithmOption = Annotated[
    Algorithm | None, typer.Option(help="Route by this one, whatever the file says.")
]
StateOption = Annotated[
    Path | None,
    typer.Option(help="Where running overlays are noted. [OCTOPIS_STATE, or your runtime folder]"),
]
NameArgument = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Which overlay, as `overlay up` called it; the latest."),
]
UrlArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[URL]",
        help="octopis://host:port of a broker; that of the latest overlay here, or "
        f"octopis://127.0.0.1:{DEFAULT_PORT}.",
    ),
]


def configured_overlay(
    topology: str | None, config: Path | None, algorithm: Algorithm | None
) -> NamedOverlay:
    """Return the overlay that flags, environment and file describe, the first coming first."""
    if topology is not None and config is not None:
        raise InvalidConfiguration("--topology and --config exclude each other; the file has one")
    if config is not None:
        text, where = output.read_text(config), str(config)
    else:
        name = topology or "figure-3"
        text, where = format_topology(load(name)), name
    flags = {("routing", "algorithm"): None if algorithm is None else algorithm.value}
    return configured(text, where, os.environ, flags)


def base_of(state: Path | None) -> Path:
    """Return the folder where running overlays are noted."""
    return state_base(state, os.environ)


def default_url(state: Path | None = None) -> str:
    """Return where to connect when the user has not said it."""
    running, _ = overlays(base_of(state))
    return running[-1].url if running else f"octopis://127.0.0.1:{DEFAULT_PORT}"


def addresses_of(
    name: str | None, config: Path | None, state: Path | None
) -> tuple[str, dict[str, str]]:
    """Return what an overlay is called and where its brokers are: by its file, or its state."""
    if config is None:
        found = find(base_of(state), name)
        return found.name, found.addresses
    if name is not None:
        raise InvalidConfiguration("give the name of an overlay that runs here, or --config")
    overlay = configured_overlay(None, config, None)
    addresses = {}
    for broker in overlay.configuration.scot.brokers:
        address = overlay.configuration.address(broker)
        if not address.port:
            raise InvalidConfiguration(f"{config} does not say at which port {broker} listens")
        addresses[broker.short] = str(address)
    return overlay.topology.name, addresses
