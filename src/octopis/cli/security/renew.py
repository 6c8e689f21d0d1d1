"""`octopis security renew`: certificates again, before they end."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from octopis.cli import output
from octopis.cli.security.options import FolderArgument, folder_at
from octopis.core.model import BrokerId
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.security.folder import SecurityFolder
from octopis.security.users import read_access_text

if TYPE_CHECKING:
    from octopis.security.certificates import Issued
    from octopis.security.inventory import Held

DAYS_LEFT = 30


def renew(  # noqa: PLR0913, PLR0917 - each is an option of the command
    folder: FolderArgument,
    broker: Annotated[
        list[str] | None,
        typer.Option(metavar="REGION,CLUSTER", help="This broker's alone; may be repeated."),
    ] = None,
    client: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="This user's alone; may be repeated."),
    ] = None,
    days_left: Annotated[
        float, typer.Option(metavar="N", help="Renew what ends within so many days.")
    ] = DAYS_LEFT,
    every: Annotated[bool, typer.Option("--all", help="Renew whenever they end.")] = False,
    days: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="How long they hold: 365 for brokers, 90 for clients."
        ),
    ] = None,
) -> None:
    """Issue certificates of brokers and clients again, with new keys, before they end.

    Running brokers take them for new connections by themselves, and clients
    when they connect. Those that are named are renewed whenever they end;
    what is revoked is not renewed.
    """
    from octopis.security import certificates  # noqa: PLC0415
    from octopis.security.inventory import AUTHORITY, held_in  # noqa: PLC0415

    place = folder_at(folder)
    now = certificates.now_utc()
    revoked = read_access_text(place.access).revoked_certificates
    authority = certificates.read_authority(place.ca, place.ca_key)
    held = [each for each in held_in(place, revoked) if each.kind != AUTHORITY]
    named = {("broker", BrokerId.parse(each).short) for each in broker or ()}
    named |= {("client", each) for each in client or ()}
    _check_there(named, [(each.kind, each.name) for each in held])
    due = [
        each
        for each in held
        if ((each.kind, each.name) in named if named else every or _is_due(each, now, days_left))
    ]
    renewed, left = [], []
    for each in due:
        reason = _why_not(each, place)
        if reason:
            left.append(f"{each.kind} {each.name}: {reason}")
            continue
        end = _issued_again(each, authority, days, now)
        renewed.append((each.kind, each.name, f"{end:%Y-%m-%d}", (end - now).days))
    if renewed:
        output.print_table("Renewed", ("", "name", "ends", "days left"), renewed)
    else:
        output.say("Nothing is renewed.")
    if left:
        raise OperationFailed("not renewed: " + "; ".join(left))


def _issued_again(held: "Held", authority: "Issued", days: int | None, now: datetime) -> datetime:
    """Issue a certificate again, where the old one is, and return until when it holds."""
    from octopis.security import certificates  # noqa: PLC0415
    from octopis.security.inventory import BROKER  # noqa: PLC0415
    from octopis.security.names import BROKER_DAYS, CLIENT_DAYS  # noqa: PLC0415

    usual = BROKER_DAYS if held.kind == BROKER else CLIENT_DAYS
    old = certificates.read_certificate(held.path)
    issued = certificates.renew(authority, old, days or usual, now)
    try:
        issued.write(held.path, held.path.with_suffix(".key"))
    except OSError as failure:
        raise OperationFailed(f"cannot write {held.path}: {failure.strerror}") from failure
    return issued.certificate.not_valid_after_utc


def _is_due(held: "Held", now: datetime, days_left: float) -> bool:
    """Tell whether a certificate ends soon, or nobody knows when; revoked ones may end."""
    rest = held.days_left(now)
    return not held.is_revoked and (rest is None or rest <= days_left)


def _why_not(held: "Held", place: SecurityFolder) -> str:
    """Return why a certificate is not issued again, or an empty text."""
    if held.is_revoked:
        return "its certificate is revoked"
    if held.kind == "client" and place.clients_ca != place.ca:
        return f"certificates of clients come from {place.clients_ca}"
    return held.problem


def _check_there(named: set[tuple[str, str]], held: Sequence[tuple[str, str]]) -> None:
    for kind, name in sorted(named.difference(held)):
        there = ", ".join(other for each, other in held if each == kind) or "none"
        raise InvalidConfiguration(
            f"no certificate of the {kind} {name} is here; there are {there}"
        )
