"""`octopis security client`: a certificate for a user."""

from typing import Annotated

import typer

from octopis.cli import output
from octopis.cli.security.options import DaysOption, FolderArgument, folder_at
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.files import write_private
from octopis.security.names import CLIENT_DAYS, check_user_name, client_uri
from octopis.security.users import AccessText, read_access_text


def client(
    folder: FolderArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the user is called.")],
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="A role in access.toml; may be repeated."),
    ] = None,
    days: DaysOption = CLIENT_DAYS,
) -> None:
    """Make a certificate and credentials for a user, and write a new user into access.toml.

    A user who is there already needs no --role, and is given a certificate alone.
    """
    from octopis.security import certificates, making  # noqa: PLC0415

    check_user_name(name)
    place = folder_at(folder)
    if place.clients_ca != place.ca:
        raise InvalidConfiguration(
            f"certificates of clients come from {place.clients_ca}: issue one there, for the URI "
            f"{client_uri(name)}"
        )
    access = read_access_text(place.access)
    longer = _access_with(access, name, role or [])
    paths = place.client_certificate(name), place.client_key(name), place.credentials(name)
    for path in paths:
        if path.exists():
            raise InvalidConfiguration(
                f"{path} is there already: `octopis security renew --client {name}` issues it "
                "again; remove it to begin anew"
            )
    authority = certificates.read_authority(place.ca, place.ca_key)
    try:
        making.add_client(place, authority, name, days, certificates.now_utc())
        if longer is not None:
            write_private(place.access, longer.encode())
    except OSError as failure:
        raise OperationFailed(f"cannot write {folder}: {failure.strerror}") from failure
    issued = certificates.read_certificate(paths[0])
    output.print_facts(
        f"Credentials of {name}",
        [
            ("file", paths[2]),
            ("goes with it", f"{paths[0].name}, {paths[1].name} beside it, ../ca.pem"),
            ("roles", ", ".join(role or access.users[name].get("roles", []))),
            ("ends", f"{issued.not_valid_after_utc:%Y-%m-%d}"),
            ("serial number", certificates.serial_of(issued)),
        ],
    )


def _access_with(access: AccessText, name: str, roles: list[str]) -> str | None:
    """Return access.toml with the user; None where they are in it and nothing is to change."""
    if access.is_revoked(name):
        raise InvalidConfiguration(f"{name} is revoked: take that out of access.toml first")
    return None if name in access.users and not roles else access.with_user(name, roles)
