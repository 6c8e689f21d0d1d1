"""Whose a certificate is: the one URI in its subject alternative names that is ours.

    urn:octopis:broker:b,2       the broker B(b, 2)
    urn:octopis:client:alice     the user alice

Nothing else in a certificate names anybody: no common name, no host's name, no part of a URI. A
certificate with two names of ours, or with one that is not written exactly so, is nobody's. What
the label of a region has beyond letters, digits and `_.-~` is percent-encoded, in UTF-8: each
broker has one way to be written, and no two brokers share one.

All of it works on what `ssl` tells of a peer that it has verified (`getpeercert()`), and on nothing
that the peer says itself.
"""

import re
import ssl
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from octopis.core.model import BrokerId
from octopis.errors import InvalidConfiguration, InvalidTopology

OURS = "urn:octopis:"
BROKER = f"{OURS}broker:"
CLIENT = f"{OURS}client:"
DAY_S = 86_400

AUTHORITY_DAYS, BROKER_DAYS, CLIENT_DAYS = 3650, 365, 90
"""How long certificates hold that are made here."""

PeerCertificate = Mapping[str, Any]
"""A verified certificate, as `ssl.SSLSocket.getpeercert` gives it."""

_SHOWN = 64
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


# Names to URIs


def broker_uri(broker: BrokerId) -> str:
    """Return what a broker's certificate must be for."""
    return BROKER + written(broker)


def written(broker: BrokerId) -> str:
    """Return a broker's short form as it is in URIs and file names: no two brokers share one."""
    return quote(broker.short, safe=",")


def client_uri(name: str) -> str:
    """Return what a user's certificate must be for. Raises InvalidConfiguration for no name."""
    check_user_name(name)
    return CLIENT + name


def is_user_name(name: str) -> bool:
    """Tell whether a certificate can be a user's of that name.

    It stands in a URI there, and files are named by it: so fewer names will do than access.toml has
    room for (`access.is_name`). Whoever is called otherwise logs in by password or token.
    """
    return _USER.fullmatch(name) is not None


def check_user_name(name: str) -> None:
    """Raise InvalidConfiguration where no certificate can be a user's of that name."""
    if not is_user_name(name):
        raise InvalidConfiguration(
            f"{name!r} cannot be a user's name in a certificate: that has 1 to 64 letters (a to "
            "z), digits and . _ @ -, a letter or a digit first; users with other names log in by "
            "password or token"
        )


# URIs to names


def names_of(certificate: PeerCertificate | None) -> tuple[str, ...]:
    """Return the URIs that a verified certificate is for; none where there is no certificate."""
    names = (certificate or {}).get("subjectAltName", ())
    return tuple(value for kind, value in names if kind == "URI")


def broker_named(certificate: PeerCertificate | None) -> str | None:
    """Return the broker whose certificate it is, as in `b,2`, or None."""
    return broker_in(names_of(certificate))


def client_named(certificate: PeerCertificate | None) -> str | None:
    """Return the user whose certificate it is, or None."""
    return client_in(names_of(certificate))


def broker_in(uris: Iterable[str]) -> str | None:
    """Return the one broker that URIs name, as in `b,2`, or None."""
    name = _only(uris, BROKER)
    if name is None:
        return None
    try:
        broker = BrokerId.parse(unquote(name, errors="strict"))
    except (InvalidTopology, ValueError):  # not UTF-8, or more digits than Python takes
        return None
    return broker.short if written(broker) == name else None  # not another way to write it


def client_in(uris: Iterable[str]) -> str | None:
    """Return the one user that URIs name, or None."""
    name = _only(uris, CLIENT)
    return name if name is not None and is_user_name(name) else None


def _only(uris: Iterable[str], prefix: str) -> str | None:
    ours = [uri for uri in uris if uri.casefold().startswith(OURS)]
    if len(ours) != 1 or not ours[0].startswith(prefix):
        return None
    return ours[0].removeprefix(prefix)


# What else a verified certificate says


def not_after(certificate: PeerCertificate) -> float:
    """Return when a verified certificate ends, in seconds since 1970."""
    return float(ssl.cert_time_to_seconds(certificate["notAfter"]))


def serial(certificate: PeerCertificate) -> str:
    """Return the number that a verified certificate is revoked by: hexadecimal, whole bytes."""
    # OpenSSL breaks a number of more than 35 bytes into lines.
    return re.sub(r"[^0-9A-F]", "", certificate["serialNumber"].upper())


def serial_text(number: int) -> str:
    """Return a serial number as `serial` does."""
    digits = f"{number:X}"
    return digits.zfill(len(digits) + len(digits) % 2)


def read_serial(text: str) -> int:
    """Return a serial number, however it is written: in capitals, with colons, with zeros.

    Raises InvalidConfiguration for what is none.
    """
    try:
        return int(text.replace(":", ""), 16)
    except ValueError as failure:
        raise InvalidConfiguration(
            f"{text[:_SHOWN]!a} is no serial number in hexadecimal, as `octopis security show` and "
            "openssl show it"
        ) from failure


def days_left(ends_at: float, now: float) -> float:
    """Return how many days there are until a time; negative once it is over."""
    return (ends_at - now) / DAY_S
