"""Streams and connections of a gateway end with their tokens."""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import quote

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from support.gateway import Gateway, curl, events, gateway_run, post
from support.overlay_command import wait_until
from support.secured import Secured, bearer


def test_streams_end_with_their_token_and_say_so(secured: Secured):
    token = secured.token("operator", 3.0)
    words = bearer(token)
    with (
        events(f"{secured.url}/notifications", *words, filter="price > 0") as stream,
        events(f"{secured.url}/overlay/live", *words) as live,
    ):
        began = time.monotonic()
        for each in (stream, live):
            last = each.rest()
            assert "event: end\ndata: " in last
            assert "the token has expired" in last
        assert time.monotonic() - began < 6.0
    found = curl(f"{secured.url}/overlay", *words)
    assert (found.status, "expired" in found.json["detail"]) == (401, True)


def test_stream_of_lines_ends_with_its_token_and_says_what_was_accepted(secured: Secured):
    connection = secured.gateway.connection()
    connection.putrequest("POST", "/notifications")
    connection.putheader("content-type", "application/x-ndjson")
    connection.putheader("authorization", f"Bearer {secured.token('pat', 2.0)}")
    connection.putheader("transfer-encoding", "chunked")
    connection.endheaders()
    line = b'{"price": 1}\n'
    chunk = b"%x\r\n%b\r\n" % (len(line), line)
    connection.send(chunk)
    time.sleep(3.2)
    connection.send(chunk + b"0\r\n\r\n")
    with closing(connection), connection.getresponse() as answer:
        assert answer.status == 401
        found = json.loads(answer.read())
    assert found["accepted"] == 1
    assert "expired" in found["detail"]


def test_streams_end_when_the_user_is_revoked_and_others_go_on(secured: Secured):
    before = secured.folder.files.access.read_text()
    kim, rita = bearer(secured.token("kim")), bearer(secured.token("rita"))
    url = f"{secured.url}/notifications"
    try:
        with events(url, *kim, filter="price > 2") as gone, events(url, *rita, filter="TRUE") as on:
            secured.folder.say(f'{before}\n[revoked]\nusers = ["kim"]\n')
            assert "event: end\n" in gone.rest()
            assert curl(f"{secured.url}/durable/x", *kim).status == 401
            secured.settled()
            secured.publish({"price": 7})
            assert on.next().data["attributes"] == {"price": 7}
    finally:
        secured.folder.say(before)


def test_live_stream_ends_when_the_role_loses_the_status(secured: Secured):
    before = secured.folder.files.access.read_text()
    words = bearer(secured.token("wim"))
    try:
        with events(f"{secured.url}/overlay/live", *words) as live:
            assert live.next().data["brokers"]["a,0"]["up"]
            told = before.replace(
                '[users.wim]\nroles = ["watcher"]', '[users.wim]\nroles = ["reader"]'
            )
            secured.folder.say(told)
            assert "event: end\n" in live.rest()
    finally:
        secured.folder.say(before)


def slow_reader(gateway: Gateway, token: str, filter_: str) -> socket.socket:
    """Return a connection on which a stream has begun, and of which nothing more is read."""
    host, port = gateway.address.split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20.0)
    client.connect((host, int(port)))
    head = f"host: x\r\nauthorization: Bearer {token}\r\n\r\n"
    client.sendall(f"GET /notifications?filter={quote(filter_)} HTTP/1.1\r\n{head}".encode())
    found = b""
    while b": subscribed" not in found:
        found += client.recv(4096)
    return client


@contextmanager
def socket_of(gateway: Gateway, token: str) -> Iterator[ClientConnection]:
    """Have a WebSocket meanwhile that has subscribed to what nobody publishes."""
    headers = {"Authorization": f"Bearer {token}"}
    with connect(f"ws://{gateway.address}/ws", additional_headers=headers) as found:
        found.send('{"type": "subscribe", "id": "a", "filter": "price = 503"}')
        assert "subscribed" in str(found.recv(20))
        yield found


def first_seen(secured: Secured, url: str, token: str) -> int | None:
    """Publish two prices, and return which one a stream brings first; None where it ends."""
    with events(url, *bearer(token), filter="price > 0") as stream:
        secured.settled()
        secured.publish({"price": 500}, {"price": 8})
        found = stream.next()
        return found.data["attributes"]["price"] if found.kind == "message" else None


def test_what_waits_for_a_slow_reader_is_not_sent_once_its_role_is_narrowed(secured: Secured):
    before = secured.folder.files.access.read_text()
    narrowed = before.replace(
        '[roles.keeper]\nsubscribe = "TRUE"', '[roles.keeper]\nsubscribe = "price < 9"'
    )
    token = secured.token("kim")
    batches, size = 3, 4_000
    room = ("--limit=reader_bytes=100000000", "--limit=reader_notifications=100000")
    slowly = ("--limit=stall_s=60", "--limit=patience_s=20")
    with gateway_run(secured.shell, secured.gateway.up, *room, *slowly) as gateway:
        url = f"{gateway.url}/notifications"
        try:
            with (
                closing(slow_reader(gateway, token, "price = 500")) as slow,
                events(url, *bearer(token), filter="price = 501") as last,
                events(url, *bearer(token), filter="price = 502", durable="narrow") as kept,
                socket_of(gateway, token) as talking,
            ):
                secured.settled()
                for batch in range(batches):
                    text = {"price": 500, "text": "x" * 1_500}
                    secured.publish(*({**text, "n": batch * size + n} for n in range(size)))
                secured.publish({"price": 501})
                assert last.next().data["attributes"]["price"] == 501  # all of it is at the gateway
                secured.folder.say(narrowed)
                for each in (last, kept):
                    assert "may do has changed: log in anew" in each.rest()
                with pytest.raises(ConnectionClosed, match="may do has changed: log in anew"):
                    talking.recv(20)
                found = bytearray()
                while b"event: end\n" not in found[-500:]:
                    piece = slow.recv(2**20)
                    assert piece, "the stream has ended, and has not said why"
                    found += piece
            assert b"may do has changed: log in anew" in found[-500:]
            came = [int(n) for n in re.findall(rb'"n":(\d+)', found)]
            assert came == list(range(len(came)))
            assert len(came) < batches * size / 2, "only what was written before may come"
            # Each broker looks for itself what the roles are: a new stream may end once more.
            wait_until(lambda: first_seen(secured, url, token) == 8)
        finally:
            secured.folder.say(before)


def test_one_connection_for_each_token_however_many_requests(secured: Secured):
    def clients() -> int:
        # Not wim, who had no right to it a moment ago: brokers may not have read that it is back.
        found = curl(f"{secured.url}/overlay/status", *bearer(secured.token("operator"))).json
        return sum(
            name.startswith("pat/")
            for each in found["brokers"].values()
            for name in each["clients"]
        )

    before, words = clients(), bearer(secured.token("pat"))
    for _ in range(5):
        assert post(f"{secured.url}/notifications", [{"price": 1}], *words).status == 202
    assert clients() == before + 1
