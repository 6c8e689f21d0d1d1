"""What a gateway does with bad clients, with its own death, and with an overlay that is away."""

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from octopis import connect_sync
from support.gateway import Gateway, curl, events, gateway_run, post, wait_for_status
from support.overlay_command import SMALL, Shell, Up, wait_until

QUICK = {
    "head_s": "0.5",
    "body_s": "0.5",
    "idle_s": "0.5",
    "body_bytes": "10000",
    "line_bytes": "5000",
    "head_bytes": "20000",
    "streams": "3",
    "connections": "30",
    "patience_s": "0.3",
    "answer_s": "2",
}
"""Limits that tests reach in a moment."""


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shell, Up]]:
    shell = Shell(tmp_path_factory.mktemp("gateway-faults"))
    with shell.up("--config", shell.config(SMALL)) as up:
        yield shell, up
        assert up.stop() == (0, "")
    shell.end()


@contextmanager
def limited(overlay: tuple[Shell, Up], **changes: str) -> Iterator[Gateway]:
    """Run a gateway with limits that are quick to reach."""
    shell, up = overlay
    words = [f"--limit={name}={value}" for name, value in {**QUICK, **changes}.items()]
    with gateway_run(shell, up, *words) as gateway:
        yield gateway


def is_well(gateway: Gateway) -> bool:
    return post(f"{gateway.url}/notifications", {"a": 1}).status == 202


def talk(gateway: Gateway, text: bytes, limit_s: float = 5.0) -> bytes:
    """Send bytes, and return all that comes until the connection ends."""
    host, port = gateway.address.split(":")
    with socket.create_connection((host, int(port)), timeout=limit_s) as connection:
        connection.sendall(text)
        found = b""
        while piece := connection.recv(65_536):
            found += piece
        return found


def drip(gateway: Gateway, head: bytes, drop: bytes, limit_s: float = 10.0) -> bytes:
    """Send a drop now and then, and return what comes until the connection ends."""
    host, port = gateway.address.split(":")
    found = b""
    with socket.create_connection((host, int(port)), timeout=0.1) as connection:
        connection.sendall(head)
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            try:
                piece = connection.recv(65_536)
            except TimeoutError:
                try:
                    connection.sendall(drop)
                except OSError:
                    return found
                continue
            except ConnectionResetError:
                return found
            if not piece:
                return found
            found += piece
    pytest.fail("the connection was not ended")


# Bad clients


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


def test_more_connections_streams_or_requests_than_may_be_are_refused(overlay: tuple[Shell, Up]):
    with limited(overlay) as gateway:
        address = f"{gateway.url}/notifications"
        with events(address, filter="a=1"), events(address, filter="a=2"):
            with events(address, filter="a=3"):
                found = curl(f"{address}?filter=a%3D4")
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


# Death, and an overlay that is away


def gateways(shell: Shell) -> list[int]:
    """Return the processes of gateways beside brokers."""
    found = []
    for pid in shell.processes():
        try:
            text = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"octopis.gateway.process" in text:
            found.append(pid)
    return found


def test_durable_stream_goes_on_without_loss_when_the_gateway_is_killed(shell: Shell):
    words = ("--config", shell.config(SMALL), "--durable", "kept", "--gateway-port", "0")
    with shell.up(*words) as up:
        gateway = Gateway(up.state["gateway"], up)
        address = f"{gateway.url}/notifications"
        with events(address, durable="through", filter="n >= 0") as stream:
            gateway.settled()
            gateway.publish(*({"n": n} for n in range(20)))
            got = stream.take(10)
            (before,) = gateways(shell)
            os.kill(before, signal.SIGKILL)
            with connect_sync(up.url("b,1")) as client:
                client.publish_many([{"n": n} for n in range(20, 40)])
            wait_until(lambda: gateways(shell) not in ([], [before]))
        last = ("-H", f"Last-Event-ID: {got[-1].id}")
        with events(address, *last, durable="through") as stream:
            got += stream.take(30)
        numbers = [each.data["attributes"]["n"] for each in got]
        assert sorted(numbers) == list(range(40)), "each once"
        assert [n for n in numbers if n < 20] == list(range(20)), "in the publisher's order"
        status, said = up.stop()
        assert (status, "the gateway ended with status -9; it starts anew" in said) == (0, True)
    assert shell.is_empty()


def test_overlay_that_is_away_is_said_and_comes_back(shell: Shell):
    config = shell.config(SMALL)
    with shell.up("--config", config) as up:
        text = (shell.state / up.state["name"] / "overlay.toml").read_text(encoding="utf-8")
        (shell.folder / "placed.toml").write_text(text, encoding="utf-8")
        words = ("--config", "placed.toml", "--limit", "patience_s=0.2")
        with gateway_run(shell, up, *words) as gateway:
            assert is_well(gateway)
            with events(f"{gateway.url}/overlay/live") as live:
                live.next()
                assert up.stop()[0] == 0
                kinds = set()
                while "broker_down" not in kinds:
                    pulse = live.next().data
                    kinds |= {each["kind"] for each in pulse["events"]}
                assert not pulse["brokers"]["a,0"]["up"]
            found = post(f"{gateway.url}/notifications", {"a": 1})
            assert (found.status, found.headers["retry-after"]) == (503, "1")
            assert "the overlay is away" in found.json["detail"]
            assert curl(f"{gateway.url}/notifications?filter=a%3D1").status == 503
            assert curl(f"{gateway.url}/overlay/brokers/a,0").status == 503
            assert curl(f"{gateway.url}/metrics").status == 200
            with again(shell):
                wait_until(lambda: is_well(gateway))


@contextmanager
def again(shell: Shell) -> Iterator[None]:
    """Run the overlay where it was before."""
    process = shell.start("overlay", "up", "--config", "placed.toml", "--json")
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def test_gateway_says_at_once_what_is_wrong_with_its_options(shell: Shell):
    for words, said in (
        (("--overlay", "nobody"), "no overlay"),
        (("octopis://127.0.0.1:1", "--overlay", "x"), "not several"),
        (("octopis://127.0.0.1:1", "--host", "0.0.0.0"), "other machines can reach it"),  # noqa: S104
        (("octopis://127.0.0.1:1", "--limit", "body=1"), "did you mean"),
        (("octopis://127.0.0.1:1", "--limit", "body_bytes=0"), ">= 1"),
    ):
        found = shell.run("gateway", "run", *words)
        assert found.returncode in {1, 2}
        assert said in found.stderr, words
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        found = shell.run("overlay", "up", "--config", shell.config(), "--gateway-port", port)
        assert found.returncode == 1
        assert f"the gateway cannot listen at 127.0.0.1:{port}" in found.stderr
    assert shell.is_empty()
