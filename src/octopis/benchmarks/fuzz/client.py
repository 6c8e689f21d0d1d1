"""Targets that are a client: what a broker that means harm can send to it."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from octopis.benchmarks.fuzz import seeds
from octopis.benchmarks.fuzz.handshake import NOBODY, MemoryTransport, Stage, staged
from octopis.benchmarks.fuzz.laws import Check, hold
from octopis.client.client import Client
from octopis.client.connection import ClientConnection
from octopis.client.login import Login, PasswordLogin
from octopis.core.wire.client import SubscribeRequest, encode_request
from octopis.core.wire.greeting import Welcome, encode_welcome
from octopis.errors import LoginFailed, OctopisError

_ASKED = 3
_TURNS = 4
_ITERATIONS_MAX = 8_192
"""What a proof costs is the broker's to say, up to a bound: dearer ones are not waited for here."""


@contextmanager
def client() -> Iterator[Check]:
    """A client with a stream and requests under way: all that comes is answers, or an end."""
    with staged() as stage:  # for its event loop, and its transports

        def check(data: bytes) -> None:
            stage.run(_met(stage, data))

        yield check


async def _met(stage: Stage, data: bytes) -> None:
    made = Client("octopis://127.0.0.1:1", client_id="me", secret="s")  # noqa: S106 - nobody's
    stream = made.subscribe("TRUE")
    made._streams.add(stream)  # noqa: SLF001 - as if it were open, which takes a broker
    connection = made._dialled(Login())  # noqa: SLF001 - the same
    made._connection = connection  # noqa: SLF001 - the same
    transport = stage.transport(NOBODY)
    connection.connection_made(transport)
    if data[:1] != b"\0":
        connection.data_received(encode_welcome(Welcome(seeds.HERE, 2**20, 2**20, "s")))
        answers = [connection.ask(_asked) for _ in range(_ASKED)]
    else:
        answers = []
    await _read(connection, transport, data[1:])
    connection.connection_lost(None)
    for each in [*answers, connection.welcome]:
        hold(each.done(), "somebody waits for an answer of a connection that is gone")
        if not each.cancelled() and each.exception() is not None:
            hold(isinstance(each.exception(), OctopisError), f"it is {each.exception()!r}")
    made._streams.end(None)  # noqa: SLF001 - the same
    with suppress(OctopisError):
        async for notification in stream:
            str(notification)


def _asked(request: int) -> bytes:
    return encode_request(SubscribeRequest(request, request, f"s{request}", "TRUE", "sql", 0))


async def _read(connection: ClientConnection, transport: MemoryTransport, data: bytes) -> None:
    cut = len(data) // 2
    for part in (data[:cut], data[cut:]):
        if part:
            connection.data_received(part)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
    hold(len(transport.written) < 2**20, "the client says far too much")


def client_seeds() -> list[bytes]:
    """Return what a broker says first, and later on."""
    later = seeds.to_clients() + seeds.controls()
    return [b"\0" + each for each in seeds.greetings()] + [b"\1" + each for each in later]


# A login by password, from the client's side


@contextmanager
def challenged() -> Iterator[Check]:
    """A challenge and a verifier of whoever: the client proves, and believes nobody without keys.

    An input is the two of them, one line each; `{nonce}` stands for the client's own.
    """
    yield _check_challenge


def _check_challenge(data: bytes) -> None:
    login = PasswordLogin("alice", "pencil")
    assert login.said is not None, "a login by password says so"
    nonce = login.said.message.rpartition(b"r=")[2]  # type: ignore[union-attr]
    challenge, _, verifier = data.replace(b"{nonce}", nonce).partition(b"\n")
    asked = re.search(rb"i=(\d+)", challenge)
    if asked is not None and int(asked[1][:20]) > _ITERATIONS_MAX:
        return
    try:
        hold(bool(login.answer(challenge)), "a proof is empty")
        login.check(verifier)
    except LoginFailed:
        return
    hold(False, "a broker without the password's keys is believed")


def challenge_seeds() -> list[bytes]:
    """Return challenges: right ones, and such as the standard knows too."""
    salt = b"W22ZaJ0SNY7soEsUEjb6gQ=="
    signature = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    return [
        b"r={nonce}3rfcNHYJY1ZVvWVs7j,s=" + salt + b",i=4096\n" + signature,
        b"m=ext,r={nonce}x,s=" + salt + b",i=4096\n" + signature,
        b"r={nonce},s=" + salt + b",i=4096,x=y\ne=invalid-proof",
        b"r=other,s=" + salt + b",i=1\n",
        b"r={nonce}x,s=,i=4097\nv=",
    ]
