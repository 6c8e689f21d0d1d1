"""Targets behind the first word of a login: the proof of a password, the claims of a token.

Chance never finds a signature or a proof. So these inputs are put where only the right key gets:
they are what a token says, signed all the same, and what is changed in a proof that was right.
"""

import base64
import hashlib
import hmac
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from octopis.benchmarks.fuzz import seeds
from octopis.benchmarks.fuzz.laws import Check, hold
from octopis.core.wire.login import ITERATIONS_MIN, MECHANISM, MESSAGE_MAX, Scram, Token
from octopis.errors import LoginFailed
from octopis.security.access import parse_access
from octopis.security.certificates import make_token_keys
from octopis.security.folder import SecurityFolder
from octopis.security.identity import Identity
from octopis.security.login import Challenge, Logins
from octopis.security.passwords import StoredPassword, make_password
from octopis.security.tokens import read_private_key

WORD = "pencil"
ACCESS = """
[roles.trader]
publish = "topic = 'orders'"
subscribe = "price < 1000"
force = {{ tenant = "a" }}
[roles.auditor]
subscribe = "TRUE"
deny_subscribe = "secret"
status = true
[users.alice]
roles = ["trader"]
password = "{}"
[users.bob]
roles = ["auditor"]
"""
_GS2_BARE = len(b"n,,")


class Door:
    """The logins of one broker, and the keys that only honest clients have."""

    def __init__(self, path: Path) -> None:
        folder = SecurityFolder(path)
        folder.tokens.mkdir()
        private, public = make_token_keys()
        folder.token_key.write_bytes(private)
        (folder.tokens / "octopis.pem").write_bytes(public)
        self._key = read_private_key(folder.token_key)
        access = parse_access(ACCESS.format(make_password(WORD, ITERATIONS_MIN)), "access.toml")
        self.logins = Logins(lambda: access, folder)
        user = access.user("alice")
        assert user is not None, "alice is in access.toml"
        assert user.password is not None, "alice has a password"
        self._client_key, self._stored = client_key(WORD, user.password)

    def token(self, header: bytes, payload: bytes) -> str:
        """Return a token that says anything at all, and is signed."""
        body = b".".join(map(_base64url, (header, payload)))
        return (body + b"." + _base64url(self._key.sign(body))).decode()

    def proof(self, first: bytes, challenge: bytes) -> bytes:
        """Return alice's right answer to a challenge."""
        nonce = challenge.partition(b",")[0]
        final = b"c=biws," + nonce
        said = b",".join((first[_GS2_BARE:], challenge, final))
        signature = hmac.digest(self._stored, said, "sha256")
        proof = bytes(a ^ b for a, b in zip(self._client_key, signature, strict=True))
        return final + b",p=" + base64.b64encode(proof)


def client_key(word: str, password: StoredPassword) -> tuple[bytes, bytes]:
    """Return the key that a client makes of its password, and what the broker keeps of it."""
    salted = hashlib.pbkdf2_hmac("sha256", word.encode(), password.salt, password.iterations)
    key = hmac.digest(salted, b"Client Key", "sha256")
    return key, hashlib.sha256(key).digest()


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@contextmanager
def _door() -> Iterator[Door]:
    with tempfile.TemporaryDirectory() as folder:
        yield Door(Path(folder))


# Passwords: an input of pairs, which byte of the right message is replaced by which


@contextmanager
def first_messages() -> Iterator[Check]:
    """The first message of a login by password, as it comes."""
    with _door() as door:

        def check(data: bytes) -> None:
            try:
                found = door.logins.begin(Scram(MECHANISM, data), None, time.time())
            except LoginFailed:
                return
            hold(isinstance(found, Challenge), "a first message alone is no login")
            assert isinstance(found, Challenge)
            hold(len(found.message) <= 2 * MESSAGE_MAX, "a challenge is too long for the client")
            try:
                found.finish(data)
            except LoginFailed:
                return
            hold(False, "the first message said twice is no login")

        yield check


@contextmanager
def proofs() -> Iterator[Check]:
    """The proof of a password: alice's own, with changes. Only the unchanged one is let in."""
    with _door() as door:
        first = seeds.CLIENT_FIRST

        def check(data: bytes) -> None:
            challenge = door.logins.begin(Scram(MECHANISM, first), None, time.time())
            assert isinstance(challenge, Challenge), "a password is asked for"
            right = door.proof(first, challenge.message)
            said = changed(right, data)
            try:
                identity, _ = challenge.finish(said)
            except LoginFailed:
                hold(said != right, "a right proof is refused")
            else:
                hold(identity.name == "alice", "a proof of alice's makes somebody else of her")
                hold(_means(said) == _means(right), f"another proof is taken, too: {said!r}")
            try:
                challenge.finish(right)
            except LoginFailed:
                return
            hold(False, "a challenge can be answered twice")

        yield check


