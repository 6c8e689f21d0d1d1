"""What is kept of a password: enough to check a proof of it by SCRAM, and not the password.

    SCRAM-SHA-256$4096:salt$stored:server

is one line of text, in base64, as other servers keep it, too (RFC 5803 and PostgreSQL's form). Who
reads it cannot log in with it, but can try passwords on it, each at the cost of the iterations.
"""

import base64
import binascii
import hashlib
import re
import secrets

from msgspec import Struct

from octopis.core.wire.login import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISM
from octopis.errors import InvalidConfiguration

ITERATIONS = 50_000
"""What a new password gets: clients take some hundredths of a second, and brokers none of it."""

SALT_BYTES = 16
_SALT_MAX = 64
_KEY_BYTES = 32
_PASSWORD_MAX = 1_024
_LINE = re.compile(r"SCRAM-SHA-256\$([1-9][0-9]{0,8}):([^$:]{1,128})\$([^$:]{1,64}):([^$:]{1,64})")
_HOW = "make the line with `octopis security password NAME`"


class StoredPassword(Struct, frozen=True):
    """What a broker knows of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"StoredPassword(iterations={self.iterations})"

    @property
    def mark(self) -> str:
        """What this one is known by: another password has another, and so has the same one anew."""
        parts = (self.salt, self.stored_key, self.server_key, b"%d" % self.iterations)
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def make_password(password: str, iterations: int = ITERATIONS) -> str:
    """Return the line to keep of a password. Raises InvalidConfiguration for what cannot be one."""
    from scramp import ScramException, ScramMechanism  # noqa: PLC0415 - an extra brings it

    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise InvalidConfiguration(
            f"a password has {ITERATIONS_MIN:,} to {ITERATIONS_MAX:,} iterations, "
            f"not {iterations:,}"
        )
    if not 1 <= len(password) <= _PASSWORD_MAX:
        raise InvalidConfiguration(
            f"a password has 1 to {_PASSWORD_MAX:,} characters, not {len(password):,}"
        )
    try:
        found = ScramMechanism(MECHANISM).make_auth_info(
            password, iterations, secrets.token_bytes(SALT_BYTES)
        )
    except (ScramException, UnicodeError):
        reason = "the password has characters that no password may have: control characters, say"
        raise InvalidConfiguration(reason) from None  # the cause might quote it
    salt, stored_key, server_key, _ = found
    words = (base64.b64encode(each).decode() for each in (salt, stored_key, server_key))
    return "{}${}:{}${}:{}".format(MECHANISM, iterations, *words)


def read_password(line: str) -> StoredPassword:
    """Return what a line says. Raises InvalidConfiguration, which never quotes the line."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise InvalidConfiguration(
            f"it must have the form {MECHANISM}$iterations:salt$stored:server: {_HOW}"
        )
    iterations = int(found[1])
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise InvalidConfiguration(
            f"it has {iterations:,} iterations, and must have {ITERATIONS_MIN:,} to "
            f"{ITERATIONS_MAX:,}: {_HOW}"
        )
    try:
        salt, stored_key, server_key = (
            base64.b64decode(found[part], validate=True) for part in (2, 3, 4)
        )
    except (binascii.Error, ValueError) as failure:
        raise InvalidConfiguration(f"its parts must be in base64: {_HOW}") from failure
    sizes_fit = SALT_BYTES <= len(salt) <= _SALT_MAX
    if not sizes_fit or not len(stored_key) == len(server_key) == _KEY_BYTES:
        raise InvalidConfiguration(
            f"its salt or its keys have another length than they must: {_HOW}"
        )
    return StoredPassword(salt, stored_key, server_key, iterations)
