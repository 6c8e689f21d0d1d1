"""Where a client connects to: `octopis://host:port`, or several of them to choose from."""

from urllib.parse import urlsplit

from octopis.errors import InvalidConfiguration
from octopis.live.address import Address

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
