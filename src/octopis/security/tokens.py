"""Signed tokens: JSON Web Tokens with an Ed25519 signature, and no other that the standard allows.

    sub     the user                                      must be there
    exp     when it ends, in seconds since 1970           must be there
    aud     whom it is for: the overlay's audience        must be there
    nbf     from when on it holds                         may be there
    roles   what it may do; without it, the user's roles  may be there
    jti     what it is revoked by                         may be there

The keys are those in the folder tokens/. One that has the name that the token's `kid` says is asked
alone; without a `kid`, all of them are.
"""

import base64
import math
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from jwt.exceptions import InvalidJTIError, InvalidSubjectError
from msgspec import Struct

from octopis.core.wire.login import TOKEN_MAX
from octopis.errors import InvalidConfiguration, LoginFailed
from octopis.security.access import NAME_MAX, ROLES_MAX, check_name, is_name

ALGORITHM = "EdDSA"
KEYS_MAX = 8
"""Keys that may have signed: a token without a `kid` is tried with each."""

LEEWAY_S = 5.0
"""How far clocks may be apart."""

_LIFETIME_S_MAX = 366 * 86_400
_FOREVER = 1e11
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

# The library asks a clock of its own, and takes texts for numbers: times are looked at below.
_CHECKS: Any = {
    "require": ["exp", "aud", "sub"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}


class _Header(Struct):
    kid: str | None = None


class Claims(Struct, frozen=True):
    """What a token says that was found right."""

    subject: str
    expires_at: float
    roles: tuple[str, ...] | None
    """None: those of the user."""

    number: str
    """What it is revoked by; empty where it has none."""

    signed_by: str
    """The public key that has signed it, in hexadecimal."""


# Checking


class TokenKeys:
    """The public keys that tokens may be signed with, by name."""

    def __init__(self, keys: Mapping[str, Ed25519PublicKey]) -> None:
        if len(keys) > KEYS_MAX:
            raise InvalidConfiguration(
                f"{len(keys)} keys may sign tokens, and at most {KEYS_MAX} can: remove old ones"
            )
        self._keys = dict(keys)

    @classmethod
    def read(cls, folder: Path) -> "TokenKeys":
        """Return the keys in a folder, none where it is not there.

        Raises InvalidConfiguration for what is no Ed25519 public key.
        """
        try:
            files = sorted(folder.glob("*.pem"))
            return cls({path.stem: read_public_key(path) for path in files})
        except OSError as failure:
            raise InvalidConfiguration(
                f"cannot read the keys of tokens in {folder}: {failure.strerror}"
            ) from failure

    def __len__(self) -> int:
        return len(self._keys)

    def has(self, key: str) -> bool:
        """Tell whether a key may sign still: one that tokens say they were `signed_by`."""
        return any(_known_by(each) == key for each in self._keys.values())

    def name_of(self, key: Ed25519PrivateKey) -> str | None:
        """Return the name of the key that belongs to a private one, None where it is not here."""
        own = key.public_key()
        return next((name for name, each in self._keys.items() if each == own), None)

    def check(self, token: str, audience: str, now: float) -> Claims:
        """Return what a token says, or raise LoginFailed. `now` is in seconds since 1970.

        Nothing in it is believed, or said again, before one of the keys has signed it.
        """
        if len(token) > TOKEN_MAX:
            raise not_valid(f"it has more than {TOKEN_MAX:,} characters")
        if _FORM.fullmatch(token) is None:
            raise not_valid("it is not a JSON Web Token")
        try:
            claims, key = _signed(token, self._asked(token), audience)
        except jwt.InvalidTokenError as failure:
            raise not_valid(_reason(failure)) from None
        except RecursionError:
            raise not_valid("it is nested too deeply") from None
        return _read_claims(claims, key, now)

    def _asked(self, token: str) -> Iterable[Ed25519PublicKey]:
        """Return the keys to try. The name of a key is all that is read before the signature."""
        segment = token.partition(".")[0]
        try:
            text = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
            name = msgspec.json.decode(text, type=_Header).kid
        except ValueError:
            raise not_valid("it is not a JSON Web Token") from None
        if name is None:
            return self._keys.values()
        return [self._keys[name]] if name in self._keys else []


def _signed(
    token: str, keys: Iterable[Ed25519PublicKey], audience: str
) -> tuple[dict[str, Any], Ed25519PublicKey]:
    """Return what a token says, and which of the keys has signed it."""
    for key in keys:
        try:
            found: dict[str, Any] = jwt.decode(
                token, key, algorithms=[ALGORITHM], audience=audience, options=_CHECKS
            )
        except jwt.InvalidSignatureError:
            continue
        return found, key
    raise jwt.InvalidSignatureError


def _known_by(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()


def _reason(failure: jwt.InvalidTokenError) -> str:
    match failure:
        case jwt.InvalidSignatureError():
            return "none of the keys that are trusted here has signed it"
        case jwt.InvalidAlgorithmError():
            return f"it must be signed by {ALGORITHM}"
        case jwt.MissingRequiredClaimError():
            return f"it does not say `{failure.claim}`"
        case jwt.InvalidAudienceError():
            return "it is for another audience"
        case InvalidSubjectError() | InvalidJTIError():
            return "its `sub` and `jti` must be texts"
        case _:
            return "it is not a JSON Web Token as it is asked for here"


def _read_claims(claims: Mapping[str, Any], key: Ed25519PublicKey, now: float) -> Claims:
    """Return what a token that is signed says, or raise LoginFailed."""
    subject, number, roles = claims["sub"], claims.get("jti", ""), claims.get("roles")
    if not is_name(subject):
        raise not_valid("its `sub` is no name that a user can have")
    if len(number) > NAME_MAX:
        raise not_valid(f"its `jti` has more than {NAME_MAX} characters")
    if roles is not None and not _are_names(roles):
        raise not_valid(f"its `roles` must be a list of at most {ROLES_MAX} names")
    ends_at = _time(claims, "exp")
    if now >= ends_at + LEEWAY_S:
        raise not_valid(f"it has expired at {_written(ends_at)}")
    for claim in ("nbf", "iat"):
        if claim in claims and now < _time(claims, claim) - LEEWAY_S:
            raise not_valid("it holds only later: are both clocks right?")
    said = None if roles is None else tuple(roles)
    return Claims(subject, ends_at, said, number, _known_by(key))


def _are_names(roles: object) -> bool:
    if not isinstance(roles, list) or len(roles) > ROLES_MAX:
        return False
    return all(isinstance(each, str) and is_name(each) for each in roles)


def _time(claims: Mapping[str, Any], claim: str) -> float:
    found = claims[claim]
    if type(found) not in (int, float) or not 0 < found < _FOREVER or not math.isfinite(found):
        raise not_valid(f"its `{claim}` is no time in seconds since 1970")
    return float(found)


def _written(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def not_valid(reason: str) -> LoginFailed:
    """Return what to raise for a token, which its holder may know all of."""
    return LoginFailed(f"the token is not valid here: {reason}")


# Making


def issue_token(  # noqa: PLR0913 - each says one thing of the token
    key: Ed25519PrivateKey,
    sub: str,
    roles: Iterable[str] | None = None,
    *,
    audience: str,
    lifetime_s: float,
    now: float,
    kid: str | None = None,
    jti: str = "",
) -> str:
    """Return a signed token. Without `roles`, it gives those that the user has when it is used.

    `kid` is the name of the public key's file, and `jti` the token's id, by which it can be
    revoked: a random one, if none is given. Raises InvalidConfiguration for what no broker would
    take.
    """
    check_name(sub, "a user")
    if not 0 < lifetime_s <= _LIFETIME_S_MAX:
        raise InvalidConfiguration("a token lives longer than no time, and at most 366 days")
    if not audience:
        raise InvalidConfiguration("a token needs an audience: the one in the brokers' settings")
    claims: dict[str, Any] = {
        "sub": sub,
        "aud": audience,
        "iat": int(now),
        "exp": math.ceil(now + lifetime_s),
        "jti": jti or secrets.token_hex(8),
    }
    if roles is not None:
        claims["roles"] = list(roles)
        for role in claims["roles"]:
            check_name(role, "a role")
    token = jwt.encode(claims, key, ALGORITHM, headers=None if kid is None else {"kid": kid})
    if len(token) > TOKEN_MAX or len(claims.get("roles", ())) > ROLES_MAX:
        raise InvalidConfiguration(f"a token has at most {ROLES_MAX} roles")
    return token


# Keys in files


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Return the Ed25519 public key in a file, or raise InvalidConfiguration."""
    text = _read(path)
    if b"PRIVATE KEY" in text:
        raise InvalidConfiguration(
            f"{path} is a private key, and brokers need the public one: keep it elsewhere, and put "
            "there what `openssl pkey -pubout` makes of it"
        )
    try:
        key = load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm) as failure:
        raise InvalidConfiguration(f"{path} is not a public key in PEM") from failure
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidConfiguration(f"{path} must be an Ed25519 public key, and is of another kind")
    return key


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Return the Ed25519 private key in a file, or raise InvalidConfiguration."""
    text = _read(path)
    try:
        key = load_pem_private_key(text, password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        # Without the cause: it may quote the key.
        raise InvalidConfiguration(
            f"{path} is not a private key in PEM without a password"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidConfiguration(f"{path} must be an Ed25519 private key, and is of another kind")
    return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {path}: {failure.strerror}") from failure
