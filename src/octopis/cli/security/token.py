"""`octopis security token`: a signed token for a user."""

import secrets
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from octopis.cli import output
from octopis.cli.security.options import FolderArgument, folder_at
from octopis.errors import InvalidConfiguration, LoginFailed, OperationFailed
from octopis.files import write_private
from octopis.security.access import read_access


def token(  # noqa: PLR0913, PLR0917 - each is an option of the command
    folder: FolderArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The user that it is for.")],
    role: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE", help="A role that it gives, instead of the user's; may be repeated."
        ),
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0.001, metavar="N", help="How long the token holds.")
    ] = 24.0,
    audience: Annotated[
        str, typer.Option(metavar="NAME", help="The audience in the brokers' settings.")
    ] = "octopis",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it there, for its owner alone to read."),
    ] = None,
    force: output.ForceFlag = False,
) -> None:
    """Sign a token, and print it alone, so that it can go into a file.

    Whoever has it is let in until it ends, or its id, which stderr says, is revoked. `octopis
    security check` says what its roles come to.
    """
    from octopis.security.tokens import TokenKeys, issue_token, read_private_key  # noqa: PLC0415

    place = folder_at(folder)
    access = read_access(place.access)
    if role is None and access.user(name) is None:
        raise InvalidConfiguration(
            f"{place.access} has no user {name!r}, or has revoked it: write it there, or say --role"
        )
    try:
        access.permissions(role or ())
    except LoginFailed as failure:
        raise InvalidConfiguration(f"{place.access}: {failure}") from failure
    key = read_private_key(place.token_key)
    kid = TokenKeys.read(place.tokens).name_of(key)
    if kid is None:
        raise InvalidConfiguration(
            f"no broker would take it: none of the public keys in {place.tokens} belongs to "
            f"{place.token_key}"
        )
    jti = secrets.token_hex(8)
    about: dict[str, Any] = {"audience": audience, "lifetime_s": hours * 3600}
    made = issue_token(key, name, role, now=time.time(), kid=kid, jti=jti, **about)
    if out is None:
        sys.stdout.write(f"{made}\n")
    else:
        _write(out, made, force=force)
    sys.stderr.write(f"to end it early, write {jti} under revoked.tokens in {place.access}\n")


def _write(out: Path, made: str, *, force: bool) -> None:
    output.check_new([out], force=force)
    try:
        write_private(out, f"{made}\n".encode())
    except OSError as failure:
        raise OperationFailed(f"cannot write {out}: {failure.strerror}") from failure
