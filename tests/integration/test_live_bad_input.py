"""Whatever is sent to a broker: a clear line in the log, one connection closed, others well."""

import asyncio
import logging
import os

import pytest
from msgspec.structs import replace

from octopis.broker.broker import LiveBroker
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.marks import Confirmed
from octopis.core.routing.settling import Inquiry, Report
from octopis.core.wire.client import (
    Consumed,
    SettledRequest,
    SubscribeRequest,
    encode_publish,
    encode_request,
)
from octopis.core.wire.control import Notice, encode_control
from octopis.core.wire.frames import FrameKind, encode, encode_frame
from octopis.core.wire.greeting import (
    BrokerHello,
    ClientHello,
    encode_hello,
)
from octopis.core.wire.inquiries import encode_asking
from octopis.core.wire.link import overlay_digest
from octopis.core.wire.published import encode_published
from support.live import (
    LIMITS,
    client_of,
    line,
    overlay,
    raw_client,
    raw_peer,
    ready,
    run_live,
)
from support.witness import A0, A1, B0, B1, DIGEST, IMPATIENT, goodbye_in, refusal_in, with_witness

OPENINGS = {
    "random bytes": (b"\xff" + os.urandom(200), "a frame of"),
    "a web browser": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "is the other side an OctopiS"),
    "a huge length": (b"\xff\xff\xff\xff", "a frame of 4,294,967,295 bytes"),
    "a frame too long for a hello": (b"\x00\x00\x20\x01\x01", "a frame of 8,193 bytes"),
    "an empty frame": (b"\x00\x00\x00\x00", "an empty frame"),
    "no hello": (encode_frame(FrameKind.PING, b"\x80"), "the first frame is of kind 5"),
    "an unknown kind": (encode_frame(FrameKind.PING, b"").replace(b"\x05", b"\xfe"), "kind 254"),
    "no msgpack": (encode_frame(FrameKind.HELLO, b"\xc1\xc1"), "the hello cannot be read"),
    "deep nesting": (encode_frame(FrameKind.HELLO, b"\x91" * 4_000), "the hello cannot be read"),
    "another protocol": (
        encode_hello(ClientHello("c", 1, magic="octopus")),
        "the hello begins with 'octopus'",
    ),
    "another version": (
        encode_hello(ClientHello("c", 1, version=9)),
        "version 9 of the protocol, not 1",
    ),
    "a client without name": (encode_hello(ClientHello("", 1)), "a client needs a printable name"),
    "a client without window": (encode_hello(ClientHello("c", 0)), "a client needs"),
    "an unknown broker": (
        encode_hello(BrokerHello(BrokerId("z", 9), B0, DIGEST, "snr")),
        "B(z, 9) is no neighbour of B(b, 0)",
    ),
    "a broker that is no neighbour": (
        encode_hello(BrokerHello(A1, B0, DIGEST, "snr")),
        "B(a, 1) is no neighbour of B(b, 0)",
    ),
    "a neighbour that should be dialled": (
        encode_hello(BrokerHello(B1, B0, DIGEST, "snr")),
        "it is B(b, 0) that dials",
    ),
    "a neighbour that is here already": (
        encode_hello(BrokerHello(A0, B0, DIGEST, "snr")),
        "the link between B(a, 0) and B(b, 0) is up already",
    ),
    "a broker of another overlay": (
        encode_hello(BrokerHello(A0, B0, overlay_digest(line(3, 2)), "snr")),
        "another overlay",
    ),
    "a broker that looks for another": (
        encode_hello(BrokerHello(A0, B1, DIGEST, "snr")),
        "looks for B(b, 1), but this is B(b, 0)",
    ),
    "a broker of another algorithm": (
        encode_hello(BrokerHello(A0, B0, DIGEST, "bid")),
        "routes by bid, B(b, 0) by snr",
    ),
}


