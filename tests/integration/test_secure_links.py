"""Links between brokers with security: mutual TLS, and the certificate of the very neighbour."""

import asyncio
import json
import socket
import ssl
import time
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from octopis.broker.broker import LiveBroker
from octopis.client.address import Address
from octopis.core.model import BrokerId
from octopis.core.wire.control import Goodbye, Refusal, encode_control
from octopis.core.wire.frames import FrameDecoder, FrameKind
from octopis.core.wire.greeting import BrokerHello, ClientHello, decode_answer, encode_hello
from octopis.core.wire.link import overlay_digest
from octopis.overlay.deployment import running
from octopis.security.certificates import issue_broker, issue_client
from support.live import line, ready, run_live, until
from support.processes import free_ports
from support.secure import DAYS, Folder, client_as, other_authority
from support.strangers import client_hello_of_tls, dials, listens, now, stranger

SCOT = line(2)
A, B = SCOT.brokers
HELLO = BrokerHello(A, B, overlay_digest(SCOT), "snr")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


def events(folder: Folder, broker: LiveBroker) -> list[str]:
    return [json.loads(line)["event"] for line in folder.audit(broker).splitlines()]


ROGUES = {
    "of another broker": lambda folder: issue_broker(folder.authority, B, (), DAYS, now()),
    "of a name that begins as the neighbour's": lambda folder: issue_broker(
        folder.authority, BrokerId("a", 10), (), DAYS, now()
    ),
    "of a client": lambda folder: issue_client(folder.authority, "alice", DAYS, now()),
    "of another authority": lambda _: issue_broker(other_authority(), A, (), DAYS, now()),
    "that has ended": lambda folder: issue_broker(
        folder.authority, A, (), 1, now() - timedelta(days=2)
    ),
    "none": lambda _: None,
}


@pytest.mark.parametrize("rogue", ROGUES)
def test_neighbour_is_taken_in_by_its_own_certificate_alone(folder: Folder, rogue: str):
    async def work() -> None:
        async with running(placed(folder), [B]) as live:
            context = dials(folder, ROGUES[rogue](folder))
            with suppress(OSError):  # the handshake is refused, or what is said after it
                async with stranger(live[B].link_address, context) as peer:
                    await peer.send(encode_hello(HELLO))
                    for frame in await peer.frames():
                        assert frame.kind != FrameKind.HELLO
            await until(lambda: "link_refused" in folder.audit(live[B]))
            assert not live[B].links[A].is_up

    run_live(work())


def test_neighbour_with_its_own_certificate_is_taken_in(folder: Folder):
    async def work() -> None:
        async with running(placed(folder), [B]) as live:
            right = issue_broker(folder.authority, A, (), DAYS, now())
            async with stranger(live[B].link_address, dials(folder, right)) as peer:
                await peer.send(encode_hello(HELLO))
                frame = (await peer.next_frames())[0]
                assert isinstance(decode_answer(frame), BrokerHello)
                assert live[B].links[A].is_up

    run_live(work())


def test_hello_of_a_broker_is_refused_at_the_port_for_clients_and_the_other_way_round(
    folder: Folder,
):
    async def work() -> None:
        async with running(placed(folder), [B]) as live:
            right = issue_broker(folder.authority, A, (), DAYS, now())
            context = dials(folder, right)
            for address, hello in (
                (live[B].address, HELLO),
                (live[B].link_address, ClientHello("me", 10)),
            ):
                async with stranger(address, context) as peer:
                    await peer.send(encode_hello(hello))
                    answer = decode_answer((await peer.next_frames())[0])
                    assert answer.error == "LoginFailed"
                    assert "another port" in answer.message
            assert not live[B].links[A].is_up
            assert not live[B].clients

    run_live(work())


def placed(folder: Folder, **options: object):
    """Return the overlay with ports that are chosen before: one of its brokers runs alone."""
    ports = free_ports(4)
    places = {A: Address(port=ports[0]), B: Address(port=ports[1])}
    links = {A: ports[2], B: ports[3]}
    return folder.overlay(SCOT, **options).at(places, links)


