"""Who is not who they say: brokers, clients and names that are claimed and not proved."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from octopis.broker.settings import OverlayConfiguration
from octopis.client.address import Address
from octopis.client.client import connect
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.messages import Subscribe, Subscription
from octopis.core.wire.frames import FrameKind
from octopis.core.wire.greeting import BrokerHello, ClientHello, decode_answer, encode_hello
from octopis.core.wire.link import encode_message, frames_of, overlay_digest
from octopis.core.wire.login import Token
from octopis.errors import ConnectionFailed, InvalidSubscription, LoginFailed
from octopis.overlay.deployment import running
from octopis.security.certificates import Issued, issue_broker, issue_client
from octopis.security.names import BROKER, CLIENT
from support.certificates import odd
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until
from support.processes import free_ports
from support.secure import DAYS, Folder, client_as, other_authority
from support.strangers import dials, listens, logged_in, now, stranger

SCOT = line(2)
A, B = SCOT.brokers
HELLO = BrokerHello(A, B, overlay_digest(SCOT), "snr")
MINE = "subscriptions/mine"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


def placed(folder: Folder) -> OverlayConfiguration:
    """Return the overlay with ports that are chosen before: one of its brokers runs alone."""
    ports = free_ports(4)
    places = {A: Address(port=ports[0]), B: Address(port=ports[1])}
    return folder.overlay(SCOT).at(places, {A: ports[2], B: ports[3]})


# Brokers


@pytest.mark.parametrize("how", ["at the door of clients", "after its login", "by a role"])
def test_client_that_poses_as_a_broker(folder: Folder, how: str):
    """What only neighbours may say, said by somebody with a login: it changes no table."""
    forged = Subscribe(Subscription("s", parse_filter("x > 0")), ClusterBitVector(1), A)
    said = b"".join(frames_of([encode_message(forged)]))

    async def work() -> None:
        async with running(placed(folder), [B]) as live:
            broker = live[B]
            certificate = issue_client(folder.authority, "alice", DAYS, now())
            if how == "after its login":
                async with logged_in(folder, broker.address) as peer:
                    await peer.send(said)
                    assert (await peer.frames())[-1].kind == FrameKind.GOODBYE
            else:
                door = broker.address if how == "at the door of clients" else broker.link_address
                async with stranger(door, dials(folder, certificate)) as peer:
                    await peer.send(encode_hello(HELLO) + said)
                    answer = decode_answer((await peer.frames())[0])
                    assert answer.error in {"LoginFailed", "ProtocolError"}
            assert not broker.links[A].is_up
            assert not list(broker.core.table)

    run_live(work())


Claim = Callable[[Issued, BrokerId, BrokerId], Issued]
CLAIMS: dict[str, Claim] = {
    "a broker by common name": lambda by, it, _: odd(by, called=it.short),
    "a broker by host name": lambda by, it, _: odd(by, hosts=[it.short]),
    "the name of another broker": lambda by, _, other: issue_broker(by, other, (), DAYS, now()),
    "a longer name": lambda by, it, _: odd(by, [f"{BROKER}{it.short}1"]),
    "a longer path": lambda by, it, _: odd(by, [f"{BROKER}{it.short}/x"]),
    "a shorter name": lambda by, it, _: odd(by, [f"{BROKER}{it.short[:-1]}"]),
    "a name before it": lambda by, it, _: odd(by, [f"x-{BROKER}{it.short}"]),
    "the name in capitals": lambda by, it, _: odd(by, [f"{BROKER.upper()}{it.short}"]),
    "the name with escapes": lambda by, it, _: odd(by, [f"{BROKER}%{ord(it.region):x},0"]),
    "two names": lambda by, it, other: odd(by, [f"{BROKER}{it.short}", f"{BROKER}{other.short}"]),
    "the name twice": lambda by, it, _: odd(by, [f"{BROKER}{it.short}"] * 2),
    "a name and a user": lambda by, it, _: odd(by, [f"{BROKER}{it.short}", f"{CLIENT}alice"]),
    "a user": lambda by, it, _: odd(by, [f"{CLIENT}{it.short}"]),
    "the name by another authority": lambda _, it, __: issue_broker(
        other_authority(), it, (), DAYS, now()
    ),
}
"""By an authority, instead of a broker's own; another broker has a name as well."""