@pytest.mark.parametrize("what", OPENINGS)
def test_bad_opening_is_refused_logged_and_disturbs_nobody(what: str, caplog):
    data, reason = OPENINGS[what]

    async def bad(broker: LiveBroker) -> None:
        async with raw_peer(broker) as peer:
            await peer.send(data)
            assert reason in refusal_in(await peer.frames())

    with caplog.at_level(logging.WARNING):
        with_witness(bad)
    assert reason in caplog.text
    assert "closing the connection of a stranger at 127.0.0.1" in caplog.text


@pytest.mark.parametrize("data", [b"", b"\x00\x00", encode_hello(ClientHello("c", 1))[:20]])
def test_who_says_no_hello_in_time_is_sent_away(data: bytes):
    async def bad(broker: LiveBroker) -> None:
        async with raw_peer(broker) as peer:
            await peer.send(data)
            assert "no hello within 0.3 s" in refusal_in(await peer.frames())

    with_witness(bad, limits=IMPATIENT)


def test_slow_sender_of_a_hello_is_sent_away():
    async def bad(broker: LiveBroker) -> None:
        async with raw_peer(broker) as peer:
            hello = encode_hello(ClientHello("c", 1))
            reading = asyncio.create_task(peer.frames())
            for byte in hello:
                if reading.done():
                    break
                await peer.send(bytes([byte]))
                await asyncio.sleep(0.05)
            assert "no hello within 0.3 s" in refusal_in(await reading)

    with_witness(bad, limits=IMPATIENT)


CLIENTS = {
    "random bytes": (b"\xff" + os.urandom(50), "a frame of"),
    "a frame over the maximum": (b"\x01\x00\x00\x01\x22", "a frame of 16,777,217 bytes"),
    "a broker's frames": (
        encode_control(Notice(A0, "one", 10**18, holds=True)),
        "a client does not send frames of kind 21",
    ),
    "an unknown kind": (b"\x00\x00\x00\x01\xfe", "a client does not send frames of kind 254"),
    "a subscribe without id": (
        encode_request(SubscribeRequest(1, 1, "", "x > 1", "sql", 0)),
        "a subscribe request cannot be read",
    ),
    "a negative number": (
        encode_request(SubscribeRequest(1, -1, "s", "x > 1", "sql", 0)),
        "a subscribe request cannot be read",
    ),
    "a settled request without end": (
        encode_request(SettledRequest(1, 10**9)),
        "a settled request cannot be read",
    ),
    "a settled request twice": (
        encode_request(SettledRequest(1, 1_000)) * 2,
        "more than 100 settled requests wait, or one twice",
    ),
    "a publication cut short": (encode_frame(FrameKind.PUBLISH, b"\x01"), "cut short"),
    "a publication of nonsense": (
        encode_frame(FrameKind.PUBLISH, bytes(8) + b"\xc1"),
        "a batch of notifications cannot be read",
    ),
    "more consumed than sent": (encode_request(Consumed(5)), "5 deliveries cannot be consumed"),
}


@pytest.mark.parametrize("what", CLIENTS)
def test_client_that_speaks_nonsense_is_closed(what: str, caplog):
    data, reason = CLIENTS[what]

    async def bad(broker: LiveBroker) -> None:
        async with raw_client(broker) as peer:
            await peer.send(data)
            assert reason in goodbye_in(await peer.frames())

    with caplog.at_level(logging.WARNING):
        with_witness(bad)
    assert "closing the connection of client raw" in caplog.text
    assert reason in caplog.text


def test_half_a_frame_and_then_silence_is_closed(caplog):
    async def bad(broker: LiveBroker) -> None:
        async with raw_client(broker) as peer:
            await peer.send(encode_publish(1, [b"x" * 1_000])[:500])
            assert "500 bytes into a frame" in goodbye_in(await peer.frames())

    with caplog.at_level(logging.WARNING):
        with_witness(bad, limits=IMPATIENT)
    assert "nothing came for" in caplog.text


def test_slow_sender_of_a_frame_is_closed():
    async def bad(broker: LiveBroker) -> None:
        async with raw_client(broker) as peer:
            reading = asyncio.create_task(peer.frames())
            for byte in encode_publish(1, [b"x" * 1_000]):
                if reading.done():
                    break
                await peer.send(bytes([byte]))
                await asyncio.sleep(0.02)
            assert "bytes into a frame" in goodbye_in(await reading)

    with_witness(bad, limits=IMPATIENT)


