"""How somebody proves who they are: by certificate, by token, or by password. Without sockets.

    certificate   TLS has checked the chain, and the name in it is a user's
    token         signed by a key that is trusted here
    password      SCRAM-SHA-256 (RFC 5802 and 7677): the broker asks once, and the proof shows that
                  the client knows the password, which neither wire nor broker ever hold

Whatever is wrong with a password, the sentence is the same, and so is the work: an unknown user is
asked just as a known one would be, with a salt that is made up.

Channel binding is not asked for. `tls-server-end-point`, the hash of the broker's certificate,
could be had: the library knows it, and both ends have the certificate. It would help where a client
trusts an authority that has certified somebody else for the broker's host. Clients are to trust the
overlay's own authority alone; and whoever is in the middle learns no password from SCRAM as it is.
"""

import hashlib
import hmac
import secrets
import unicodedata
from collections.abc import Callable
from pathlib import Path

from scramp import ScramException, ScramMechanism
from scramp.core import ScramServer, ServerError

from octopis.core.wire.login import MECHANISM, MESSAGE_MAX, Login, Token
from octopis.errors import InvalidConfiguration, LoginFailed
from octopis.security.access import Access, User
from octopis.security.folder import SecurityFolder
from octopis.security.identity import Identity
from octopis.security.names import PeerCertificate, client_named, names_of, not_after, serial
from octopis.security.passwords import ITERATIONS, SALT_BYTES, StoredPassword
from octopis.security.tokens import TokenKeys, not_valid

SECRET_MIN = 32
"""Bytes of the file that made-up salts come from."""

_WRONG = "user or password is wrong"


class Logins:
    """Lets people in, by what `access` returns at that moment. One for each broker.

    Raises InvalidConfiguration where the keys in the folder cannot be used. All times are in
    seconds since 1970.
    """

    def __init__(
        self, access: Callable[[], Access], folder: SecurityFolder, audience: str = "octopis"
    ) -> None:
        self.access = access
        self._folder = folder
        self._audience = audience
        self._secret = salt_secret(folder.login_key)
        self._keys = TokenKeys.read(folder.tokens)

    def refresh(self) -> None:
        """Take the keys of tokens that are in the folder now.

        Raises InvalidConfiguration where they cannot be used; those that were stay in force.
        """
        self._keys = TokenKeys.read(self._folder.tokens)

    def current(self, identity: Identity) -> Identity | None:
        """Return the same identity as it is now; None where it would not be let in any more.

        As `Access.current`; nor would it be where the key of its token may not sign any more.
        """
        if identity.how == "token" and not self._keys.has(identity.signed_by):
            return None
        return self.access().current(identity)

    def begin(
        self, login: Login | None, certificate: PeerCertificate | None, now: float
    ) -> "Identity | Challenge":
        """Let in who has said `login` behind a verified certificate or none, or raise LoginFailed.

        Or return what to ask of them first. What is said counts before the certificate.
        """
        if login is None:
            return self._by_certificate(certificate, now)
        if isinstance(login, Token):
            return self._by_token(login.token, now)
        if login.mechanism != MECHANISM:
            raise LoginFailed(f"passwords are proved by {MECHANISM} here, and by nothing else")
        return Challenge(self, login.message)

    def _by_certificate(self, certificate: PeerCertificate | None, now: float) -> Identity:
        if not certificate:
            raise LoginFailed(
                "a login is needed here: connect with credentials, which are a certificate, a "
                "token, or a user with a password"
            )
        name, ends_at, number = (
            client_named(certificate),
            not_after(certificate),
            serial(certificate),
        )
        if name is None:
            found = " ".join(names_of(certificate))[:200] or "none"
            raise LoginFailed(f"the certificate is no user's: its URIs are {found!a}")
        if now >= ends_at:
            raise LoginFailed("the certificate has expired")
        access = self.access()
        user = access.user(name)
        if user is None:
            raise LoginFailed(f"the certificate is that of {name}, who may not come in here")
        permissions = access.permissions(user.roles)
        identity = Identity(name, permissions, user.roles, "certificate", ends_at, number)
        if access.is_revoked(identity):
            raise LoginFailed("the certificate is revoked")
        return identity

    def _by_token(self, token: str, now: float) -> Identity:
        claims = self._keys.check(token, self._audience, now)
        access = self.access()
        roles = claims.roles
        if roles is None:
            user = access.user(claims.subject)
            if user is None:
                raise not_valid("it says no roles, and its user is not known")
            roles = user.roles
        try:
            permissions = access.permissions(roles)
        except LoginFailed as failure:
            raise not_valid(str(failure)) from failure
        identity = Identity(
            claims.subject,
            permissions,
            roles,
            "token",
            claims.expires_at,
            claims.number,
            has_own_roles=claims.roles is not None,
            signed_by=claims.signed_by,
        )
        if access.is_revoked(identity):
            raise not_valid("it is revoked")
        return identity

    def user(self, name: str) -> tuple[User | None, StoredPassword]:
        """Return a user who can log in by password, or None, and what to ask: made up for None."""
        access = self.access()
        user = access.user(name)
        # Made up for everybody, and used for the unknown: both take the same time.
        made_up = self._made_up(name, access)
        if user is None or user.password is None:
            return None, made_up
        return user, user.password

    def _made_up(self, name: str, access: Access) -> StoredPassword:
        """Return what an unknown user would have, always the same for one name.

        It looks as that of a known user does: salts as long, and as many iterations.
        """
        seed = hmac.digest(self._secret, name.encode(), "sha256")
        known = access.passwords
        like = known[int.from_bytes(seed[:8], "big") % len(known)] if known else None
        salt = hashlib.shake_256(seed).digest(len(like.salt) if like else SALT_BYTES)
        return StoredPassword(
            salt,
            # No proof fits, and nobody can know it: it changes each time.
            stored_key=secrets.token_bytes(32),
            server_key=secrets.token_bytes(32),
            iterations=like.iterations if like else ITERATIONS,
        )