@pytest.mark.parametrize("claim", CLAIMS)
def test_certificate_of_another_broker_or_with_a_matching_prefix(folder: Folder, claim: str):
    async def work() -> None:
        async with running(placed(folder), [B]) as live:
            context = dials(folder, CLAIMS[claim](folder.authority, A, B))
            with suppress(OSError):  # TLS refuses it, or the greeting does
                async with stranger(live[B].link_address, context) as peer:
                    await peer.send(encode_hello(HELLO))
                    assert FrameKind.HELLO not in {each.kind for each in await peer.frames()}
            await until(lambda: "link_refused" in folder.audit(live[B]))
            assert not live[B].links[A].is_up

    run_live(work())


@pytest.mark.parametrize("claim", CLAIMS)
def test_rogue_peer_in_the_dialling_list(folder: Folder, claim: str):
    """At the neighbour's own address: it is dialled, and hears not one byte of the protocol."""
    issued = CLAIMS[claim](folder.authority, B, A)
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            heard.append(await reader.read(100))
        writer.close()

    async def work() -> None:
        configuration = placed(folder)
        port = configuration.link_ports[B]
        server = await asyncio.start_server(hear, "127.0.0.1", port, ssl=listens(folder, issued))
        async with server, running(configuration, [A]) as live:
            await until(lambda: folder.audit(live[A]).count("link_refused") > 1)
            assert not live[A].links[B].is_up
        assert not any(heard)

    run_live(work())


# Clients


def test_identity_by_header_is_nobodys_identity(folder: Folder):
    """Names in the hello are below the name of whoever has logged in, whatever they look like."""
    claimed = ["alice", "alice/app", "../alice/app", "alice%2Fapp", "urn:octopis:client:alice"]

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            async with client_as(live[A], folder.by_certificate(), client_id="app") as alice:
                for name in claimed:
                    async with client_as(live[A], folder.by_token(), client_id=name) as other:
                        assert other.id == f"carol/{name}"
                async with alice.subscribe("x > 0") as stream:
                    async with client_as(live[A], folder.by_token(), client_id="alice/app") as her:
                        await her.publish({"x": 1})
                        assert (await anext(stream)).publisher == "carol/alice/app"
            for name in claimed:  # and without a proof, nothing counts
                async with stranger(live[A].address, dials(folder)) as peer:
                    await peer.send(encode_hello(ClientHello(name, 10, secret="a" * 32)))
                    assert decode_answer((await peer.frames())[0]).error == "LoginFailed"
            assert {each.partition("/")[0] for each in live[A].clients} <= {"alice", "carol"}

    run_live(work())


def test_identity_is_that_of_the_token_where_a_certificate_is_shown_too(folder: Folder):
    """One of both counts, the one that is said: they are never mixed."""

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            alices = issue_client(folder.authority, "alice", DAYS, now())
            async with stranger(live[A].address, dials(folder, alices)) as peer:
                hello = ClientHello("app", 10, login=Token(folder.token("carol")))
                await peer.send(encode_hello(hello))
                assert decode_answer((await peer.next_frames())[0]).client == "carol/app"
            async with stranger(live[A].address, dials(folder, alices)) as peer:
                await peer.send(encode_hello(ClientHello("app", 10, login=Token("not.one.at_all"))))
                assert decode_answer((await peer.frames())[0]).error == "LoginFailed"

    run_live(work())


