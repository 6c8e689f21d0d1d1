"""The overlay's policy for slow clients, as readers of a gateway feel it."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from octopis import connect_sync
from support.bad_clients import limited
from support.gateway import Gateway, events
from support.overlay_command import SMALL, Shell, Up, wait_until

COUNT = 60_000
TEXT = "x" * 100
"""13 MB of events in all: more than what the system holds for a connection."""

OVERLAY = f"""{SMALL}
[client_queues]
high_water = 500
policy = """


@contextmanager
def slow_reader(path: Path, policy: str) -> Iterator[tuple[Gateway, Up, socket.socket]]:
    """Run an overlay with a policy, and a reader of its gateway that takes nothing yet."""
    shell = Shell(path)
    with shell.up("--config", shell.config(f'{OVERLAY}"{policy}"\n')) as up:
        with limited((shell, up), reader_notifications="500", stall_s="60") as gateway:
            host, port = gateway.address.split(":")
            with socket.socket() as slow:
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
                slow.settimeout(20)
                slow.connect((host, int(port)))
                query = f"/notifications?filter={quote('slow = 1')}"
                slow.sendall(f"GET {query} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                found = b""
                while b"subscribed" not in found:
                    found += slow.recv(4096)
                gateway.settled()
                yield gateway, up, slow
        assert up.stop() == (0, "")
    shell.end()


def publish_all(up: Up) -> None:
    with connect_sync(up.url("a,0")) as client:
        client.publish_many([{"slow": 1, "n": n, "text": TEXT} for n in range(COUNT)])
        client.publish({"slow": 1, "last": 1})


def numbers(found: bytes | bytearray) -> list[int]:
    return [int(each) for each in re.findall(rb'"n":(\d+)', found)]


def test_slow_reader_is_disconnected_and_told_why_where_that_is_the_policy(tmp_path: Path):
    with slow_reader(tmp_path, "disconnect") as (gateway, up, slow):
        with events(f"{gateway.url}/notifications", filter="slow = 1 AND last = 1") as quick:
            gateway.settled()
            publish_all(up)
            assert quick.next().data["attributes"]["last"] == 1
        found = bytearray()
        while b"event: end" not in found[-200:]:
            piece = slow.recv(2**20)
            assert piece
            found += piece
        told = found[found.index(b"event: end") :].split(b"data: ")[1].split(b"\n")[0]
        assert "too slow" in json.loads(told)["reason"]
        got = numbers(found)
        assert got == [*range(len(got))], "what it got has no holes"
        assert len(got) < COUNT


class Endless:
    """Publishes until it is told to stop."""

    def __init__(self, up: Up) -> None:
        self.published = 0
        self.stops = threading.Event()
        self._up = up
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def has_to_wait(self) -> bool:
        """Tell whether it has come no further for a second."""
        before = self.published
        return not self.stops.wait(1.0) and before == self.published > 0

    def join(self) -> None:
        """Wait until all is published."""
        self._thread.join(30.0)
        assert not self._thread.is_alive()

    def _publish(self) -> None:
        with connect_sync(self._up.url("a,0")) as client:
            while not self.stops.is_set():
                numbers = range(self.published, self.published + 2_000)
                client.publish_many([{"slow": 1, "n": n} for n in numbers])
                self.published += 2_000
            client.publish({"slow": 1, "last": 1})


def test_publishers_wait_for_a_slow_reader_where_that_is_the_policy(tmp_path: Path):
    with slow_reader(tmp_path, "pause") as (_, up, slow):
        endless = Endless(up)
        wait_until(endless.has_to_wait)
        endless.stops.set()
        found = bytearray()
        while b'"last":1' not in found[-500:]:
            piece = slow.recv(2**20)
            assert piece
            found += piece
        endless.join()
        assert b"event: gap" not in found
        assert numbers(found) == [*range(endless.published)]
