"""Where brokers listen, how users write that, and how long to wait before dialling again."""

import random
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

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


def parse_addresses(text: str) -> list[Address]:
    """Return the addresses in `octopis://127.0.0.1:7400` or `octopis://one:7400,other:7401`.

    Raises InvalidConfiguration where that is something else.
    """
    if not text.startswith(_SCHEME):
        raise InvalidConfiguration(f"{text!r} is no address of a broker: write octopis://host:port")
    return [_parse(part, text) for part in text.removeprefix(_SCHEME).rstrip("/").split(",")]


def _parse(part: str, text: str) -> Address:
    try:
        place = urlsplit(f"//{part.strip()}")
        host, port = place.hostname, place.port
    except ValueError as failure:
        raise InvalidConfiguration(f"{text!r} is no address of a broker: {failure}") from failure
    if not host or place.path or place.query or place.username:
        raise InvalidConfiguration(f"{text!r} is no address of a broker: write octopis://host:port")
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
