"""One machine with many addresses, as each has under IPv6: it counts as one."""

import asyncio
import socket
from pathlib import Path

import pytest

from octopis.broker.clients.session import ClientSession
from octopis.broker.connection import Connection
from octopis.core.wire.greeting import ClientHello
from support.live import line, ready, run_live
from support.secure import Folder

SCOT = line(2)
A, B = SCOT.brokers


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


def test_half_open_connections_of_a_network_of_one_host_are_counted_together(folder: Folder):
    """Else anybody with IPv6 has all of `half_open` at once, and nobody else comes in."""
    limits = {"half_open_per_host": 8, "half_open": 64, "hello_s": 60.0}

    async def work() -> None:
        async with ready(folder.overlay(SCOT, limits=limits)) as live:
            doors = live[A].listening.listeners[0]
            pairs = [socket.socketpair() for _ in range(40)]
            for number, (there, _) in enumerate(pairs):
                there.setblocking(False)
                doors.come(there, f"2001:db8::{number + 1:x}")
                await asyncio.sleep(0)
            assert (doors.half_open, doors.refused) == (8, 32)
            elsewhere, other = socket.socketpair()
            elsewhere.setblocking(False)
            doors.come(elsewhere, "2001:db8:0:1::1")
            await asyncio.sleep(0)
            assert doors.half_open == 9
            for _, here in pairs:
                here.close()
            other.close()

    run_live(work())


def test_clients_of_a_network_of_one_host_are_counted_together(folder: Folder):
    class Elsewhere(Connection):
        address = "2001:db8::7%eth0:4711"

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            broker = live[A]
            connection = Elsewhere(broker._reception, broker.overlay.limits, broker.warnings)
            session = ClientSession(broker, ClientHello("app", 1), connection)
            assert session.host == "2001:db8::/64"

    run_live(work())
