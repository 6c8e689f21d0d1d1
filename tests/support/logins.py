"""A security folder with users and keys for tests of logins, and clients that log in."""

import base64
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scramp import ScramClient

from octopis.core.wire.login import ITERATIONS_MIN, MECHANISM, Scram, Token
from octopis.security.access import Access, parse_access
from octopis.security.folder import SecurityFolder
from octopis.security.identity import Identity
from octopis.security.login import Challenge, Logins
from octopis.security.making import make_token_keys
from octopis.security.passwords import make_password
from octopis.security.tokens import read_private_key

PENCIL = "pencil"
NOW = 1_800_000_000.0
ROLES = """
[roles.trader]
publish = "topic = 'orders'"
subscribe = "price < 1000"
[roles.auditor]
subscribe = "TRUE"
deny_subscribe = "secret"
status = true
"""


def access_text(word: str = PENCIL) -> str:
    """Roles, with alice, who has a password, and bob, who has none."""
    line = make_password(word, ITERATIONS_MIN)
    return (
        f'{ROLES}[users.alice]\nroles = ["trader"]\npassword = "{line}"\n'
        '[users.bob]\nroles = ["auditor"]\n'
    )


class Door:
    """The logins of one broker, whose access can be changed."""

    def __init__(self, path: Path) -> None:
        self.folder = SecurityFolder(path)
        self.folder.tokens.mkdir()
        private, public = make_token_keys()
        self.folder.token_key.write_bytes(private)
        (self.folder.tokens / "octopis.pem").write_bytes(public)
        self.public = public
        self.key: Ed25519PrivateKey = read_private_key(self.folder.token_key)
        self.access: Access = parse_access(access_text(), "access.toml")
        self.logins = Logins(lambda: self.access, self.folder)

    def change(self, text: str) -> None:
        self.access = parse_access(text, "access.toml")

    def token(self, token: str, now: float = NOW) -> Identity:
        found = self.logins.begin(Token(token), None, now)
        assert isinstance(found, Identity)
        return found

    def ask(self, message: str | bytes) -> Challenge:
        text = message.encode() if isinstance(message, str) else message
        found = self.logins.begin(Scram(MECHANISM, text), None, NOW)
        assert isinstance(found, Challenge)
        return found

    def password(self, user: str, password: str) -> Identity:
        client = ScramClient([MECHANISM], user, password)
        challenge = self.ask(client.get_client_first())
        client.set_server_first(challenge.message.decode())
        identity, verifier = challenge.finish(client.get_client_final().encode())
        client.set_server_final(verifier.decode())
        return identity


@pytest.fixture
def door(tmp_path: Path) -> Door:
    """Logins of a broker in a folder of its own."""
    return Door(tmp_path)


def claims(**changes: Any) -> dict[str, Any]:
    """Claims that are right; None leaves one out."""
    said = {"sub": "bob", "aud": "octopis", "exp": NOW + 60, **changes}
    return {name: value for name, value in said.items() if value is not None}


def signed(key: Any, said: dict[str, Any], algorithm: str = "EdDSA", **headers: Any) -> str:
    """A token by the library."""
    return jwt.encode(said, key, algorithm, headers=headers)


def by_hand(key: Ed25519PrivateKey | None, header: bytes, payload: bytes) -> str:
    """A token of any bytes, signed or with an empty signature."""
    parts = [base64.urlsafe_b64encode(each).rstrip(b"=") for each in (header, payload)]
    content = b".".join(parts)
    signature = b"" if key is None else base64.urlsafe_b64encode(key.sign(content)).rstrip(b"=")
    return (content + b"." + signature).decode()


def json_bytes(said: Any) -> bytes:
    return json.dumps(said).encode()
