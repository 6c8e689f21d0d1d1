"""Real TLS over loopback: who comes in, who does not, and as whom."""

import asyncio
import socket
import ssl
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvloop

from octopis.core.model import BrokerId
from octopis.core.wire.greeting import ALPN
from octopis.security.certificates import Issued, now_utc
from octopis.security.contexts import (
    link_dial_context,
    link_listener_context,
    listener_context,
)
from octopis.security.folder import SecurityFolder
from octopis.security.names import broker_named, client_named, names_of
from support.certificates import (
    A0,
    A1,
    an_authority,
    odd,
    put_client,
    security_folder,
)

TIMEOUT_S = 10


class Shaken(NamedTuple):
    """What each side has seen of the other; a text where the side has refused, or was refused."""

    listener: Any
    dialler: Any
    session: ssl.SSLSession | None = None
    facts: tuple[object, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Nobody is in before he was answered."""
        return isinstance(self.listener, str) or isinstance(self.dialler, str)


@pytest.fixture(scope="module")
def authority() -> Issued:
    return an_authority()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, authority: Issued) -> SecurityFolder:
    made = security_folder(tmp_path_factory.mktemp("tls") / "s", authority)
    made.clients.mkdir()
    put_client(made, "alice", authority)
    return made


def shake(
    listener: ssl.SSLContext,
    dialler: ssl.SSLContext | None,
    host: str | None = None,
    session: ssl.SSLSession | None = None,
) -> Shaken:
    """Connect over a real socket; without a context the dialler speaks in the clear."""
    seen: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT_S)

        def serve() -> None:
            raw, _ = server.accept()
            raw.settimeout(TIMEOUT_S)
            try:
                with raw, listener.wrap_socket(raw, server_side=True) as connection:
                    connection.sendall(b"welcome")
                    seen.append(connection.getpeercert() or {})
                    connection.recv(1)
            except OSError as failure:
                seen.append(f"{type(failure).__name__}: {failure}")

        thread = threading.Thread(target=serve)
        thread.start()
        other: Any
        kept, facts = None, ()
        with socket.create_connection(server.getsockname(), TIMEOUT_S) as raw:
            try:
                if dialler is None:
                    raw.sendall(b"\x00\x00\x00\x10hello, let me in")
                    other = {} if raw.recv(7) == b"welcome" else "no welcome"
                else:
                    wrapped = dialler.wrap_socket(raw, server_hostname=host, session=session)
                    with wrapped as connection:
                        other = connection.getpeercert() or {}
                        if connection.recv(7) != b"welcome":
                            other = "no welcome"
                        kept = connection.session
                        facts = (
                            connection.version(),
                            connection.compression(),
                            connection.selected_alpn_protocol(),
                            connection.session_reused,
                        )
            except OSError as failure:
                other = f"{type(failure).__name__}: {failure}"
        thread.join(TIMEOUT_S)
    return Shaken(seen[0], other, kept, facts)


def of_client(
    folder: SecurityFolder, name: str | None = None, *, trusted: Path | None = None
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(trusted or folder.ca)
    if name is not None:
        context.load_cert_chain(folder.client_certificate(name), folder.client_key(name))
    return context


def of_link(folder: SecurityFolder, issued: Issued | None, where: Path) -> ssl.SSLContext:
    """Return a dialler's context of somebody who writes his own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(folder.ca)
    if issued is not None:
        issued.write(where / "x.pem", where / "x.key")
        context.load_cert_chain(where / "x.pem", where / "x.key")
    return context


def server_of(issued: Issued, where: Path) -> ssl.SSLContext:
    issued.write(where / "y.pem", where / "y.key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(where / "y.pem", where / "y.key")
    return context


# Links


def test_two_brokers_connect_and_know_each_other(folder: SecurityFolder):
    done = shake(link_listener_context(folder, A0), link_dial_context(folder, A1))
    assert broker_named(done.listener) == "a,1"
    assert broker_named(done.dialler) == "a,0"
    assert done.facts == ("TLSv1.3", None, ALPN, False)


def test_broker_of_another_authority_is_refused_by_both_sides(
    folder: SecurityFolder, tmp_path: Path
):
    # The same names, on certificates and on the authority: only the signature differs.
    strangers = security_folder(tmp_path / "s", an_authority())
    assert shake(link_listener_context(folder, A0), link_dial_context(strangers, A1)).is_refused
    done = shake(link_listener_context(strangers, A0), link_dial_context(folder, A1))
    assert "certificate verify failed" in done.dialler
    relaxed = of_link(folder, odd(an_authority(), ["urn:octopis:broker:a,1"]), tmp_path)
    done = shake(link_listener_context(folder, A0), relaxed)
    assert "certificate verify failed" in done.listener


@pytest.mark.parametrize(
    ("from_days", "to_days", "reason"),
    [(-3, -1, "has expired"), (1, 3, "not yet valid")],
)
def test_certificate_that_does_not_hold_now_is_refused_by_both_sides(
    folder: SecurityFolder,
    authority: Issued,
    tmp_path: Path,
    *,
    from_days: int,
    to_days: int,
    reason: str,
):
    now = now_utc()
    times = {"start": now + timedelta(days=from_days), "end": now + timedelta(days=to_days)}
    issued = odd(authority, ["urn:octopis:broker:a,1"], **times)
    done = shake(link_listener_context(folder, A0), of_link(folder, issued, tmp_path))
    assert reason in done.listener
    done = shake(server_of(issued, tmp_path), link_dial_context(folder, A0))
    assert reason in done.dialler


def test_certificate_that_does_not_keep_to_x509_is_refused(
    folder: SecurityFolder, authority: Issued, tmp_path: Path
):
    loose = odd(authority, ["urn:octopis:broker:a,1"], says_by_whom=False)
    done = shake(link_listener_context(folder, A0), of_link(folder, loose, tmp_path))
    assert "Missing Authority Key Identifier" in done.listener


def test_nobody_without_a_certificate_comes_in_as_a_neighbour(
    folder: SecurityFolder, tmp_path: Path
):
    done = shake(link_listener_context(folder, A0), of_link(folder, None, tmp_path))
    assert "did not return a certificate" in done.listener
    assert isinstance(done.dialler, str)


@pytest.mark.parametrize(
    ("uris", "hosts", "called", "found"),
    [
        (["urn:octopis:broker:a,11"], [], "a,1", "a,11"),
        (["urn:octopis:broker:a,0"], [], "a,1", "a,0"),
        (["urn:octopis:broker:a,1", "urn:octopis:broker:a,0"], [], "a,1", None),
        (["urn:octopis:broker:a,1", "urn:octopis:client:alice"], [], "a,1", None),
        (["urn:octopis:client:a"], [], "a,1", None),
        (["https://example.org/"], ["urn:octopis:broker:a,1"], "urn:octopis:broker:a,1", None),
        ([], ["a,1"], "urn:octopis:broker:a,1", None),
    ],
    ids=["prefix", "another", "two", "broker and client", "client", "dns and cn", "cn"],
)
def test_certificate_of_ours_that_is_not_this_brokers_is_not_taken_for_it(
    folder: SecurityFolder,
    authority: Issued,
    tmp_path: Path,
    *,
    uris: list[str],
    hosts: list[str],
    called: str,
    found: str | None,
):
    issued = odd(authority, uris, hosts, called=called)
    done = shake(link_listener_context(folder, A0), of_link(folder, issued, tmp_path))
    assert not done.is_refused  # the chain is good, and says nothing of who it is
    assert broker_named(done.listener) == found != "a,1"
    done = shake(server_of(issued, tmp_path), link_dial_context(folder, A0))
    assert broker_named(done.dialler) == found


def test_clients_certificate_is_no_brokers(folder: SecurityFolder):
    done = shake(link_listener_context(folder, A0), of_client_as_dialler(folder))
    assert broker_named(done.listener) is None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder.client_certificate("alice"), folder.client_key("alice"))
    done = shake(context, link_dial_context(folder, A0))
    assert "certificate purpose" in done.dialler  # it is not even fit to be dialled


def of_client_as_dialler(folder: SecurityFolder) -> ssl.SSLContext:
    context = of_client(folder, "alice")
    context.check_hostname = False
    return context


def test_certificate_that_a_broker_signs_itself_is_refused(
    folder: SecurityFolder, authority: Issued, tmp_path: Path
):
    # A broker's key is no authority's: a chain through its certificate leads nowhere.
    broker = odd(authority, ["urn:octopis:broker:a,1"])
    false = odd(Issued(an_authority().certificate, broker.key), ["urn:octopis:broker:a,0"])
    context = of_link(folder, false, tmp_path)
    done = shake(link_listener_context(folder, A0), context)
    assert "certificate verify failed" in done.listener


# Clients


def test_client_with_a_certificate_is_known_by_it(folder: SecurityFolder):
    done = shake(listener_context(folder, A0), of_client(folder, "alice"), "localhost")
    assert client_named(done.listener) == "alice"
    assert broker_named(done.dialler) == "a,0"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_client_without_a_certificate_comes_to_the_login_and_is_nobody(
    folder: SecurityFolder, host: str
):
    done = shake(listener_context(folder, A0), of_client(folder), host)
    assert done.listener == {}
    assert client_named(done.listener) is None
    assert not done.is_refused


def test_client_refuses_a_broker_under_another_hosts_name(folder: SecurityFolder):
    done = shake(listener_context(folder, A0), of_client(folder), "elsewhere.example.org")
    assert "Hostname mismatch" in done.dialler


def test_client_with_a_certificate_of_another_authority_is_refused(
    folder: SecurityFolder, tmp_path: Path
):
    strangers = security_folder(tmp_path / "s", an_authority())
    strangers.clients.mkdir()
    put_client(strangers, "alice", an_authority())
    context = of_client(strangers, "alice", trusted=folder.ca)
    done = shake(listener_context(folder, A0), context, "localhost")
    assert "certificate verify failed" in done.listener
    assert isinstance(done.dialler, str)


def test_clients_authority_is_none_of_brokers(authority: Issued, tmp_path: Path):
    folder = security_folder(tmp_path / "s", authority)
    folder.clients.mkdir()
    clients = an_authority("clients")
    clients.write(tmp_path / "s" / "clients-ca.pem", tmp_path / "clients-ca.key")
    put_client(folder, "alice", clients)
    done = shake(listener_context(folder, A0), of_client(folder, "alice"), "localhost")
    assert client_named(done.listener) == "alice"
    false = odd(clients, ["urn:octopis:broker:a,1"])
    done = shake(link_listener_context(folder, A0), of_link(folder, false, tmp_path))
    assert "certificate verify failed" in done.listener


# All


@pytest.mark.parametrize("make", [listener_context, link_listener_context])
def test_older_tls_and_no_tls_are_refused(folder: SecurityFolder, make):
    older = of_client(folder, "alice")
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    done = shake(make(folder, A0), older, "localhost")
    assert "unsupported protocol" in done.listener.lower()
    assert isinstance(done.dialler, str)
    done = shake(make(folder, A0), None)
    assert done.is_refused
    assert done.listener.startswith("SSLError")


def test_dialler_refuses_older_tls(folder: SecurityFolder):
    older = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    older.load_cert_chain(folder.certificate(A1), folder.key(A1))
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake(older, link_dial_context(folder, A0)).is_refused


def test_no_session_is_resumed_past_the_check_of_a_certificate(folder: SecurityFolder):
    listener = listener_context(folder, A0)
    context = of_client(folder, "alice")
    first = shake(listener, context, "localhost")
    assert first.session is not None
    assert not first.session.has_ticket
    again = shake(listener, context, "localhost", session=first.session)
    assert again.facts[-1] is False
    assert client_named(again.listener) == "alice"


def test_label_with_odd_characters_names_its_broker_through_tls(authority: Issued, tmp_path: Path):
    odd_one = BrokerId("été/%2c ~", 3)
    folder = security_folder(tmp_path / "s", authority, [A0, odd_one])
    done = shake(link_listener_context(folder, A0), link_dial_context(folder, odd_one))
    assert broker_named(done.listener) == odd_one.short


def test_uvloop_gives_the_same_certificate(folder: SecurityFolder):
    async def names() -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []

        async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.append(names_of(writer.get_extra_info("peercert")))
            writer.close()
            await writer.wait_closed()

        listener = link_listener_context(folder, A0)
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=listener)
        async with server:
            where = server.sockets[0].getsockname()
            reader, writer = await asyncio.open_connection(
                *where, ssl=link_dial_context(folder, A1)
            )
            found.append(names_of(writer.get_extra_info("peercert")))
            await reader.read()
            writer.close()
            await writer.wait_closed()
        return found

    found = uvloop.run(names())
    assert {broker_in[0] for broker_in in found} == {
        "urn:octopis:broker:a,0",
        "urn:octopis:broker:a,1",
    }