def changed(right: bytes, data: bytes) -> bytes:
    """Return a message with changes: triples of a place, how many bytes go, and what comes."""
    made = bytearray(right)
    for at in range(0, len(data) - 2, 3):
        place = data[at] % (len(made) + 1)
        made[place : place + data[at + 1] % 4] = data[at + 2 : at + 3]
    return bytes(made + data[len(data) - len(data) % 3 :])[:MESSAGE_MAX]


def _means(proof: bytes) -> bytes | None:
    """Return what the last part of a proof says."""
    try:
        return base64.b64decode(proof.rpartition(b",p=")[2])
    except ValueError:
        return None


def password_seeds() -> list[bytes]:
    """Return first messages: right ones, and with all that the standard knows."""
    return [
        seeds.CLIENT_FIRST,
        b"n,,n=bob,r=fyko",
        b"n,,n=nobody,r=fyko+d2lbbFgONRv9qkxdawL",
        b"n,a=alice,n=alice,r=abc",
        b"y,,n=a=2Cb=3D,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"n,,m=ext,n=alice,r=abc,x=y",
        "n,,n=\u00c5lice,r=abc".encode(),
    ]


def proof_seeds() -> list[bytes]:
    """Return changes of a proof."""
    return [b"", b"\x02\x01x", b"\x30\x01A", b"\x00\x01y\x50\x00=", b"\x07\x02r\xff", b"\xff\x00,"]


# Tokens: an input of a header and a payload, one line each


@contextmanager
def claims() -> Iterator[Check]:
    """What a token says that was signed by a key that is trusted here."""
    with _door() as door:

        def check(data: bytes) -> None:
            header, _, payload = data.partition(b"\n")
            now = time.time()
            try:
                found = door.logins.begin(Token(door.token(header, payload)), None, now)
            except LoginFailed as failure:
                str(failure)
                return
            hold(isinstance(found, Identity), "a token is asked nothing more")
            assert isinstance(found, Identity)
            said = json.loads(payload)
            hold(said["aud"] == "octopis" or "octopis" in said["aud"], "it is for others")
            hold(found.name == said["sub"], "it is somebody else's")
            hold(found.expires_at is not None and found.expires_at > now - 10, "it has expired")

        yield check


@contextmanager
def tokens() -> Iterator[Check]:
    """The text of a token, which nobody has signed."""
    with _door() as door:

        def check(data: bytes) -> None:
            try:
                door.logins.begin(Token(data.decode("latin-1")), None, time.time())
            except LoginFailed:
                return
            hold(False, "a token that nobody has signed is taken")

        yield check


_HEADER = b'{"alg":"EdDSA","typ":"JWT","kid":"octopis"}'


def claims_seeds() -> list[bytes]:
    """Return headers and payloads: right ones, and nearly right ones."""
    said: list[dict[str, object]] = [
        {"sub": "alice", "aud": "octopis", "exp": 4e9, "iat": 1, "jti": "a1"},
        {"sub": "alice", "aud": ["x", "octopis"], "exp": 4_000_000_000, "roles": ["trader"]},
        {"sub": "bob", "aud": "octopis", "exp": 4e9, "nbf": 5, "roles": ["auditor", "trader"]},
        {"sub": "alice", "aud": "octopis", "exp": 1},
        {"sub": "alice", "aud": "octopis", "exp": "9e9"},
    ]
    headers = [_HEADER, b'{"alg":"EdDSA"}', b'{"alg":"none"}', b'{"alg":"HS256","kid":"octopis"}']
    found = [_HEADER + b"\n" + json.dumps(each).encode() for each in said]
    return found + [each + b"\n" + json.dumps(said[0]).encode() for each in headers]


def token_seeds() -> list[bytes]:
    """Return texts that look like tokens."""
    payloads = [each.partition(b"\n") for each in claims_seeds()]
    return [
        b".".join((_base64url(header), _base64url(payload), _base64url(bytes(64))))
        for header, _, payload in payloads
    ]


SeedSource = Callable[[], list[bytes]]
