"""Crowds at a gateway that other machines reach: each address and each token has its share."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count

import pytest

from octopis.client.address import Address
from octopis.core.model import BrokerId
from support.gateway import Answer, Gateway, curl, events, gateway_run, post
from support.overlay_command import wait_until
from support.secured import Secured, bearer
from support.strangers import client_hello_of_tls, connected

HERE = BrokerId("a", 0)
CROWD, OTHERS = "127.0.1.1", "127.0.1.2"


class Exposed:
    """A gateway with TLS, as others find it."""

    def __init__(self, gateway: Gateway, secured: Secured) -> None:
        self.address = Address("127.0.0.1", int(gateway.url.rpartition(":")[2]))
        self.url = f"https://localhost:{self.address.port}"
        self._trust = ("--cacert", str(secured.folder.files.ca), "-4")
        self.words = (*self._trust, *bearer(secured.token("operator")))

    def get(self, place: str, source: str = OTHERS) -> Answer:
        return curl(f"{self.url}/{place}", *self.words, "--interface", source)

    def is_well(self) -> bool:
        found = post(f"{self.url}/notifications", {"price": 1}, *self.words, "--interface", OTHERS)
        return found.status == 202

    def crowd(self, size: int, source: str = CROWD) -> list[socket.socket]:
        """Return sockets that connect, and say nothing."""
        return [connected(self.address, source) for _ in range(size)]

    @contextmanager
    def connection(self, source: str = CROWD) -> Iterator[ssl.SSLSocket]:
        """Have a connection with TLS."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection(self.address, 20, (source, 0)) as raw,
            context.wrap_socket(raw) as tls,
        ):
            yield tls


@contextmanager
def exposed(secured: Secured, **limits: object) -> Iterator[Exposed]:
    """Run a gateway beyond the loopback."""
    files = secured.folder.files
    tls = ("--certificate", str(files.certificate(HERE)), "--key", str(files.key(HERE)))
    words = [f"--limit={name}={value}" for name, value in limits.items()]
    everywhere = ("--host", "0.0.0.0")  # noqa: S104 - it has TLS
    with gateway_run(secured.shell, secured.gateway.up, *everywhere, *tls, *words) as gateway:
        yield Exposed(gateway, secured)


def still_open(crowd: list[socket.socket]) -> int:
    """Return how many of them have not been closed by the other side."""
    found = 0
    for each in crowd:
        try:
            found += each.recv(1) != b""
        except BlockingIOError:
            found += 1
        except OSError:  # it was reset
            pass
    return found


def close(crowd: list[socket.socket]) -> None:
    for each in crowd:
        each.close()


def get(connection: socket.socket, place: str = "/docs", head: str = "") -> bytes:
    """Ask by hand, and return the first of what comes."""
    connection.sendall(f"GET {place} HTTP/1.1\r\nhost: x\r\n{head}\r\n".encode())
    return connection.recv(65_536)


def test_half_open_handshakes_have_a_share_and_end_while_others_are_served(secured: Secured):
    with exposed(secured, half_open_per_host=50, half_open=60, head_s=6) as gateway:
        crowd = gateway.crowd(300)
        wait_until(lambda: still_open(crowd) == 50, 5.0)
        beginning = client_hello_of_tls()[:100]
        for each in crowd:
            with contextlib.suppress(OSError):  # it was sent away
                each.send(beginning)
        assert gateway.is_well()
        crowd += gateway.crowd(100, "127.0.1.3")
        wait_until(lambda: still_open(crowd) == 60, 5.0)
        wait_until(lambda: still_open(crowd) == 0, 10.0)
        assert 'limited_total{limit="half_open"} 340.0' in gateway.get("metrics").body
        assert gateway.is_well()
        close(crowd)


def test_handshakes_of_one_address_have_a_rate(secured: Secured):
    with exposed(secured, half_open_per_host=10, handshakes_per_s=5) as gateway:
        began, let = time.monotonic(), 0
        for _ in range(60):
            with contextlib.suppress(OSError), gateway.connection():
                let += 1
        assert 20 <= let <= 20 + 5 * (time.monotonic() - began) + 1
        assert gateway.is_well()  # from another address
        refused = f'limited_total{{limit="handshakes_per_s"}} {60 - let}.0'
        assert refused in gateway.get("metrics").body
        time.sleep(0.5)
        with gateway.connection() as again:
            assert b" 200 " in get(again)


