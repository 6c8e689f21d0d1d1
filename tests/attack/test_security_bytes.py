"""Bytes that are meant to harm a broker before it knows who sends them, and tricks with frames."""

import asyncio
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from scramp import ScramClient

from octopis.core.wire.client import decode_to_client
from octopis.core.wire.control import Ping, StatusRequest, encode_control
from octopis.core.wire.frames import Frame, FrameKind, encode, encode_frame
from octopis.core.wire.greeting import (
    HELLO_MAX,
    ClientHello,
    Welcome,
    decode_answer,
    encode_hello,
)
from octopis.core.wire.login import MECHANISM, Challenge, Scram, Token, encode_proof
from support.live import Brokers, RawPeer, line, ready, run_live, until
from support.secure import PASSWORD, Folder, client_as
from support.strangers import dials, logged_in, stranger

SCOT = line(2)
A, B = SCOT.brokers
KEPT_MAX = 4 * 2**20
"""What a stranger may make a broker hold for a while, in bytes; ten times less than is sent."""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


def secured(folder: Folder, work: Callable[[Brokers], object], **options: object) -> None:
    """Run work(brokers)."""

    async def whole() -> None:
        async with ready(folder.overlay(SCOT, **options)) as live:
            await work(live)  # type: ignore[misc]

    run_live(whole())


async def refused(peer: RawPeer) -> str:
    """Return in which words the broker sends a stranger away, which is all that it says."""
    (frame,) = await peer.frames()
    assert frame.kind == FrameKind.REFUSED
    return decode_answer(frame).message


async def others_work(folder: Folder, live: Brokers) -> None:
    """Log in and be delivered to, at the broker that was attacked."""
    async with client_as(live[A], folder.by_certificate()) as client:
        async with client.subscribe("x > 0") as stream:
            await client.publish({"x": 1})
            assert (await anext(stream)).attributes == {"x": 1}


def nested(kind: bytes, depth: int = HELLO_MAX - 200) -> bytes:
    """Return a hello with a field that is nested without end."""
    known = encode({"magic": "octopis", "version": 1, "role": "client", "client": "app"})
    return encode_frame(
        FrameKind.HELLO, bytes([known[0] + 1]) + known[1:] + b"\xa1z" + kind * depth
    )


