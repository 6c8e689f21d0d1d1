"""Who a client is, and whom it trusts: from a file, or as said in the program.

    ca = "ca.pem"                    # whom brokers' certificates must come from; the system's
    certificate = "alice.pem"        # a certificate and its key ...
    key = "alice.key"
    token_file = "token"             # ... or a signed token ...
    user = "alice"                   # ... or a user with a password
    password_file = "password"

Paths are relative to the file. Credentials of any kind mean TLS, always: nothing is said to whoever
does not prove to be the host that was dialled. Files are read again for each connection, so that
what they hold can be renewed while a client runs. No secret is ever shown.
"""

import os
import ssl
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from octopis.client.login import Login, no_login, password_login, token_login
from octopis.core.model.suggestion import did_you_mean
from octopis.core.wire.greeting import ALPN
from octopis.errors import InvalidConfiguration

CREDENTIALS_VARIABLE = "OCTOPIS_CREDENTIALS"
PASSWORD_VARIABLE = "OCTOPIS_PASSWORD"  # noqa: S105 - the name of a variable
PASSWORD_FILE_VARIABLE = "OCTOPIS_PASSWORD_FILE"  # noqa: S105 - the name of a variable

_SECRETS = ("password", "token")
_PATHS = ("ca", "certificate", "key", "password_file", "token_file")


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """How a client proves who it is, and whom it trusts. At most one way to log in.

    Without `ca`, brokers' certificates must come from an authority that the system trusts.
    """

    ca: str | Path | None = None
    certificate: str | Path | None = None
    key: str | Path | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: str | Path | None = None
    token: str | None = field(default=None, repr=False)
    token_file: str | Path | None = None

    def __post_init__(self) -> None:
        if self.key is not None and self.certificate is None:
            raise InvalidConfiguration("credentials with a key need its certificate")
        for name in _SECRETS:
            if getattr(self, name) is not None and getattr(self, f"{name}_file") is not None:
                raise InvalidConfiguration(f"credentials have {name} or {name}_file, not both")
        by_token = self.token is not None or self.token_file is not None
        by_password = self.password is not None or self.password_file is not None
        if by_token and (by_password or self.user is not None):
            raise InvalidConfiguration("credentials are a token or a user's password, not both")
        if by_password and self.user is None:
            raise InvalidConfiguration("a password needs its user: say user = ...")

    # What a connection is made with

    def context(self) -> ssl.SSLContext:
        """Return how to speak TLS: 1.3, with brokers' certificates and hosts checked.

        Raises InvalidConfiguration where a file cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols([ALPN])
        try:
            if self.ca is None:
                context.load_default_certs()
            else:
                context.load_verify_locations(self.ca)
        except OSError as failure:
            reason = f"no certificate of an authority in {self.ca}: {_reason(failure)}"
            raise InvalidConfiguration(reason) from failure
        if self.certificate is not None:
            self._prove(context, self.certificate)
        return context

    def _prove(self, context: ssl.SSLContext, certificate: str | Path) -> None:
        def no_password() -> str:
            raise InvalidConfiguration(f"{self.key or certificate} is locked by a password")

        try:
            context.load_cert_chain(certificate, self.key, no_password)
        except OSError as failure:
            with_key = f" with the key {self.key}" if self.key is not None else ""
            reason = f"no certificate in {certificate}{with_key}: {_reason(failure)}"
            raise InvalidConfiguration(reason) from failure

    def login(self) -> Login:
        """Return a login for one connection. Raises InvalidConfiguration, or MissingExtra."""
        if self.token_file is not None:
            return token_login(_secret_in(self.token_file))
        if self.token is not None:
            return token_login(self.token)
        if self.user is None:
            return no_login()
        if self.password_file is not None:
            return password_login(self.user, _secret_in(self.password_file))
        return password_login(self.user, self.password or _password_of(self.user))


Given = Credentials | str | Path | None
"""Credentials as users say them: a path is that of a file, read again for each connection."""


class Secured:
    """What a client's connections are made with, read anew for each of them; None: in the open."""

    def __init__(self, given: Given, user: str | None) -> None:
        self._given = given
        self._user = user

    def now(self) -> Credentials:
        """Return the credentials as they are now. Raises InvalidConfiguration."""
        given = self._given
        if given is None:
            found = Credentials()
        elif isinstance(given, Credentials):
            found = given
        else:
            found = read_credentials(Path(given))
        if self._user is None:
            return found
        if found.user not in {None, self._user}:
            raise InvalidConfiguration(
                f"the address is for {self._user!r}, and the credentials are those of "
                f"{found.user!r}: say one of them"
            )
        return replace(found, user=self._user)


def secured(given: Given, user: str | None = None) -> Secured | None:
    """Return what connections are made with: as given, or as OCTOPIS_CREDENTIALS says.

    None where there is neither, and no `user` of an address. Raises InvalidConfiguration where they
    make no sense.
    """
    if given is None:
        given = os.environ.get(CREDENTIALS_VARIABLE) or None
    if given is None and user is None:
        return None
    found = Secured(given, user)
    found.now()  # what is wrong is said at once
    return found


def read_credentials(path: Path) -> Credentials:
    """Return the credentials in a file, or raise InvalidConfiguration."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as failure:
        reason = f"cannot read the credentials {path}: {_reason(failure)}"
        raise InvalidConfiguration(reason) from failure
    except tomllib.TOMLDecodeError as failure:
        raise InvalidConfiguration(f"{path} is not TOML: {failure}") from failure
    return _credentials(said, path)


def _credentials(said: Mapping[str, Any], path: Path) -> Credentials:
    names = [each.name for each in fields(Credentials) if each.name not in _SECRETS]
    for name, value in said.items():
        if name in _SECRETS:
            raise InvalidConfiguration(
                f"{path}: a {name} never stands in this file: put it into one of its own, and say "
                f"{name}_file"
            )
        if name not in names:
            hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
            raise InvalidConfiguration(f"{path}: there is no {name!r} in credentials{hint}")
        if not isinstance(value, str) or not value:
            raise InvalidConfiguration(f"{path}: {name} is a text")
    found = {name: path.parent / said[name] if name in _PATHS else said[name] for name in said}
    try:
        return Credentials(**found)
    except InvalidConfiguration as failure:
        raise InvalidConfiguration(f"{path}: {failure}") from failure


def _password_of(user: str) -> str:
    """Return the password of a user from the environment, or raise InvalidConfiguration."""
    if found := os.environ.get(PASSWORD_VARIABLE):
        return found
    if path := os.environ.get(PASSWORD_FILE_VARIABLE):
        return _secret_in(path)
    raise InvalidConfiguration(
        f"there is no password for {user}: say password_file in the credentials, or set "
        f"{PASSWORD_FILE_VARIABLE} or {PASSWORD_VARIABLE}"
    )


def _secret_in(path: str | Path) -> str:
    """Return what a file holds, without the end of its line."""
    try:
        found = Path(path).read_text(encoding="utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError) as failure:
        raise InvalidConfiguration(f"cannot read {path}: {_reason(failure)}") from failure
    if not found:
        raise InvalidConfiguration(f"{path} is empty")
    return found


def _reason(failure: Exception) -> str:
    if isinstance(failure, ssl.SSLError):
        said = (failure.reason or "it is not one").lower().replace("_", " ")
        return said if said != "pem lib" else "there is none in PEM, or it does not fit"
    if isinstance(failure, UnicodeDecodeError):
        return "it is not text in UTF-8"
    return (failure.strerror if isinstance(failure, OSError) else None) or str(failure)
