"""`octopis security password`: the line for access.toml that lets a user in by password."""

import getpass
import sys
from typing import Annotated

import typer

from octopis.core.toml import encode_key, encode_table, encode_text
from octopis.core.wire.login import ITERATIONS_MAX, ITERATIONS_MIN
from octopis.errors import InvalidConfiguration
from octopis.security.access import check_name
from octopis.security.passwords import ITERATIONS, make_password

SHORT = 12
_READ_MAX = 4_096


def password(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the user is called.")],
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="A role in access.toml; may be repeated."),
    ] = None,
    iterations: Annotated[
        int,
        typer.Option(
            min=ITERATIONS_MIN,
            max=ITERATIONS_MAX,
            metavar="N",
            help="What one try costs: clients at each login, and whoever has stolen access.toml.",
        ),
    ] = ITERATIONS,
) -> None:
    """Ask for a password, and print what to put into access.toml; the password is kept nowhere.

    It is asked for twice on a terminal, or read as one line of standard input. Never give it as an
    argument: everybody on the machine sees those.
    """
    check_name(name, "a user")
    for each in role or ():
        check_name(each, "a role")
    secret = _asked(name) if sys.stdin.isatty() else _read_line()
    if len(secret) < SHORT:
        sys.stderr.write(
            f"octopis: mind: the password has fewer than {SHORT} characters; who has access.toml "
            "can try all short ones\n"
        )
    line = make_password(secret, iterations)
    if role:
        sys.stdout.write(
            encode_table(f"users.{encode_key(name)}", {"roles": role, "password": line})
        )
    else:
        sys.stdout.write(f"password = {encode_text(line)}\n")


def _asked(name: str) -> str:
    first = getpass.getpass(f"Password of {name}: ")
    if getpass.getpass("Again: ") != first:
        raise InvalidConfiguration("the two passwords differ: try again")
    return first


def _read_line() -> str:
    try:
        line = sys.stdin.readline(_READ_MAX)
    except UnicodeDecodeError as failure:
        raise InvalidConfiguration("the password on standard input is not UTF-8") from failure
    found = line.removesuffix("\n").removesuffix("\r")
    if not found:
        raise InvalidConfiguration("there is no password on standard input: write it as one line")
    return found
