"""Tokens that are not right, and proofs of passwords that were heard before, over connections."""

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scramp import ScramClient

from octopis.core.wire.frames import FrameKind
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.core.wire.login import MECHANISM, Challenge, Scram, Token, encode_proof
from octopis.errors import LoginFailed, OctopisError
from octopis.security.tokens import read_private_key
from support.live import Brokers, RawPeer, line, ready, run_live, until
from support.secure import PASSWORD, Folder, client_as
from support.strangers import dials, stranger

SCOT = line(2)
A, B = SCOT.brokers


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


def claims(**changes: Any) -> dict[str, Any]:
    """Return claims that are right, but for what is changed; None leaves one out."""
    said = {"sub": "carol", "aud": "octopis", "exp": time.time() + 60, "jti": "1", **changes}
    return {name: value for name, value in said.items() if value is not None}


def unsigned(header: dict[str, Any], said: dict[str, Any], signature: str = "") -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(each).encode()) for each in (header, said))
    return ".".join([*(each.rstrip(b"=").decode() for each in parts), signature])


def signed(folder: Folder, **changes: Any) -> str:
    return jwt.encode(claims(**changes), read_private_key(folder.files.token_key), "EdDSA")


def by_public_key(folder: Folder) -> str:
    """Sign with the bytes of the public key as if they were a secret of both sides: HS256."""
    key = read_private_key(folder.files.token_key).public_key()
    secret = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return jwt.encode(claims(), secret, "HS256")


def with_other_claims(folder: Folder) -> str:
    """Put other claims between the header and the signature of a token that is right."""
    header, _, signature = folder.token().split(".")
    other = unsigned({}, claims(sub="alice", roles=["all"])).split(".")[1]
    return f"{header}.{other}.{signature}"


def with_key_inside(_: Folder) -> str:
    """Bring the key along, as some headers of tokens may."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    inside = {"kty": "OKP", "crv": "Ed25519", "x": base64.urlsafe_b64encode(public).decode()}
    return jwt.encode(claims(), key, "EdDSA", headers={"jwk": inside, "kid": "../rogue"})


TOKENS: dict[str, Callable[[Folder], str]] = {
    "alg: none": lambda _: unsigned({"alg": "none", "typ": "JWT"}, claims()),
    "alg: None, in other letters": lambda _: unsigned({"alg": "nOnE"}, claims()),
    "alg: none with a signature": lambda f: unsigned(
        {"alg": "none"}, claims(), signed(f).rpartition(".")[2]
    ),
    "no signature": lambda _: unsigned({"alg": "EdDSA"}, claims()),
    "the public key as a secret": by_public_key,
    "another key": lambda _: jwt.encode(claims(), Ed25519PrivateKey.generate(), "EdDSA"),
    "a key that it brings along": with_key_inside,
    "other claims": with_other_claims,
    "expired": lambda f: signed(f, exp=time.time() - 60),
    "no end": lambda f: signed(f, exp=None),
    "an end that is no number": lambda f: signed(f, exp="9999999999x"),
    "not yet": lambda f: signed(f, nbf=time.time() + 600),
    "for another audience": lambda f: signed(f, aud="other"),
    "for an audience that begins so": lambda f: signed(f, aud="octopis2"),
    "for no audience": lambda f: signed(f, aud=None),
    "of nobody": lambda f: signed(f, sub=None),
    "of a user that is not there": lambda f: signed(f, sub="nobody"),
    "with a role that is not there": lambda f: signed(f, roles=["all", "root"]),
    "of a name with a slash": lambda f: signed(f, sub="alice/app", roles=["all"]),
}


@pytest.mark.parametrize("what", TOKENS)
def test_token_with_alg_none_another_key_expired_or_for_another_audience(folder: Folder, what: str):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            token = TOKENS[what](folder)
            async with stranger(live[A].address, dials(folder)) as peer:
                await peer.send(encode_hello(ClientHello("app", 10, login=Token(token))))
                (frame,) = await peer.frames()
                answer = decode_answer(frame)
                assert (frame.kind, answer.error) == (FrameKind.REFUSED, "LoginFailed")
            assert not live[A].clients
            assert token not in folder.audit(live[A])
            good = folder.by_token(signed(folder))  # what it differs from is right
            async with client_as(live[A], good, client_id="app") as client:
                assert client.id == "carol/app"

    run_live(work())


def test_token_that_is_revoked_lets_nobody_in_again(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            token = signed(folder, jti="stolen")
            async with client_as(live[A], folder.by_token(token), reconnect_s=0) as client:
                access = folder.files.access.read_text(encoding="utf-8")
                folder.say(f'{access}[revoked]\ntokens = ["stolen"]\n')
                await until(lambda: not live[A].clients)
                with pytest.raises(OctopisError, match=r"revoked|may not be in"):
                    await client.publish({"x": 1})
            with pytest.raises(LoginFailed, match="revoked"):
                await client_as(live[A], folder.by_token(token)).open()

    run_live(work())


# Passwords


class Heard:
    """What somebody on the way has heard of one login by password."""

    first = b""
    proof = b""
    nonce = ""


async def login(peer: RawPeer, heard: Heard | None = None) -> object:
    """Log bob in, and note all that was said; return the broker's answer."""
    scram = ScramClient([MECHANISM], "bob", PASSWORD)
    first = scram.get_client_first().encode()
    await say_first(peer, first)
    challenge = decode_answer((await peer.next_frames())[0])
    assert isinstance(challenge, Challenge)
    scram.set_server_first(challenge.message.decode())
    proof = scram.get_client_final().encode()
    if heard is not None:
        heard.first, heard.proof = first, proof
        heard.nonce = challenge.message.decode().split(",")[0]
    await peer.send(encode_proof(proof))
    return decode_answer((await peer.next_frames())[0])


