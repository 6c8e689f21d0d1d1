"""Which certificates a security folder has, until when they hold, and what is wrong with them.

Imports cryptography.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from cryptography import x509

from octopis.errors import InvalidConfiguration
from octopis.security.certificates import (
    hosts_in,
    is_issued_by,
    read_all,
    serial_of,
    uris_in,
)
from octopis.security.folder import SecurityFolder
from octopis.security.names import broker_in, client_in, days_left

AUTHORITY, BROKER, CLIENT = "authority", "broker", "client"


class Held(NamedTuple):
    """A certificate in the folder."""

    kind: str
    """AUTHORITY, BROKER or CLIENT."""

    name: str
    """Whom it is for, by its file."""

    path: Path
    serial: str = ""
    ends_at: datetime | None = None
    hosts: tuple[str, ...] = ()
    is_revoked: bool = False
    problem: str = ""
    """Why nobody will take it, if that can be told from here; empty where it is in order."""

    def days_left(self, now: datetime) -> float | None:
        """Return how many days it still holds, negative where it does not any more."""
        if self.ends_at is None:
            return None
        return days_left(self.ends_at.timestamp(), now.timestamp())


def held_in(folder: SecurityFolder, revoked: Iterable[int] = ()) -> list[Held]:
    """Return all certificates of a folder: authorities, brokers, clients."""
    numbers = frozenset(revoked)
    authorities = dict.fromkeys((folder.ca, folder.clients_ca))
    return [
        *(_authority(path) for path in authorities),
        *(_issued(BROKER, path, folder.ca, numbers) for path in _pems(folder.brokers)),
        *(_issued(CLIENT, path, folder.clients_ca, numbers) for path in _pems(folder.clients)),
    ]


def _pems(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.glob("*.pem"))


def _authority(path: Path) -> Held:
    try:
        found = read_all(path)[0]
    except InvalidConfiguration as failure:
        return Held(AUTHORITY, path.name, path, problem=str(failure))
    return _described(Held(AUTHORITY, path.name, path), found)


def _issued(kind: str, path: Path, authority: Path, revoked: frozenset[int]) -> Held:
    held = Held(kind, unquote(path.stem) if kind == BROKER else path.stem, path)
    try:
        found, *above = read_all(path)
    except InvalidConfiguration as failure:
        return held._replace(problem=str(failure))
    held = _described(held, found)._replace(is_revoked=found.serial_number in revoked)
    named = broker_in(uris_in(found)) if kind == BROKER else client_in(uris_in(found))
    if named != held.name:
        who = " ".join(uris_in(found)) or "nobody"
        return held._replace(problem=f"{path} is for {who}, and its name says {held.name}")
    if not path.with_suffix(".key").exists():
        return held._replace(problem=f"{path} lacks its key, {path.stem}.key beside it")
    try:
        signers = [*above, *read_all(authority)]
    except InvalidConfiguration:
        signers = above  # said of the authority itself
    if signers and not any(is_issued_by(found, each) for each in signers):
        return held._replace(problem=f"{path} is signed by another authority than {authority}")
    return held


def _described(held: Held, found: x509.Certificate) -> Held:
    return held._replace(
        serial=serial_of(found), ends_at=found.not_valid_after_utc, hosts=hosts_in(found)
    )
