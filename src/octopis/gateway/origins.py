"""Keeps pages of other origins out: a browser sends requests for whatever page is open in it.

That a page may not read the answer (CORS) is not enough. It may post what needs no leave, and open
WebSockets, which know no CORS; and a page whose name is made to mean this machine is of the same
origin as the gateway then. What is no browser says no origin, and is not concerned.
"""

from ipaddress import ip_address
from urllib.parse import urlsplit

from octopis.client.address import Address
from octopis.gateway.bodies import Scope
from octopis.gateway.problems import Problem
from octopis.gateway.settings import GatewayOptions

_ELSEWHERE = (b"cross-site", b"same-site")
"""What a browser says of a request for a page that is not the gateway's own."""


class Origins:
    """Which pages may use a gateway: its own, and those that it was told of."""

    def __init__(self, options: GatewayOptions, *, is_secure: bool) -> None:
        self._allowed = frozenset(options.allow_origins)
        self._hosts = {urlsplit(each).hostname for each in options.allow_origins}
        # Elsewhere, or where tokens are asked for, a name that means this machine opens no door.
        self._checks_host = Address(options.host, 0).is_loopback and not is_secure

    def check(self, scope: Scope) -> None:
        """Raise Problem where another page, or a page by another name, asks."""
        host = origin = site = mode = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
            elif name == b"sec-fetch-mode":
                mode = value
        if origin:
            self._check_origin(origin.decode("latin-1"), host.decode("latin-1"))
        elif site in _ELSEWHERE and mode != b"navigate":  # a picture, a script or a form of its
            raise _kept_out("another page")
        if self._checks_host and host:
            self._check_host(host.decode("latin-1"))

    def _check_origin(self, origin: str, host: str) -> None:
        if origin in self._allowed or "*" in self._allowed:
            return
        if origin.partition("://")[2].lower() != host.lower():
            raise _kept_out(f"a page of {origin}")

    def _check_host(self, host: str) -> None:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            ip_address(name)
        except ValueError:
            name = host.rpartition(":")[0] or host
        else:
            return
        # Names without a dot are of this machine or its network: nobody can register them.
        if "." in name.removesuffix(".localhost") and name not in self._hosts:
            raise Problem(
                403,
                f"this gateway is for this machine, which is not called {name!r}: where that is "
                f"meant, start it with --allow-origin http://{host}",
            )


def _kept_out(who: str) -> Problem:
    return Problem(
        403,
        f"{who} has asked for this, and other pages than the gateway's own are kept out: start it "
        "with --allow-origin ORIGIN to let one in",
    )