def test_two_clients_with_one_name(folder: Folder):
    """Of two identities they do not meet; of one, only the secret makes the same client."""
    secret = {"secret": "s" * 32}

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            first = client_as(live[A], folder.by_certificate(), client_id="app", **secret)
            other = client_as(live[A], folder.by_token(), client_id="app", **secret)
            async with (
                first,
                other,
                first.subscribe("x > 0", names=[MINE]) as one,
                other.subscribe("x > 1", names=[MINE]) as two,
            ):
                await tables_hold(live, 2)
                await first.publish_many([{"x": 1}, {"x": 2}])
                assert [(await anext(one)).attributes["x"] for _ in range(2)] == [1, 2]
                assert (await anext(two)).attributes["x"] == 2
                same = client_as(live[A], folder.by_certificate(), client_id="app", secret="t" * 32)
                with pytest.raises(ConnectionFailed, match="is another client's here"):
                    await same.open()
                assert set(live[A].clients) == {"alice/app", "carol/app"}
                await first.publish({"x": 3})
                assert (await anext(one)).attributes["x"] == 3

    run_live(work())


def test_subscription_of_another_is_not_taken_by_its_id_elsewhere(folder: Folder):
    """Neither by its name nor by the name that it has inside the overlay, nor by a large epoch."""

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            async with (
                client_as(live[A], folder.by_certificate(), client_id="app") as victim,
                client_as(live[B], folder.by_token()) as thief,
                victim.subscribe("x > 0", names=[MINE]) as notifications,
            ):
                await tables_hold(live, 1)
                (inside,) = live[A].core.table
                for name in (MINE, f"alice/{MINE}", inside.subscription.id):
                    with suppress(InvalidSubscription):
                        async with thief.subscribe("x > 0", names=[name]):
                            assert [each.host for each in live[B].core.table].count(A) == 1
                await thief.publish({"x": 1})
                assert (await anext(notifications)).attributes == {"x": 1}

    run_live(work())


# Downgrade


def test_downgrade_to_plaintext_of_a_client(folder: Folder):
    """A broker of nobody's that speaks no TLS gets not one byte of a token or a password."""
    heard = bytearray()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            heard.extend(await reader.read(10_000))
            writer.write(b"\x00\x00\x00\x02\x03\x80")
            heard.extend(await reader.read(10_000))
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(hear, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        token = folder.token()
        async with server:
            for credentials in (folder.by_token(token), folder.by_password()):
                with pytest.raises(ConnectionFailed):
                    await connect(f"octopis://127.0.0.1:{port}", credentials=credentials).open()
        assert heard
        assert token.encode() not in heard
        assert b"bob" not in heard
        async with ready(overlay(SCOT)) as live:
            with pytest.raises(LoginFailed, match="does not speak TLS"):
                await client_as(live[A], folder.by_token()).open()

    run_live(work())


def test_downgrade_to_plaintext_of_a_broker(folder: Folder):
    """At neither door is a hello without TLS taken, whatever comes with it."""

    async def work() -> None:
        async with running(placed(folder), [B]) as live:
            plain = encode_hello(ClientHello("app", 10, login=Token(folder.token())))
            for door in (live[B].address, live[B].link_address):
                for said in (plain, encode_hello(HELLO)):
                    async with stranger(door, None) as peer:
                        await peer.send(said)
                        (frame,) = await peer.frames()
                        assert decode_answer(frame).error == "LoginFailed"
            with pytest.raises(LoginFailed, match="speaks TLS alone"):
                await client_of(live[B]).open()
            assert not live[B].clients
            assert not live[B].links[A].is_up

    run_live(work())


def test_downgrade_to_older_tls(folder: Folder):
    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            context = dials(folder)
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            for door in (live[B].address, live[B].link_address):
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    async with stranger(door, context):
                        pass
            context.maximum_version = ssl.TLSVersion.TLSv1_3
            async with stranger(live[A].address, context) as peer:
                await peer.send(encode_hello(ClientHello("app", 9, login=Token(folder.token()))))
                assert decode_answer((await peer.next_frames())[0]).client == "carol/app"

    run_live(work())
