"""Crowds that never come in: half-open handshakes, and slow ones, while others work on.

What others notice is measured in the same run, just before and while the attack goes on, by many
short rounds whose medians are compared. A busy machine makes both slow, and a single round of
either as slow as it likes: so besides "at most doubled", a difference that nobody would notice is
allowed (`FLOOR_S`). `octopis bench attack --attack handshakes --attack half-open` measures the same
where brokers, crowd and others are processes of their own; docs/results.md has the figures.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from statistics import median, quantiles

import pytest

from octopis.broker.security.listener import Listener
from octopis.client.client import Client
from octopis.client.credentials import Credentials
from octopis.client.streams import Received
from support.live import Brokers, line, ready, run_live, until
from support.secure import Folder, client_as
from support.strangers import client_hello_of_tls, connected

SCOT = line(2)
A, B = SCOT.brokers
WAVE, WAVES = 500, 20
"""10,000 in all; so many at once, as one process has so many files."""

SLOW = 2_000
FLOOR_S = 0.05
"""A p99 may rise by so much whatever it was: 2,000 sockets more on two cores that tests share."""

ROUND, ROUNDS = 100, 5


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "security", SCOT)


def close(crowd: list[socket.socket]) -> None:
    for each in crowd:
        each.close()


async def login_s(live: Brokers, credentials: Credentials) -> float:
    """Return how long a login takes, from another address than that of the crowd."""
    began = time.perf_counter()
    async with client_as(live[A], credentials):
        return time.perf_counter() - began


def test_10000_half_open_handshakes(folder: Folder):
    """They are sent away as soon as they are too many, work is bounded, and others log in."""
    limits = {"half_open_per_host": 64, "half_open": 512, "hello_s": 60.0}
    beginning = client_hello_of_tls()[:100]

    async def work() -> None:
        async with ready(folder.overlay(SCOT, limits=limits)) as live:
            doors: Listener = live[A].listening.listeners[0]
            await login_s(live, folder.by_token())  # what is loaded at the first
            async with client_as(live[A], folder.by_certificate()) as worker:
                stays: list[socket.socket] = []
                logins, tasks, away = [], [], 0
                for wave in range(WAVES):
                    # From few addresses: each may have 64, and a neighbour's has its own count.
                    crowd = [connected(live[A].address, f"127.0.1.{wave % 4}") for _ in range(WAVE)]
                    away += WAVE if wave >= 4 else WAVE - 64
                    await until(lambda most=away: doors.refused == most)
                    for each in crowd:
                        with suppress(OSError):  # sent away already
                            each.send(beginning)
                    logins.append(await login_s(live, folder.by_token()))
                    await worker.publish({"x": 1})
                    assert doors.half_open <= 4 * 64 + 2
                    tasks.append(len(doors._tasks))
                    stays += crowd[:64]
                    close(crowd[64:])
                assert max(tasks) <= 4 * 64 + 3  # no task of theirs is left behind
                assert live[A].links[B].is_up
                assert median(logins) < 2.0
                close(stays)
                await until(lambda: doors.half_open == 0)

    run_live(work())


async def p99_s(client: Client, stream: AsyncIterator[Received]) -> float:
    """Return the median over some rounds of how long a notification takes there and back."""
    found = []
    for _ in range(ROUNDS):
        times = []
        for number in range(ROUND):
            began = time.perf_counter()
            await client.publish({"x": number})
            await anext(stream)
            times.append(time.perf_counter() - began)
        found.append(quantiles(times, n=100)[98])
    return median(found)


async def speak_slowly(crowd: list[socket.socket], second_s: float) -> None:
    """Send one byte of a TLS handshake a second on each socket, spread over the second."""
    loop = asyncio.get_running_loop()
    hello = client_hello_of_tls()
    began = loop.time()
    for place in range(len(hello)):
        for number, each in enumerate(crowd):
            with suppress(OSError):
                each.send(hello[place : place + 1])
            if number % 50 == 49:
                due = began + second_s * (place + (number + 1) / len(crowd))
                await asyncio.sleep(max(0.0, due - loop.time()))


def test_slow_one_byte_a_second_handshakes_of_2000_sockets(folder: Folder):
    """All are half open at once, as this broker is set to allow them; others go on as before."""
    limits = {"half_open_per_host": SLOW, "half_open": 2 * SLOW, "hello_s": 15.0}

    async def work() -> None:
        async with ready(folder.overlay(SCOT, limits=limits)) as live:
            doors = live[A].listening.listeners[0]
            async with (
                client_as(live[A], folder.by_certificate()) as client,
                client.subscribe("x >= 0") as stream,
            ):
                await p99_s(client, stream)
                before = await p99_s(client, stream)
                crowd: list[socket.socket] = []
                for most in range(WAVE, SLOW + 1, WAVE):
                    crowd += [connected(live[A].address, "127.0.1.1") for _ in range(WAVE)]
                    await until(lambda most=most: doors.half_open == most)
                speaking = asyncio.create_task(speak_slowly(crowd, 1.0))
                while_it_lasts = await p99_s(client, stream)
                assert doors.half_open == SLOW  # it was measured while they were there
                assert await login_s(live, folder.by_token()) < 5.0
                assert while_it_lasts <= max(2 * before, before + FLOOR_S), (before, while_it_lasts)
                speaking.cancel()
                # In time, each of them is sent away: a second for a byte does not make it longer.
                await until(lambda: doors.half_open == 0, 25.0)
                close(crowd)

    run_live(work(), limit_s=90.0)


def test_slow_handshakes_hold_no_more_than_their_share_as_brokers_are_by_default(folder: Folder):
    """One address has 64 of them, and the 1,936 others are closed at once, unread."""

    async def work() -> None:
        async with ready(folder.overlay(SCOT)) as live:
            doors = live[A].listening.listeners[0]
            crowd: list[socket.socket] = []
            for most in range(WAVE, SLOW + 1, WAVE):
                crowd += [connected(live[A].address, "127.0.1.1") for _ in range(WAVE)]
                await until(lambda most=most: doors.refused == most - 64)
            assert doors.half_open == 64
            async with client_as(live[A], folder.by_password()) as client:
                await client.publish({"x": 1})
            close(crowd)

    run_live(work())


async def knock(address: str, host: str) -> bool:
    """Shake hands in full and go; tell whether there was a handshake."""
    loop = asyncio.get_running_loop()
    sock = connected(address, host)
    sock.setblocking(False)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    try:
        transport, _ = await loop.create_connection(
            asyncio.Protocol, sock=sock, ssl=tls, server_hostname="x"
        )
    except OSError:
        return False
    transport.close()
    return True


def test_full_handshakes_that_come_to_no_login(folder: Folder):
    """Each costs the broker's CPU and is never half open for long: there is a rate for them."""
    limits = {"half_open_per_host": 10, "strangers_per_s": 5.0}

    async def work() -> None:
        async with ready(folder.overlay(SCOT, limits=limits)) as live:
            doors = live[A].listening.listeners[0]
            began = time.perf_counter()
            let = sum([await knock(live[A].address, "127.0.1.1") for _ in range(100)])
            took_s = time.perf_counter() - began
            assert 20 <= let <= 20 + 5 * took_s + 1
            assert doors.refused == 100 - let
            await login_s(live, folder.by_token())  # from another address
            for _ in range(40):  # whoever is let in has nothing to fear of this
                await login_s(live, folder.by_certificate())
            await asyncio.sleep(0.5)
            assert await knock(live[A].address, "127.0.1.1")

    run_live(work())
