"""Crowds at the door of an overlay with security, who never come in, and that overlay's folder.

They come from addresses of their own on the loopback network, as limits are by address.
"""

import asyncio
import resource
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from octopis.benchmarks.attack.raw import Met
from octopis.client.address import parse_addresses
from octopis.core.model import BrokerId

OPEN_LIMITS = "half_open = 4_000\nhalf_open_per_host = 2_500\nhello_s = 600.0\n"
"""With these all slow handshakes stay: by default, most of them would be closed at once."""

WAVE = 500
WAVE_S = 0.5
_ADDRESSES = 4
_BYTE_S = 1.0
_CONNECT_S = 30.0
_USER = "witness"
_ACCESS = """
[roles.everything]
publish = "TRUE"
subscribe = "TRUE"
status = true
[users.witness]
roles = ["everything"]
"""


def need_security() -> None:
    """Raise ModuleNotFoundError where what makes a security folder is not installed."""
    from octopis.security import making  # noqa: F401, PLC0415 - an extra


def secured(path: Path, brokers: Iterable[BrokerId]) -> Path:
    """Make the security folder of an overlay; return the credentials of its unrelated clients."""
    from octopis.security import certificates, making  # noqa: PLC0415 - an extra

    now = datetime.now(UTC)
    made = making.make_folder(path, "bench", dict.fromkeys(brokers, ()), days=2, now=now)
    authority = certificates.read_authority(made.ca, made.ca_key)
    making.add_client(made, authority, _USER, 2, now)
    made.access.write_text(_ACCESS, encoding="utf-8")
    return made.credentials(_USER)


async def slow_handshakes(url: str, size: int, met: Met) -> None:
    """Connect so often, and send a byte of a TLS handshake a second on each, without end."""
    hello = _client_hello()
    crowd: list[socket.socket] = []
    while len(crowd) < size:
        crowd += await _connected(url, 1, min(WAVE, size - len(crowd)), met)
    met.accepted = len(crowd)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for turn in count():
        place = turn % (len(hello) - 1)  # the last byte is never sent
        for number, each in enumerate(crowd):
            if number % 50 == 0:
                due = begin + _BYTE_S * (turn + number / len(crowd))
                await asyncio.sleep(max(0.0, due - loop.time()))
            if _has_gone(each, hello[place : place + 1]) and each.fileno() >= 0:
                each.close()
                met.accepted -= 1
                met.ended("")


async def waves_of_half_open(url: str, size: int, met: Met) -> None:
    """Connect in waves, each from another of some addresses, begin to shake hands, and stay."""
    beginning = _client_hello()[:100]
    stays: list[socket.socket] = []
    for wave in count():
        crowd = await _connected(url, 1 + wave % _ADDRESSES, size, met)
        for each in crowd:
            with suppress(OSError):  # sent away already
                each.send(beginning)
        await asyncio.sleep(WAVE_S)
        for each in [*stays, *crowd]:
            if _has_gone(each):
                each.close()
                met.ended("")
        stays = [each for each in [*stays, *crowd] if each.fileno() >= 0]
        met.accepted = len(stays)


def may_open_many() -> None:
    """Let this process have as many sockets as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def _connected(url: str, place: int, size: int, met: Met) -> list[socket.socket]:
    """Connect so many sockets at once, from an address of this machine."""
    (address,) = parse_addresses(url)
    loop = asyncio.get_running_loop()
    crowd = []
    for _ in range(size):
        each = socket.socket()
        each.setblocking(False)
        each.bind((f"127.0.1.{place}", 0))
        crowd.append(each)
    met.asked += size
    async with asyncio.timeout(_CONNECT_S):
        await asyncio.gather(
            *(loop.sock_connect(each, tuple(address)) for each in crowd), return_exceptions=True
        )
    return crowd


def _has_gone(each: socket.socket, data: bytes = b"") -> bool:
    """Send bytes; tell whether the other side has closed the connection."""
    try:
        if data:
            each.send(data)
        return not each.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _client_hello() -> bytes:
    """Return the first bytes that a client says in TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()
