"""With which credentials a command connects: as said, or those of an overlay that runs here.

In this order: --credentials, OCTOPIS_CREDENTIALS, and what `octopis overlay up` has noted for its
overlay. A password that is not to be found elsewhere is asked for, on a terminal alone.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from getpass import getpass
from pathlib import Path

from octopis.cli.options import base_of
from octopis.client.address import parse_addresses, user_of
from octopis.client.credentials import (
    CREDENTIALS_VARIABLE,
    PASSWORD_FILE_VARIABLE,
    PASSWORD_VARIABLE,
    Credentials,
    Given,
    Secured,
    read_credentials,
)
from octopis.overlay.registry import overlays


def credentials_at(url: str, file: Path | None, state: Path | None) -> Given:
    """Return the credentials for an address as users write it; None in the open."""
    user = user_of(url)
    given: Given = _said(file) or _noted(map(str, parse_addresses(url)), state)
    if user is None:
        return given
    if given is not None and _said(file) is None:  # another user than that of this machine's file
        given = Credentials(ca=Secured(given, None).now().ca)
    return _with_password(given, user)


def credentials_of(addresses: Iterable[str], file: Path | None, state: Path | None) -> Given:
    """Return the credentials for brokers by their addresses; None in the open."""
    given = _said(file) or _noted(addresses, state)
    if given is None:
        return None
    user = read_credentials(given).user
    return given if user is None else _with_password(given, user)


def _said(file: Path | None) -> Path | None:
    named = os.environ.get(CREDENTIALS_VARIABLE)
    return file or (Path(named) if named else None)


def _noted(addresses: Iterable[str], state: Path | None) -> Path | None:
    """Return the file that is noted for the overlay here which has one of the addresses."""
    wanted = set(addresses)
    running, _ = overlays(base_of(state))
    for each in reversed(running):
        if each.credentials and wanted & {*each.addresses.values()}:
            return Path(each.credentials)
    return None


def _with_password(given: Given, user: str) -> Given:
    """Ask for a user's password where it stands nowhere, and somebody is there to be asked."""
    found = Secured(given, user).now()
    has_one = (
        found.password_file
        or found.token_file
        or os.environ.get(PASSWORD_VARIABLE)
        or os.environ.get(PASSWORD_FILE_VARIABLE)
    )
    if has_one or not sys.stdin.isatty():
        return given
    return replace(found, password=getpass(f"Password of {user}: "))