@pytest.mark.parametrize("rogue", ["of another broker", "of a client", "of another authority"])
def test_rogue_at_the_address_of_a_neighbour_hears_nothing(folder: Folder, rogue: str, caplog):
    """It has a certificate that the overlay has issued, or not; it is not the neighbour's."""
    heard: list[bytes] = []
    issued = {
        "of another broker": lambda: issue_broker(folder.authority, A, (), DAYS, now()),
        "of a client": lambda: issue_client(folder.authority, "alice", DAYS, now()),
        "of another authority": lambda: issue_broker(other_authority(), B, (), DAYS, now()),
    }[rogue]()
    certificate, key = folder.path / "rogue.pem", folder.path / "rogue.key"
    issued.write(certificate, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    came = 0

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal came
        came += 1
        with suppress(OSError):
            heard.append(await reader.read(100))
        writer.close()

    async def work() -> None:
        overlay = placed(folder)
        async with running(overlay, [A]) as live:
            server = await asyncio.start_server(
                listen, "127.0.0.1", overlay.link_ports[B], ssl=context
            )
            await until(lambda: "not trusted" in caplog.text or "not of b,0" in caplog.text)
            await until(lambda: "link_refused" in folder.audit(live[A]))
            assert not live[A].links[B].is_up
            server.close()
        assert not any(heard)

    with caplog.at_level("INFO"):
        run_live(work())


MISMATCHES = {
    "belongs to another overlay": {"overlay": overlay_digest(line(3))},
    "looks for": {"to": BrokerId("a", 7)},
    "routes by bid": {"algorithm": "bid"},
    "delivers at level 'once'": {"level": "once"},
}


@pytest.mark.parametrize("reason", MISMATCHES)
def test_neighbour_of_another_topology_is_refused_though_its_certificate_is_right(
    folder: Folder, reason: str
):
    async def work() -> None:
        async with running(placed(folder), [B]) as live:
            right = issue_broker(folder.authority, A, (), DAYS, now())
            async with stranger(live[B].link_address, dials(folder, right)) as peer:
                await peer.send(encode_hello(replace(HELLO, **MISMATCHES[reason])))
                answer = decode_answer((await peer.next_frames())[0])
                assert isinstance(answer, Refusal)
                assert reason in answer.message
            assert not live[B].links[A].is_up
            assert events(folder, live[B]) == ["started", "link_refused"]

    run_live(work())


@pytest.mark.parametrize("reason", MISMATCHES)
def test_what_answers_for_a_neighbour_is_of_the_same_topology_or_no_link_comes_up(
    folder: Folder, reason: str
):
    """The certificate is the neighbour's own: as of an overlay from before, or of another run."""
    context = listens(folder, issue_broker(folder.authority, B, (), DAYS, now()))
    right = BrokerHello(B, A, HELLO.overlay, HELLO.algorithm)
    answers = [replace(right, **MISMATCHES[reason])] * 2

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read(1_000)
            writer.write(encode_hello(answers.pop(0) if answers else right))
            await reader.read()
        writer.close()

    async def work() -> None:
        overlay = placed(folder)
        async with running(overlay, [A]) as live:
            link = live[A].links[B]
            server = await asyncio.start_server(
                answer, "127.0.0.1", overlay.link_ports[B], ssl=context
            )
            try:
                await until(lambda: link.is_up)
                assert not answers
                told = events(folder, live[A])
                assert told == ["started", "link_refused", "link_refused", "link"]
                assert reason in folder.audit(live[A])
            finally:
                server.close()

    run_live(work())


def test_link_is_written_down_once_it_is_up_at_both_ends_and_who_comes_too_late_is_refused(
    folder: Folder,
):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            assert events(folder, live[A]) == events(folder, live[B]) == ["started", "link"]
            right = issue_broker(folder.authority, A, (), DAYS, now())
            async with stranger(live[B].link_address, dials(folder, right)) as peer:
                await peer.send(encode_hello(HELLO))
                answer = decode_answer((await peer.next_frames())[0])
                assert isinstance(answer, Refusal)
            assert "is up already" in folder.audit(live[B])
            async with stranger(live[B].link_address, dials(folder, right)) as peer:
                gone = encode_control(Goodbye("never mind"))
                await peer.send(encode_hello(HELLO) + gone)
                await peer.frames()
            assert events(folder, live[B]) == ["started", "link", "link_refused"]
            assert live[B].links[A].is_up

    run_live(work())


def test_renewed_certificate_is_shown_to_whoever_connects_next_without_a_restart(folder: Folder):
    async def shown(address: Address) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(folder.files.ca)
        _, writer = await asyncio.open_connection(
            *address, ssl=context, server_hostname="localhost"
        )
        found = writer.get_extra_info("peercert")["serialNumber"]
        writer.close()
        return found

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            before = await shown(live[A].address)
            async with client_as(live[A], folder.by_certificate()) as client:
                fresh = issue_broker(folder.authority, A, (), DAYS, now())
                fresh.write(folder.files.certificate(A), folder.files.key(A))
                await until(lambda: "certificates_reloaded" in folder.audit(live[A]))
                assert await shown(live[A].address) != before
                await client.publish({"x": 1})  # what stands goes on
            assert live[A].links[B].is_up

    run_live(work())


def test_link_ends_when_its_certificate_does_and_comes_back_with_a_new_one(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            guard = live[A].guard
            (connection,) = guard._links
            guard._links[connection] = replace(guard._links[connection], ends_at=time.time())
            await until(lambda: live[A].links[B].reconnects == 1)
            assert "link_ended" in folder.audit(live[A])

    run_live(work())


def test_revoked_broker_loses_its_link_and_does_not_come_back(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            serial = live[A].guard.contexts.own.serial
            access = folder.files.access.read_text(encoding="utf-8")
            folder.say(f'{access}[revoked]\ncertificates = ["{serial}"]\n')
            await until(lambda: not live[B].links[A].is_up)
            await until(lambda: "is revoked" in folder.audit(live[B]).split("link_ended")[-1])
            await asyncio.sleep(0.5)  # it dials again, and again
            assert not live[B].links[A].is_up

    run_live(work())


def test_crowd_that_never_logs_in_is_bounded_and_neighbours_and_others_go_on(folder: Folder):
    limits = {"half_open_per_host": 20, "half_open": 30, "hello_s": 2.0}

    async def work() -> None:
        async with ready(folder.overlay(SCOT, limits=limits)) as live:
            async with client_as(live[A], folder.by_certificate()) as client:
                crowd = [await asyncio.open_connection(*live[A].address) for _ in range(200)]
                clients, links = live[A].listening.listeners
                await until(lambda: clients.refused >= 180)
                assert clients.half_open == 20
                await client.publish({"x": 1})
                assert live[A].links[B].is_up
                assert links.half_open == 0
                await until(lambda: clients.half_open == 0)  # in time, each of them
                for _, writer in crowd:
                    writer.close()
            async with client_as(live[A], folder.by_certificate()) as client:
                await client.publish({"x": 1})

    run_live(work())


def test_handshake_of_one_byte_at_a_time_is_over_in_time(folder: Folder):
    """Bytes of a real ClientHello, slower than anybody speaks."""

    said = client_hello_of_tls()  # once: what the system trusts takes long to read

    async def slowly(address: Address) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        reader, writer = await asyncio.open_connection(*address)
        ended = asyncio.ensure_future(reader.read())
        for byte in said:
            if ended.done():
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(0.1)
        with suppress(OSError):
            await ended
        writer.close()
        return loop.time() - began

    async def work() -> None:
        async with ready(folder.overlay(SCOT, limits={"hello_s": 3.0})) as live:
            slow = [slowly(live[A].address) for _ in range(30)]
            waiting = asyncio.gather(*slow)
            async with client_as(live[A], folder.by_certificate()) as client:
                await client.publish({"x": 1})
            assert max(await waiting) < 20.0  # said to its end, the hello takes 50 s
            assert live[A].listening.listeners[0].half_open == 0

    run_live(work())


def test_silence_after_tls_is_over_in_time_as_well(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT, limits={"hello_s": 0.5})) as live:
            async with stranger(live[A].address, dials(folder, None)) as peer:
                frames = await peer.frames(3.0)
                assert [frame.kind for frame in frames] == [FrameKind.REFUSED]
            await until(lambda: live[A].listening.listeners[0].half_open == 0)

    run_live(work())


def test_subscriber_that_stops_reading_holds_no_more_than_without_tls(folder: Folder):
    """Backpressure of the socket reaches the broker's queue through TLS."""

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            reader = client_as(live[A], folder.by_certificate(), client_id="slow")
            async with reader, client_as(live[A], folder.by_token()) as source:
                async with reader.subscribe("x > 0") as stream:
                    connection = reader._connection
                    connection._transport.pause_reading()
                    for _ in range(100):
                        await source.publish_many([({"x": 1}, bytes(100_000))] * 5)
                    session = live[A].clients["alice/slow"]
                    assert not session.connection.is_writable
                    assert session.queue.bytes > 20_000_000  # it waits where it is counted
                    connection._transport.resume_reading()
                    count = 0
                    async for _ in stream:
                        count += 1
                        if count == 500:
                            break

    run_live(work())


def test_plain_socket_at_the_tls_port_gets_one_refusal_and_no_more(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:

            def ask() -> bytes:
                with closing(socket.create_connection(live[A].address)) as plain:
                    plain.settimeout(5.0)
                    plain.sendall(encode_hello(ClientHello("me", 10)))
                    found = b""
                    while data := plain.recv(65_536):
                        found += data
                    return found

            (frame,) = FrameDecoder().receive_data(await asyncio.to_thread(ask))
            assert frame.kind == FrameKind.REFUSED

    run_live(work())