async def say_first(peer: RawPeer, message: bytes) -> None:
    await peer.send(encode_hello(ClientHello("app", 10, login=Scram(MECHANISM, message))))


@pytest.mark.parametrize("where", ["at the same broker", "at another broker"])
def test_replayed_scram_messages(folder: Folder, where: str):
    """Both messages that were heard, said again word for word: the broker's part is new."""

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            heard = Heard()
            async with stranger(live[A].address, dials(folder)) as peer:
                assert isinstance(await login(peer, heard), Welcome)
            door = live[A if where == "at the same broker" else B].address
            for _ in range(2):
                async with stranger(door, dials(folder)) as peer:
                    await say_first(peer, heard.first)
                    challenge = decode_answer((await peer.next_frames())[0])
                    nonce = challenge.message.decode().split(",")[0]
                    assert nonce != heard.nonce
                    await peer.send(encode_proof(heard.proof))
                    assert decode_answer((await peer.frames())[0]).error == "LoginFailed"
            async with stranger(door, dials(folder)) as peer:  # with the new number put in
                await say_first(peer, heard.first)
                challenge = decode_answer((await peer.next_frames())[0])
                nonce = challenge.message.decode().split(",")[0]
                mixed = heard.proof.replace(heard.nonce.encode(), nonce.encode())
                await peer.send(encode_proof(mixed))
                assert decode_answer((await peer.frames())[0]).error == "LoginFailed"

    run_live(work())


@pytest.mark.parametrize("how", ["at once", "after another's hello"])
def test_proof_without_a_challenge_or_of_another_connection(folder: Folder, how: str):
    async def both(live: Brokers) -> None:
        heard = Heard()
        async with stranger(live[A].address, dials(folder)) as peer:
            assert isinstance(await login(peer, heard), Welcome)
        async with stranger(live[A].address, dials(folder)) as peer:
            if how == "at once":
                await peer.send(encode_proof(heard.proof))
                assert decode_answer((await peer.frames())[0]).error == "ProtocolError"
                return
            async with stranger(live[A].address, dials(folder)) as other:
                await say_first(peer, heard.first)
                await say_first(other, heard.first)
                scram = ScramClient([MECHANISM], "bob", PASSWORD, c_nonce=nonce_of(heard.first))
                assert scram.get_client_first().encode() == heard.first
                challenge = decode_answer((await peer.next_frames())[0])
                await other.next_frames()
                scram.set_server_first(challenge.message.decode())
                await other.send(encode_proof(scram.get_client_final().encode()))
                assert decode_answer((await other.frames())[0]).error == "LoginFailed"

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            await both(live)

    run_live(work())


def nonce_of(first: bytes) -> str:
    return first.decode().rpartition("r=")[2]


@pytest.mark.parametrize(
    "first",
    [
        b"y,,n=bob,r=abcdefghijkl",
        b"p=tls-unique,,n=bob,r=abcdefghijkl",
        b"n,a=alice,n=bob,r=abcdefghijkl",
        b"n,,m=x,n=bob,r=abcdefghijkl",
        b"n,,n=bob,r=",
        b"n,,n=,r=abcdefghijkl",
        b"n,,n=bob,n=alice,r=abcdefghijkl",
        b"n,,n=bob\x00,r=abcdefghijkl",
        b"\xff\xfe",
        b"",
    ],
)
def test_odd_first_messages_of_scram_let_nobody_in(folder: Folder, first: bytes):
    """What asks for another identity, for binding to a channel or for nothing at all."""

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            async with stranger(live[A].address, dials(folder)) as peer:
                await say_first(peer, first)
                answer = decode_answer((await peer.next_frames())[0])
                if isinstance(answer, Challenge):  # asked as anybody is, and no proof fits
                    nonce = answer.message.split(b",")[0]
                    await peer.send(encode_proof(b"c=biws," + nonce + b",p=" + b"A" * 43 + b"="))
                    answer = decode_answer((await peer.frames())[0])
                assert answer.error == "LoginFailed"
            assert not live[A].clients

    run_live(work())
