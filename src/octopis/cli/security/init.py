"""`octopis security init`: all that an overlay needs to keep strangers out."""

import ipaddress
from collections.abc import Iterable
from typing import Annotated

import typer

from octopis.cli import output
from octopis.cli.options import ConfigOption, TopologyOption, configured_overlay
from octopis.cli.security.options import DaysOption, FolderArgument
from octopis.core.model import BrokerId
from octopis.core.toml import encode_text
from octopis.errors import InvalidConfiguration
from octopis.files import check_new_folder
from octopis.overlay.settings import NamedOverlay
from octopis.security.names import BROKER_DAYS


def init(
    folder: FolderArgument,
    topology: TopologyOption = None,
    config: ConfigOption = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Where clients dial brokers: a host's name or an address; may be repeated. This "
            "machine's own are always in, and those of --config.",
        ),
    ] = None,
    days: DaysOption = BROKER_DAYS,
) -> None:
    """Make a security folder: an authority, certificates of all brokers, and a first user.

    There is a certificate and a key for each broker, a pair of keys for
    tokens, roles and users in access.toml, and credentials of the user
    `operator`, who may do everything. The authority holds for 10 years, the
    operator's certificate for 90 days. What is there is never replaced.
    """
    from octopis.security.certificates import host_name, now_utc  # noqa: PLC0415
    from octopis.security.making import FIRST_USER, make_folder  # noqa: PLC0415

    if topology is None and config is None:
        raise InvalidConfiguration("say for which overlay: --topology NAME, or --config FILE")
    overlay = configured_overlay(topology, config, None)
    for each in host or ():
        host_name(each)
    check_new_folder(folder)
    brokers = hosts_of(overlay, host or ())
    made = make_folder(folder, overlay.topology.name, brokers, days=days, now=now_utc())
    output.print_facts(
        f"Security of {overlay.topology.name}, in {folder}",
        [
            ("brokers", len(brokers)),
            (
                "for the overlay's file",
                f"[security]\nfolder = {encode_text(str(folder.absolute()))}",
            ),
            ("first credentials", made.credentials(FIRST_USER)),
            ("roles and users", made.access),
            ("keep to yourself", f"{made.ca_key.name} and {made.token_key.name}: no broker reads"),
        ],
    )


def hosts_of(overlay: NamedOverlay, everywhere: Iterable[str]) -> dict[BrokerId, list[str]]:
    """Return where each broker is dialled, as far as that is known."""
    found = {}
    for broker in overlay.configuration.scot.brokers:
        own = overlay.configuration.address(broker).host
        found[broker] = [*everywhere, *([] if _is_any(own) else [own])]
    return found


def _is_any(host: str) -> bool:
    """Tell whether a broker listens at all addresses of its machine: it is dialled by another."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
