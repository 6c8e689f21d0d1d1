"""What a gateway does with bad clients."""

import contextlib
import json
import os
import re
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from octopis import connect_sync
from support.bad_clients import drip, is_well, limited, talk
from support.gateway import Gateway, curl, events, gateway_run, wait_for_status
from support.gateway_socket import Socket, on_socket
from support.overlay_command import Shell, Up, wait_until


def test_huge_body_is_refused_with_and_without_its_length(overlay: tuple[Shell, Up]):
    with limited(overlay) as gateway:
        huge = b'{"a": "' + b"x" * 3_000_000 + b'"}'
        address = f"{gateway.url}/notifications"
        for words in ((), ("-H", "transfer-encoding: chunked")):
            found = curl(address, "-H", "content-type: application/json", *words, data=huge)
            assert found.status == 413
            assert "at most 10,000 bytes" in found.json["detail"]
            assert found.headers["connection"] == "close"
        lines = ("-H", "content-type: application/x-ndjson")
        found = curl(address, *lines, data=b'{"a": 1}\n{"a": "' + b"x" * 100_000 + b'"}\n')
        assert (found.status, found.json["line"], found.json["accepted"]) == (413, 2, 1)
        assert curl(f"{gateway.url}/filters/check", data=huge).status == 413
        assert is_well(gateway)
        metrics = gateway.metrics()
        for limit, count in (("body_bytes", 3), ("line_bytes", 1)):
            assert f'octopis_gateway_limited_total{{limit="{limit}"}} {count}.0' in metrics


def test_half_requests_and_nonsense_cost_nobody_else_anything(overlay: tuple[Shell, Up]):
    with limited(overlay) as gateway:
        assert b" 400 " in talk(gateway, b"NONSENSE\r\n\r\n")
        assert b" 408 " in talk(gateway, b"POST /notifications HTTP/1.1\r\nhost: x\r\n")
        head = b"POST /notifications HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n"
        talk(gateway, head + b'{"a": 1')  # and then nothing: the connection ends
        long_head = b"GET / HTTP/1.1\r\nx: " + b"y" * 30_000
        assert b" 431 " in talk(gateway, long_head)
        assert is_well(gateway)
        assert 'limit="head_s"' in gateway.metrics()


def test_slow_loris_is_ended_while_others_are_served(overlay: tuple[Shell, Up]):
    with limited(overlay) as gateway:
        assert b" 408 " in drip(gateway, b"GET / HTTP/1.1\r\n", b"x: y\r\n")
        head = b"POST /notifications HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n"
        assert b" 408 " in drip(gateway, head, b" ")
        assert is_well(gateway)
        assert 'octopis_gateway_limited_total{limit="body_s"} 1.0' in gateway.metrics()


