"""How a gateway reaches an overlay with security, and who somebody is who asks it.

The gateway has no power of its own there: what a request may do is what the role of its token
allows, and the overlay's brokers say so. Its own credentials are for looking how brokers are; what
it sees is shown to those alone who may see it themselves.
"""

import base64
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from octopis.client.credentials import Credentials, Given, Secured
from octopis.core.wire.login import TOKEN_MAX
from octopis.gateway.bodies import Scope, header
from octopis.gateway.problems import Problem
from octopis.overlay.settings import NamedOverlay
from octopis.security.folder import SecurityFolder

EXPIRED = "the token has expired: come again with a new one"
_NO_TOKEN = "this overlay has security: say who you are, as Authorization: Bearer TOKEN"  # noqa: S105
_NOT_ONE = "what was said as the token is no JSON Web Token"
_PARTS = 3


class Security(Struct, frozen=True):
    """What a gateway is given for an overlay with security."""

    ca: str | Path | None = None
    """Whom brokers' certificates must come from; None: the system's authorities."""

    own: Given = None
    """With what it looks how brokers are; None: it does not look."""

    def of(self, token: str) -> Credentials:
        """Return with what somebody's client logs in."""
        return Credentials(ca=self.ca, token=token)


class _Claims(Struct):
    exp: float


def security_of(overlay: NamedOverlay | None, own: Given, ca: Path | None) -> Security | None:
    """Return what is known for an overlay; None for one without security.

    The authority is the one that is given, that of the credentials, or that of the overlay's own
    folder where it is on this machine. Raises InvalidConfiguration.
    """
    is_secure = overlay is not None and overlay.configuration.is_secure
    if own is None and ca is None and not is_secure:
        return None
    found: str | Path | None = ca
    if found is None and own is not None:
        found = Secured(own, None).now().ca
    if found is None and overlay is not None and is_secure:
        of_folder = SecurityFolder(Path(overlay.configuration.security.folder)).ca
        found = of_folder if of_folder.exists() else None
    return Security(found, own)


def token_of(scope: Scope) -> str:
    """Return the token that a request's head has, "" without one; or raise Problem."""
    text = header(scope, b"authorization")
    if not text:
        return ""
    scheme, _, token = text.partition(" ")
    if scheme.lower() != "bearer":
        raise Problem(401, "say who you are as Authorization: Bearer TOKEN")
    return token.strip()


def expiry_of(token: str) -> float:
    """Return when a token says that it ends, or raise Problem where it can be none.

    Nobody believes that yet: brokers say whether it is right.
    """
    if not token:
        raise Problem(401, _NO_TOKEN)
    parts = token.split(".")
    if len(token) > TOKEN_MAX or not token.isascii() or len(parts) != _PARTS:
        raise Problem(401, _NOT_ONE)
    try:
        text = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        found = msgspec.json.decode(text, type=_Claims).exp
    except (ValueError, RecursionError):  # base64 and msgspec raise ValueErrors
        raise Problem(401, _NOT_ONE) from None
    if found <= time.time():
        raise Problem(401, EXPIRED)
    return found