def test_first_bytes_that_are_no_tls_or_too_many_end_the_connection(secured: Secured):
    with exposed(secured, head_bytes=20_000) as gateway:
        too_long = b"\x16\x03\x01\xff\xff" + bytes(65_535)
        for first in (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", bytes(10**7), too_long):
            with socket.create_connection(gateway.address, 5, (CROWD, 0)) as client:
                with contextlib.suppress(OSError):  # it is closed before all is sent
                    client.sendall(first)
                with contextlib.suppress(ConnectionResetError):
                    while client.recv(65_536):  # an alert, at most
                        pass
        with gateway.connection() as client:
            client.sendall(b"GET / HTTP/1.1\r\nx: " + b"y" * 60_000)  # and no end
            found = client.recv(65_536)
            assert b" 431 " in found
            assert b"application/problem+json" in found
        assert gateway.is_well()


def test_connections_of_one_address_have_a_share_and_the_next_is_told(secured: Secured):
    with exposed(secured, connections_per_host=3) as gateway, contextlib.ExitStack() as held:
        for _ in range(2):
            assert b" 200 " in get(held.enter_context(gateway.connection()))
        upgrade = (
            "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
            "sec-websocket-key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\n"
        )
        with gateway.connection() as third:  # a WebSocket is one as before
            assert b" 101 " in get(third, "/ws", upgrade)
            for _ in range(3):  # who is refused takes no more than it had
                refused = gateway.get("docs", CROWD)
                assert refused.status == 429
                assert refused.headers["content-type"] == "application/problem+json"
                assert refused.headers["retry-after"] == "1"
                assert "3 connections from your address" in refused.json["detail"]
            assert gateway.is_well()
            with gateway.connection():  # nor does who does not take the answer, for long
                now = "octopis_gateway_connections 4.0"  # these three, and that which asks
                wait_until(lambda: now in gateway.get("metrics").body, 8.0)
        wait_until(lambda: gateway.get("docs", CROWD).status == 200)
        assert 'limit="connections_per_host"' in gateway.get("metrics").body


def test_streams_of_one_address_and_of_one_token_have_shares(secured: Secured):
    url, trust = "notifications?filter=price%20%3E%201", "--interface"
    with exposed(secured, streams=10, streams_per_host=3, streams_per_token=2) as gateway:
        ours = (*gateway.words, trust, CROWD)
        kim = (*gateway.words[:3], *bearer(secured.token("kim")), trust, CROWD)
        with events(f"{gateway.url}/{url}", *ours), events(f"{gateway.url}/overlay/live", *ours):
            of_token = gateway.get(url)  # from elsewhere, too
            assert (of_token.status, "of your token" in of_token.json["detail"]) == (429, True)
            with events(f"{gateway.url}/{url}", *kim):
                of_host = curl(f"{gateway.url}/{url}", *kim)
                assert (of_host.status, "of your address" in of_host.json["detail"]) == (429, True)
                elsewhere = (*kim[:-1], OTHERS)
                with events(f"{gateway.url}/{url}", *elsewhere):
                    assert gateway.is_well()


@pytest.mark.parametrize("limit", ["streams_per_host", "streams_per_token"])
def test_streams_that_have_ended_give_their_share_back(secured: Secured, limit: str):
    with exposed(secured, **{limit: 1}) as gateway:
        for _ in range(3):
            words = (*gateway.words, "--interface", CROWD)
            with events(f"{gateway.url}/notifications", *words, filter="price > 1") as stream:
                stream.stop()
            wait_until(lambda: 'streams{door="events"} 0.0' in gateway.get("metrics").body)


def status_from(secured: Secured, source: str, token: str) -> int:
    """Ask with a token from an address of this machine."""
    host, port = secured.gateway.address.split(":")
    connection = HTTPConnection(host, int(port), timeout=20, source_address=(source, 0))
    with contextlib.closing(connection):
        headers = {"Authorization": f"Bearer {token}", "content-type": "application/json"}
        connection.request("POST", "/filters/check", b'{"filter": "a = 1"}', headers)
        return connection.getresponse().status


def test_wrong_tokens_of_some_addresses_keep_nobody_from_logging_in(secured: Secured):
    good, numbers = secured.token("rita"), count()
    sources = [f"127.0.1.{place}" for place in range(10, 14)]

    def wrong(source: str) -> int:
        return status_from(secured, source, f"{good[:-8]}{next(numbers):07}{good[-1]}")

    with ThreadPoolExecutor(40) as crowd:
        assert set(crowd.map(wrong, sources * 3)) <= {401, 429}
        attack = [crowd.submit(wrong, source) for source in sources * 10]
        wait_until(lambda: sum(each.done() for each in attack) >= 8)  # what was too many, at once
        assert status_from(secured, OTHERS, secured.token("kim", 601)) == 200
        assert {each.result() for each in attack} <= {401, 429}
        began = time.monotonic()  # and who has the address of the crowd waits for none of it
        assert status_from(secured, sources[0], secured.token("kim", 602)) == 200
        assert time.monotonic() - began < 2.0