BOMBS = {
    "arrays in arrays": nested(b"\x91"),
    "arrays in arrays, as the whole": encode_frame(FrameKind.HELLO, b"\x91" * 8_000),
    "maps in maps": nested(b"\x81\xa1a", 2_600),
    "an array of four thousand millions": nested(b"\xdd\xff\xff\xff\xff", 1),
    "a map of four thousand millions": nested(b"\xdf\xff\xff\xff\xff", 1),
    "four gigabytes of text": nested(b"\xdb\xff\xff\xff\xff", 1),
    "an extension of four gigabytes": nested(b"\xc9\xff\xff\xff\xff\x01", 1),
    "gzip": encode_frame(FrameKind.HELLO, b"\x1f\x8b\x08" + bytes(4_000)),
    "zstandard": encode_frame(FrameKind.HELLO, b"\x28\xb5\x2f\xfd" + bytes(4_000)),
    "a token in JSON that is nested": encode_hello(
        ClientHello("app", 1, login=Token("W1tb" * 1_000 + ".W1tb." + "AAAA"))
    ),
    "SCRAM's first message without end": encode_hello(
        ClientHello("app", 1, login=Scram(MECHANISM, b"n,," + b"n=a," * 250))
    ),
    "SCRAM's first message of signs that grow": encode_hello(
        ClientHello("app", 1, login=Scram(MECHANISM, b"n,,n=" + "\ufdfa".encode() * 330 + b",r=x"))
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_decompression_or_nesting_bomb_before_login(folder: Folder, bomb: str):
    async def work(live: Brokers) -> None:
        async with stranger(live[A].address, dials(folder)) as peer:
            began = asyncio.get_running_loop().time()
            await peer.send(BOMBS[bomb])
            assert len(await refused(peer)) < 1_000
            # Of one that works it would be many seconds, in which the loop of all stands still.
            assert asyncio.get_running_loop().time() - began < 5.0
        await others_work(folder, live)

    secured(folder, work)


def first_frames() -> dict[str, bytes]:
    """Return ways to send ten megabytes before a login."""
    much = bytes(10 * 2**20)
    said = encode_hello(ClientHello("app", 1))
    return {
        "one frame": encode_frame(FrameKind.HELLO, much),
        "a hello and one frame": said + encode_frame(FrameKind.PUBLISH, much),
        "a hello with a name": encode_frame(
            FrameKind.HELLO, encode({"role": "client", "client": "a" * len(much)})
        ),
        "small frames": encode_frame(FrameKind.PING, b"\x80" * 995) * 10_000,
        "a length a bit over what is allowed": encode_frame(FrameKind.HELLO, bytes(HELLO_MAX)),
    }


@pytest.mark.parametrize("way", first_frames())
def test_first_frames_of_10_mb(folder: Folder, way: str):
    """They are refused by their length, and next to nothing of them is held."""
    said = first_frames()[way]

    async def attack(live: Brokers) -> None:
        for door in (live[A].address, live[A].link_address):
            try:
                async with stranger(door, dials(folder)) as peer:
                    await peer.send(said)
                    assert not [each for each in await peer.frames() if each.kind == 2]
            except OSError:
                pass  # cut off while it was still sending

    async def work(live: Brokers) -> None:
        await attack(live)
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            await asyncio.gather(*(attack(live) for _ in range(5)))
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before < KEPT_MAX
        await others_work(folder, live)

    secured(folder, work)


def smuggled() -> dict[str, bytes]:
    """Return what may not stand behind a hello, before it is answered."""
    publish = encode_frame(FrameKind.PUBLISH, bytes(8) + b"\x90")
    status = encode_control(StatusRequest(1))
    return {
        "a publication": publish,
        "a request": status,
        "a second hello": encode_hello(ClientHello("alice", 1)),
        "a proof": encode_proof(b"c=biws,r=x,p=x"),
        "half a frame and its end": publish[:6],
        "an empty frame": b"\x00\x00\x00\x00",
        "a frame without a body": encode_frame(FrameKind.PING, b""),
        "a length below nothing": b"\xff\xff\xff\xff\x01",
    }


@pytest.mark.parametrize("what", smuggled())
@pytest.mark.parametrize("login", ["good", "bad", "by password"])
def test_length_tricks_that_smuggle_a_second_frame_before_the_login(
    folder: Folder, what: str, login: str
):
    """In one read with the hello: nothing of it is done, and nobody is let in with it."""
    said = {
        "good": lambda: Token(folder.token()),
        "bad": lambda: Token("no.token.this"),
        "by password": lambda: Scram(MECHANISM, b"n,,n=bob,r=" + b"r" * 24),
    }[login]()

    async def work(live: Brokers) -> None:
        for attempt in range(2):  # with a failure before it, the answer comes later: 0.1 s
            async with stranger(live[A].address, dials(folder)) as peer:
                hello = encode_hello(ClientHello("app", 100, login=said))
                await peer.send(hello + smuggled()[what])
                (first, *_) = await peer.next_frames()
                if what == "half a frame and its end" and login != "bad":
                    await peer.send(smuggled()["a publication"][6:])
                if first.kind == FrameKind.WELCOME:  # only half of it was there before
                    assert what in {"half a frame and its end", "an empty frame"}, attempt
                    continue
                frames = [first, *await peer.frames()]
                assert not {each.kind for each in frames} & {
                    FrameKind.WELCOME,
                    FrameKind.ANSWERS,
                    FrameKind.STATUS,
                }
                assert frames[-1].kind == FrameKind.REFUSED
        assert live[A].intake.published == 0
        is_seen = login == "bad" and what == "half a frame and its end"
        assert live[A].guard.failures.total == (2 if is_seen else 0)  # no other login is looked at
        await others_work(folder, live)

    secured(folder, work)


async def by_password(peer: RawPeer) -> tuple[ScramClient, Frame]:
    """Say hello as bob, and return what the broker asks."""
    scram = ScramClient([MECHANISM], "bob", PASSWORD)
    said = Scram(MECHANISM, scram.get_client_first().encode())
    await peer.send(encode_hello(ClientHello("app", 100, login=said)))
    return scram, (await peer.next_frames())[0]


def test_proof_twice_and_words_while_a_proof_is_looked_at(folder: Folder):
    async def work(live: Brokers) -> None:
        for more in (1, 2):
            async with stranger(live[A].address, dials(folder)) as peer:
                scram, frame = await by_password(peer)
                scram.set_server_first(asked(frame).decode())
                proof = encode_proof(scram.get_client_final().encode())
                if more == 1:  # both at once: nobody is let in
                    await peer.send(proof + proof)
                    assert (await peer.frames())[0].kind == FrameKind.REFUSED
                    continue
                await peer.send(proof)
                assert (await peer.next_frames())[0].kind == FrameKind.WELCOME
                await peer.send(proof)  # what does not belong here ends the session
                assert (await peer.frames())[-1].kind == FrameKind.GOODBYE
        for wrong in (encode_hello(ClientHello("app", 1)), encode_control(Ping())):
            async with stranger(live[A].address, dials(folder)) as peer:
                await by_password(peer)
                await peer.send(wrong)
                assert "a proof was asked for" in await refused(peer)
        await others_work(folder, live)

    secured(folder, work)


def asked(frame: Frame) -> bytes:
    answer = decode_answer(frame)
    assert isinstance(answer, Challenge)
    return answer.message


@pytest.mark.parametrize("whose", ["its own", "another's"])
def test_second_hello_after_the_login(folder: Folder, whose: str):
    """It makes nobody another one: the session is over, in words."""

    async def work(live: Brokers) -> None:
        async with logged_in(folder, live[A].address) as peer:
            user = "carol" if whose == "its own" else "alice"
            again = ClientHello("app", 100, login=Token(folder.token(user)))
            await peer.send(encode_hello(again) + smuggled()["a request"])
            frames = await peer.frames()
            assert [each.kind for each in frames] == [FrameKind.GOODBYE]
        await until(lambda: not live[A].clients)

    secured(folder, work)


INSIDE = {
    "a length that ends inside the body": lambda: (
        (len(smuggled()["a request"]) - 5).to_bytes(4, "big") + smuggled()["a request"][4:]
    ),
    "more than the body behind it": lambda: encode_frame(
        FrameKind.STATUS_REQUEST, smuggled()["a request"][5:] + smuggled()["a request"]
    ),
    "a publication behind its array": lambda: encode_frame(
        FrameKind.PUBLISH, bytes(7) + b"\x01\x90" + smuggled()["a publication"]
    ),
    "an array that is longer than it says": lambda: encode_frame(
        FrameKind.PUBLISH, bytes(7) + b"\x01\xdd\x00\x00\x00\x00" + b"\x95\x80\xc4\x00\xa0\x01\x01"
    ),
    "an array that is shorter than it says": lambda: encode_frame(
        FrameKind.PUBLISH, bytes(7) + b"\x01\xdd\xff\xff\xff\xff"
    ),
    "a kind that nobody knows": lambda: encode_frame(200, b"\x80"),
    "a kind of neighbours": lambda: encode_frame(FrameKind.NOTIFICATIONS, b"\x90"),
    "what a broker says": lambda: encode_frame(FrameKind.WELCOME, encode(Welcome(A, 1, 1))),
}


@pytest.mark.parametrize("trick", INSIDE)
def test_length_and_varint_tricks_after_the_login(folder: Folder, trick: str):
    """What stands behind a body in its frame is never taken for a frame; the session ends."""

    async def work(live: Brokers) -> None:
        async with client_as(live[A], folder.by_certificate()) as reader:
            async with reader.subscribe("TRUE") as stream:
                async with logged_in(folder, live[A].address) as peer:
                    await peer.send(INSIDE[trick]())
                    last = (await peer.next_frames())[-1]
                    if last.kind == FrameKind.ANSWERS:  # a batch is refused, and the client stays
                        assert decode_to_client(last)[0].refusal.error == "InvalidNotification"
                    else:
                        assert last.kind == FrameKind.GOODBYE
                        assert not await peer.frames()
                await reader.publish({"x": 1})
                assert (await anext(stream)).attributes == {"x": 1}

    secured(folder, work)
