"""Where brokers listen, how users write that, and how long to wait before dialling again."""

import random
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from octopis.errors import InvalidConfiguration


class Address(NamedTuple):
    """Where a broker listens. Port 0 takes any that is free."""

    host: str = "127.0.0.1"
    port: int = 0

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


DEFAULT_PORT = 7400
_SCHEME = "octopis://"
_FORM = "write octopis://host:port"


def parse_addresses(text: str) -> list[Address]:
    """Return the addresses in `octopis://127.0.0.1:7400` or `octopis://one:7400,other:7401`.

    A user, as in `octopis://alice@host`, is `user_of`'s. Raises InvalidConfiguration where it is
    something else, or where a password stands in it.
    """
    user_of(text)
    if not text.startswith(_SCHEME):
        raise InvalidConfiguration(f"{_shown(text)} is no address of a broker: {_FORM}")
    return [_parse(part.rpartition("@")[2], text) for part in _parts(text)]


def user_of(text: str) -> str | None:
    """Return the user of an address; of several, one or none is said, or always the same.

    Raises InvalidConfiguration where a password stands in it, which is not repeated.
    """
    users = {part.rpartition("@")[0] for part in _parts(text) if "@" in part}
    if any(":" in user for user in users):
        raise InvalidConfiguration(
            "a password never stands in the address, where others can read it: write "
            "octopis://user@host, and say password_file in credentials, or set "
            "OCTOPIS_PASSWORD_FILE"
        )
    names = {unquote(user) for user in users}
    if len(names) > 1:
        raise InvalidConfiguration("an address is for one user: say the same before each host")
    if names and not all(names):
        raise InvalidConfiguration(f"{_shown(text)} names no user before its @")
    return next(iter(names), None)


def _shown(text: str) -> str:
    """Return an address for an error: without what stands before an @, which may be a secret."""
    before, sign, place = text.rpartition("@")
    return repr(f"...@{place}" if sign else before + place)


def _parts(text: str) -> list[str]:
    return text.removeprefix(_SCHEME).rstrip("/").split(",")


def _parse(part: str, text: str) -> Address:
    try:
        place = urlsplit(f"//{part.strip()}")
        host, port = place.hostname, place.port
    except ValueError as failure:
        if "@" in text:  # what is wrong may be a password
            raise InvalidConfiguration(
                f"{_shown(text)} is no address of a broker: {_FORM}"
            ) from None
        reason = f"{text!r} is no address of a broker: {failure}"
        raise InvalidConfiguration(reason) from failure
    if not host or place.path or place.query or place.username:
        raise InvalidConfiguration(f"{_shown(text)} is no address of a broker: {_FORM}")
    return Address(host, DEFAULT_PORT if port is None else port)


class Backoff:
    """Waits that grow from `first_s` to `most_s`; chance spreads those who failed together."""

    def __init__(self, first_s: float = 0.05, most_s: float = 1.0) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._next_s = first_s

    def next(self) -> float:
        """Return the seconds to wait now."""
        wait, self._next_s = self._next_s, min(2 * self._next_s, self._most_s)
        return wait * random.uniform(0.5, 1.0)  # noqa: S311 - no secret

    def reset(self) -> None:
        """Start anew: it has worked."""
        self._next_s = self._first_s