class Challenge:
    """What is asked of a client with a password; it can be answered once."""

    def __init__(self, logins: Logins, message: bytes) -> None:
        self._logins = logins
        self._user: User | None = None
        self._server: ScramServer | None = ScramMechanism(MECHANISM).make_server(self._ask)
        try:
            self._server.set_client_first(_text(message))
            self.message: bytes = self._server.get_server_first().encode()
            """SCRAM's first message of a server, for the client."""
        except (ScramException, ValueError) as failure:
            if getattr(failure, "server_error", None) is ServerError.NO_RESOURCES:
                raise  # a fault of ours in `_ask`, which is no wrong password
            raise LoginFailed(_WRONG) from None

    def _ask(self, name: str) -> tuple[bytes, bytes, bytes, int]:
        self._user, asked = self._logins.user(name)
        return asked.salt, asked.stored_key, asked.server_key, asked.iterations

    def finish(self, proof: bytes) -> tuple[Identity, bytes]:
        """Return who it is, and SCRAM's last message for the client, or raise LoginFailed."""
        server, self._server = self._server, None
        if server is None:
            raise LoginFailed(_WRONG)
        try:
            server.set_client_final(_text(proof))
            verifier = server.get_server_final().encode()
        except (ScramException, ValueError):
            raise LoginFailed(_WRONG) from None
        return self._identity(), verifier

    def _identity(self) -> Identity:
        """Return who has proved it, by what access.toml says now: it may have changed meanwhile."""
        asked = self._user
        access = self._logins.access()
        user = None if asked is None else access.user(asked.name)
        if asked is None or user is None or user.password is None:
            raise LoginFailed(_WRONG)
        if user.password != asked.password:
            raise LoginFailed(_WRONG)
        return Identity(
            user.name,
            access.permissions(user.roles),
            user.roles,
            "password",
            credential=user.password.mark,
        )


def salt_secret(path: Path) -> bytes:
    """Return what salts of unknown users are made from: a file's content, or else something new.

    A salt that changes where a known user's would not tells that there is no such user. So every
    broker should have the same secret, and keep it over restarts: that is the file. It must not be
    made from what brokers share anyway. Certificates are public. From the passwords in access.toml,
    anybody could try passwords at leisure, without ever logging in: guess one, make the salt of a
    name that is not there, and compare it with the broker's. And a broker's own key differs from
    that of the next broker. Without the file, the secret is the process's own: who asks two
    brokers, or one again after a restart, can tell which users there are. No more than that.
    """
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return secrets.token_bytes(SECRET_MIN)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure.strerror}") from failure
    if len(found) < SECRET_MIN:
        raise InvalidConfiguration(
            f"{path} must hold {SECRET_MIN} random bytes or more: make it anew with "
            f"`head -c {SECRET_MIN} /dev/urandom`, the same for all brokers"
        )
    return found


def _text(message: bytes) -> str:
    """Return a message as text, or raise ValueError where none could be right.

    Before anything is taken apart: names are to come in the form that they are kept in, as special
    forms can be made to grow to many times their length.
    """
    if len(message) > MESSAGE_MAX:
        raise ValueError("too long")
    text = message.decode()
    if not text.isascii() and not unicodedata.is_normalized("NFKC", text):
        raise ValueError("not in normal form")
    return text