def test_more_publications_under_way_than_agreed_closes_the_publisher():
    async def bad(broker: LiveBroker) -> None:
        async with raw_client(broker) as peer:
            broker.intake.close()
            one = encode_publish(1, [encode_published({"x": -1}, bytes(700), "raw", 1, 1)])
            await peer.send(one * 2)
            assert "without answer" in goodbye_in(await peer.frames())
            broker.intake.open()

    with_witness(bad, limits=replace(LIMITS, publish_window=1_000))


def test_client_that_claims_to_be_a_neighbour_and_speaks_like_a_client_is_closed():
    async def work() -> None:
        one = overlay(line(2), addresses={})
        async with ready(one) as live:
            first, last = live.values()
            first_link = last.links[first.id]
            for task in first._tasks:
                task.cancel()  # the real neighbour is gone, and its place is free
            first.links[last.id].connection.abort("cut by the test")
            while first_link.is_up:
                await asyncio.sleep(0.01)
            async with raw_peer(last) as peer, client_of(last) as reader:
                hello = BrokerHello(first.id, last.id, overlay_digest(one.scot), "snr")
                await peer.send(encode_hello(hello))
                await peer.next_frames()
                await peer.send(encode_publish(1, []))
                frames = await peer.frames()
                assert frames[-1].kind == FrameKind.GOODBYE
                assert not first_link.is_up
                async with reader.subscribe("x > 0") as notifications:
                    await reader.publish({"x": 1})
                    await anext(notifications)

    run_live(work())


WRONG_WORDS = [
    (Algorithm.SNR, encode_frame(FrameKind.CHANGES, encode([[5, ["a", 0], 1]]))),
    (Algorithm.BID, encode_frame(FrameKind.SNAPSHOT, encode([True, []]))),
    (
        Algorithm.DNR,
        encode_frame(
            FrameKind.NOTIFICATIONS_WITH_TARGETS,
            encode([[b"\xff", [], [{"x": 1}, b"", "p", 1, 1]]]),
        ),
    ),
    (Algorithm.SNR, encode_frame(FrameKind.CHANGES, encode([[6, ["nobody", 0], 1, 0, 0]]))),
    (Algorithm.SNR, encode_asking(Inquiry(BrokerId("nobody", 0), 1, 1))),
    (Algorithm.SNR, encode_asking(Confirmed(A0, 1, 1 << 70))),
    (Algorithm.SNR, encode_asking(Report(A0, 1, 1, BrokerId("nobody", 0), 0, 0, 1, 1))),
]


@pytest.mark.parametrize(("algorithm", "words"), WRONG_WORDS)
def test_false_neighbour_cannot_make_the_core_stumble(algorithm: Algorithm, words: bytes):
    async def work() -> None:
        one = overlay(line(2), algorithm)
        async with ready(one) as live:
            first, last = live.values()
            for task in first._tasks:
                task.cancel()
            first.links[last.id].connection.abort("cut by the test")
            while last.links[first.id].is_up:
                await asyncio.sleep(0.01)
            async with raw_peer(last) as peer:
                digest = overlay_digest(one.scot)
                await peer.send(
                    encode_hello(BrokerHello(first.id, last.id, digest, algorithm.value))
                )
                await peer.next_frames()
                await peer.send(words)
                assert (await peer.frames())[-1].kind == FrameKind.GOODBYE

    run_live(work())


def test_strangers_cannot_flood_the_log(caplog):
    async def bad(broker: LiveBroker) -> None:
        for _ in range(40):
            async with raw_peer(broker) as peer:
                await peer.send(b"\xff\xff\xff\xff")
                await peer.frames()

    with caplog.at_level(logging.WARNING):
        with_witness(bad)
    assert 1 <= caplog.text.count("a frame of 4,294,967,295 bytes") <= 20
