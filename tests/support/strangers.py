"""Whoever comes to a broker with security by TLS, and then says what the test chooses."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from octopis.client.address import Address
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.core.wire.login import Token
from octopis.security.certificates import Issued
from support.live import RawPeer
from support.secure import Folder


def now() -> datetime:
    return datetime.now(UTC)


def dials(folder: Folder, issued: Issued | None = None) -> ssl.SSLContext:
    """Return how somebody dials who shows a certificate, or none, and trusts anybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if issued is not None:
        certificate, key = folder.path / "rogue.pem", folder.path / "rogue.key"
        issued.write(certificate, key)
        context.load_cert_chain(certificate, key)
    return context


def listens(folder: Folder, issued: Issued) -> ssl.SSLContext:
    """Return how somebody listens who poses as a broker."""
    certificate, key = folder.path / "false.pem", folder.path / "false.key"
    issued.write(certificate, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@asynccontextmanager
async def stranger(
    address: Address, context: ssl.SSLContext | None, source: str | None = None
) -> AsyncIterator[RawPeer]:
    """Connect, from another address of this machine if one is given."""
    place = None if source is None else (source, 0)
    reader, writer = await asyncio.open_connection(*address, ssl=context, local_addr=place)
    try:
        yield RawPeer(reader, writer)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def logged_in(
    folder: Folder, address: Address, token: str | None = None, **hello: Any
) -> AsyncIterator[RawPeer]:
    """Come in as a client that has a token, to say whatever the test chooses afterwards."""
    login = Token(token or folder.token())
    async with stranger(address, dials(folder)) as peer:
        await peer.send(encode_hello(ClientHello("raw", 100, login=login, **hello)))
        answer = decode_answer((await peer.next_frames())[0])
        assert isinstance(answer, Welcome), answer
        yield peer


def client_hello_of_tls() -> bytes:
    """Return the first bytes that a client says in TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def connected(address: Address, source: str) -> socket.socket:
    """Return a socket that begins to connect from an address of this machine."""
    found = socket.socket()
    found.setblocking(False)
    found.bind((source, 0))
    with suppress(BlockingIOError):
        found.connect(tuple(address))
    return found