def test_stream_of_lines_that_stands_still_is_ended_with_what_was_accepted(
    overlay: tuple[Shell, Up],
):
    with limited(overlay) as gateway:
        head = (
            b"POST /notifications HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        found = talk(gateway, head + b'9\r\n{"a": 1}\n\r\n')
        assert b" 408 " in found
        assert json.loads(found[found.index(b"{") :])["accepted"] == 1
        assert 'octopis_gateway_limited_total{limit="idle_s"} 1.0' in gateway.metrics()


def test_more_connections_streams_or_requests_than_may_be_are_refused(overlay: tuple[Shell, Up]):
    with limited(overlay) as gateway:
        address = f"{gateway.url}/notifications"
        with events(address, filter="a=1"), events(address, filter="a=2"):
            with events(address, filter="a=3"):
                for refused in (f"{address}?filter=a%3D4", f"{gateway.url}/overlay/live"):
                    found = curl(refused)
                    assert (found.status, found.headers["retry-after"]) == (503, "1")
        wait_for_status(f"{gateway.url}/docs", 200)
        host, port = gateway.address.split(":")
        held = [socket.create_connection((host, int(port))) for _ in range(40)]
        assert curl(f"{gateway.url}/docs").status == 503
        wait_until(lambda: is_well(gateway))  # those that say nothing are ended
        for each in held:
            each.close()
    with limited(overlay, rate_per_s="5") as gateway:
        statuses = {curl(f"{gateway.url}/docs").status for _ in range(20)}
        assert statuses == {200, 429}


def test_socket_that_says_too_much_is_heard_more_slowly_and_published_once(
    overlay: tuple[Shell, Up],
):
    def asked(first: int, count: int) -> list[dict[str, Any]]:
        numbers = range(first, first + count)
        return [{"type": "publish", "attributes": {"r": n}, "request": n} for n in numbers]

    with limited(overlay, rate_per_s="20") as gateway:

        async def use(socket: Socket) -> None:
            started = time.monotonic()
            for first in (0, 30, 60):
                await socket.say(*asked(first, 30))
            told: list[int] = []
            while len(told) < 90:
                said = await socket.next()
                assert said["type"] == "accepted", "it is never told to say it again"
                told += said["requests"]
            assert told == [*range(90)]
            assert time.monotonic() - started > 1.5, "60 messages were over its share"

        on_socket(gateway, use)
        slowed = 'octopis_gateway_limited_total{limit="rate_per_s"}'
        wait_until(lambda: f"{slowed} " in gateway.metrics())  # it has made up for them


def test_pages_of_other_origins_are_kept_out_unless_they_are_let_in(overlay: tuple[Shell, Up]):
    shell, up = overlay
    origin = ("-H", "origin: https://page.example")
    with limited(overlay) as gateway:
        assert "access-control-allow-origin" not in curl(f"{gateway.url}/overlay", *origin).headers
    with gateway_run(shell, up, "--allow-origin", "https://page.example") as gateway:
        found = curl(f"{gateway.url}/overlay", *origin)
        assert found.headers["access-control-allow-origin"] == "https://page.example"
        other = curl(f"{gateway.url}/overlay", "-H", "origin: https://other.example")
        assert "access-control-allow-origin" not in other.headers


def test_slow_reader_loses_its_oldest_is_told_and_holds_up_nobody(overlay: tuple[Shell, Up]):
    _, up = overlay
    with limited(overlay, reader_notifications="1000", stall_s="60") as gateway:
        host, port = gateway.address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            path = f"/notifications?filter={quote('slow = 1')}"
            slow.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            assert b"subscribed" in slow.recv(4096) + slow.recv(4096)
            with events(f"{gateway.url}/notifications", filter="slow = 1 AND last = 1") as quick:
                gateway.settled()
                before = _memory_mb(overlay)
                with connect_sync(up.url("a,0")) as client:
                    big = {"slow": 1, "text": "x" * 1_500}
                    client.publish_many([{**big, "n": n} for n in range(20_000)])
                    client.publish({"slow": 1, "last": 1})
                assert quick.next().data["attributes"]["last"] == 1
            assert _memory_mb(overlay) < before + 60, "30 MB were published"
            found = bytearray()
            while b'"last":1' not in found[-500:]:
                piece = slow.recv(2**20)
                assert piece
                found += piece
        frames = re.findall(rb"event: gap\ndata: (.*)\n", found)
        gaps = [json.loads(each) for each in frames]
        assert sum(each["dropped"] for each in gaps) + found.count(b"\nid: ") == 20_001
        assert all("the gateway dropped" in each["reason"] for each in gaps)


def test_reader_that_takes_nothing_at_all_is_ended(overlay: tuple[Shell, Up]):
    _, up = overlay
    with limited(overlay, stall_s="0.5") as gateway:
        host, port = gateway.address.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as stuck:
            stuck.sendall(b"GET /notifications?filter=stuck%3D1 HTTP/1.1\r\nhost: x\r\n\r\n")
            stuck.recv(4096)
            gateway.settled()
            with connect_sync(up.url("a,0")) as client:
                client.publish_many([{"stuck": 1, "text": "x" * 50_000}] * 500)
            wait_until(lambda: 'limit="stall_s"' in gateway.metrics())
            wait_until(lambda: 'streams{door="events"} 0.0' in gateway.metrics())


def _memory_mb(overlay: tuple[Shell, Up]) -> float:
    """Return how much the gateway of these tests has in memory."""
    for pid in overlay[0].processes():
        if b"gateway" in Path(f"/proc/{pid}/cmdline").read_bytes():
            pages = Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20
    raise AssertionError("there is no gateway")


def flood(client: socket.socket, piece: bytes, times: int) -> None:
    """Send the same again and again."""
    for _ in range(times):
        client.sendall(piece)


def test_trailers_without_end_are_not_kept(overlay: tuple[Shell, Up]):
    with limited(overlay, idle_s="60", body_s="60") as gateway:
        before = _memory_mb(overlay)
        host, port = gateway.address.split(":")
        line = b"x-name: " + b"y" * 60_000 + b"\r\n"
        with socket.create_connection((host, int(port)), timeout=20) as client:
            client.sendall(
                b"POST /notifications HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                b'transfer-encoding: chunked\r\n\r\n8\r\n{"a": 1}\r\n0\r\n'
            )
            with pytest.raises(OSError, match=r"reset|pipe"):
                flood(client, line, 2_000)
        assert _memory_mb(overlay) < before + 30, "120 MB were on their way"
        assert is_well(gateway)


def socket_by_hand(gateway: Gateway) -> socket.socket:
    """Return a connection on which a WebSocket is open, and of which nothing more is read."""
    host, port = gateway.address.split(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(2.0)
    client.connect((host, int(port)))
    client.sendall(
        b"GET /ws HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\n\r\n"
    )
    assert b" 101 " in client.recv(4096)
    return client


def frame(opcode: int, body: bytes) -> bytes:
    """Return a short frame of a WebSocket, as clients write them."""
    assert len(body) < 126
    return bytes((opcode, 0x80 | len(body))) + bytes(4) + body


def test_pings_of_who_never_reads_do_not_pile_up(overlay: tuple[Shell, Up]):
    with limited(overlay, stall_s="60") as gateway:
        before = _memory_mb(overlay)
        with socket_by_hand(gateway) as client, pytest.raises(TimeoutError):
            flood(client, frame(0x89, b"x" * 125) * 1_000, 1_000)
        assert _memory_mb(overlay) < before + 30, "130 MB were to be answered"
        assert is_well(gateway)


def test_message_of_fragments_without_end_is_ended(overlay: tuple[Shell, Up]):
    with limited(overlay) as gateway, socket_by_hand(gateway) as client:
        client.sendall(frame(0x01, b""))
        with contextlib.suppress(ConnectionError):  # it may be over before all is sent
            flood(client, frame(0x00, b"") * 1_000, 200)
        wait_until(lambda: 'limit="fragments"' in gateway.metrics())


def test_socket_that_takes_nothing_at_all_is_ended(overlay: tuple[Shell, Up]):
    _, up = overlay
    with limited(overlay, stall_s="0.5") as gateway, socket_by_hand(gateway) as client:
        client.sendall(frame(0x81, b'{"type":"subscribe","id":"a","filter":"stuck = 2"}'))
        assert b"subscribed" in client.recv(4096)
        gateway.settled()
        with connect_sync(up.url("a,0")) as publisher:
            publisher.publish_many([{"stuck": 2, "text": "x" * 50_000}] * 500)
        wait_until(lambda: 'limit="stall_s"' in gateway.metrics())
        wait_until(lambda: 'streams{door="websocket"} 0.0' in gateway.metrics())


def test_nonsense_is_answered_as_every_mistake_is(overlay: tuple[Shell, Up]):
    with limited(overlay) as gateway:
        found = talk(gateway, b"NONSENSE\r\n\r\n")
        assert b"application/problem+json" in found


def test_socket_has_no_more_subscriptions_than_it_may(overlay: tuple[Shell, Up]):
    async def use(socket: Socket) -> None:
        filters = [{"type": "subscribe", "id": str(n), "filter": f"n = {n}"} for n in range(3)]
        await socket.say(*filters)
        told = await socket.take(3)
        assert [each["type"] for each in told] == ["subscribed", "subscribed", "error"]
        assert "at most 2 subscriptions" in told[2]["detail"]
        await socket.say({"type": "unsubscribe", "id": "0"}, filters[2])
        assert [each["type"] for each in await socket.take(2)] == ["unsubscribed", "subscribed"]

    with limited(overlay, filters_per_socket="2") as gateway:
        on_socket(gateway, use)
