"""Targets that are a whole broker: what it makes of the bytes of a connection, from the first on.

The broker is a real one, with an event loop and without sockets: a transport in memory stands for
one. What goes wrong in a callback comes out, and when the connection has gone, nothing of it may be
left behind.

An input is one byte that says how the rest is cut into reads, then the stream.
"""

import asyncio
import itertools
import logging
import secrets
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from octopis.benchmarks.fuzz import seeds
from octopis.benchmarks.fuzz.laws import Check, hold
from octopis.broker.broker import LiveBroker
from octopis.broker.connection import Connection
from octopis.broker.handshake import Dialler, Reception, broker_hello
from octopis.broker.settings import Limits, OverlayConfiguration, SecurityOptions
from octopis.client.address import Address
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from octopis.core.wire.greeting import ClientHello, encode_hello
from octopis.core.wire.login import ITERATIONS_MIN, Scram, Token

_TURNS = 6
"""Turns of the event loop after an input: requests wait for their turn."""

_READS = (1 << 20, 1, 3, 64)
_ADDRESSES = 1 << 24
SCOT_OF_TWO = SCOT(AcyclicFactor(["a", "b"], [("a", "b")]), ConnectivityFactor.complete(1))
DIALLER, LISTENER = SCOT_OF_TWO.brokers
NOBODY: dict[str, Any] = {}


class MemoryTransport(asyncio.Transport):
    """Stands for a socket: keeps how much is written, and says who is at the other end."""

    def __init__(self, address: str, certificate: dict[str, Any], sock: socket.socket) -> None:
        super().__init__()
        self._facts = {"peername": (address, 5), "peercert": certificate, "socket": sock}
        self._facts["sslcontext"] = bool(certificate)
        self.written = bytearray()
        self.is_closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a fact about the connection."""
        return self._facts.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is always room."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep what is said."""
        self.written += data

    def is_closing(self) -> bool:
        """Tell whether either end has closed it."""
        return self.is_closed

    def close(self) -> None:
        """Note that the broker has had enough."""
        self.is_closed = True

    def abort(self) -> None:
        """Note the same."""
        self.is_closed = True

    def pause_reading(self) -> None:
        """What comes is read all the same: the other end does as it likes."""

    def resume_reading(self) -> None:
        """The same."""


class Stage:
    """A broker in an event loop of its own, which runs only while an input is dealt with."""

    def __init__(self, overlay: OverlayConfiguration) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(self._failed)
        self._faults: list[BaseException | str] = []
        self._hosts = itertools.count()
        self._socket = socket.socket()
        self.broker: LiveBroker = self.run(self._begin(overlay))
        self.reception: Reception = self.broker._reception  # noqa: SLF001 - the door itself

    async def _begin(self, overlay: OverlayConfiguration) -> LiveBroker:
        broker = LiveBroker(LISTENER, overlay)
        broker.intake.open()
        return broker

    def run(self, work: Any) -> Any:
        """Run a coroutine, and raise what has failed in the loop meanwhile."""
        found = self.loop.run_until_complete(work)
        if self._faults:
            fault = self._faults.pop()
            self._faults.clear()
            if isinstance(fault, BaseException):
                raise fault
            raise RuntimeError(fault)
        return found

    def _failed(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._faults.append(context.get("exception") or str(context["message"]))

    def transport(self, certificate: dict[str, Any]) -> MemoryTransport:
        """Return the other end of a connection from an address that nobody else has."""
        number = next(self._hosts) % _ADDRESSES
        host = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        return MemoryTransport(host, certificate, self._socket)

    async def hear(
        self, make: Callable[[], Connection], data: bytes, certificate: dict[str, Any] = NOBODY
    ) -> MemoryTransport:
        """Let a connection read a stream, and end; nothing of it may be left."""
        transport = self.transport(certificate)
        connection = make()
        connection.connection_made(transport)
        step = _READS[data[0] % len(_READS)] if data else 1
        stream = data[1:]
        for at in range(0, len(stream), step):
            connection.data_received(stream[at : at + step])
            if transport.is_closed:
                break
            if at < _TURNS:
                await asyncio.sleep(0)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        await self.end(connection)
        return transport

    async def end(self, connection: Connection) -> None:
        """Let the other end go, and look that the broker forgets it."""
        connection.connection_lost(None)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        hold(connection not in self.reception.connections, "a connection that is gone is kept")
        hold(not self.broker.clients, "a client that is gone is kept")
        hold(not self.broker.memory.bytes, "what was held for it counts on")

    def close(self) -> None:
        """Close the loop, and all that it has open."""
        if self.broker.guard is not None:
            self.broker.guard.close()
        self.loop.close()
        self._socket.close()


@contextmanager
def staged(folder: str = "") -> Iterator[Stage]:
    """Run a broker with short times and small bounds, as inputs are short too."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    limits = Limits(session_s=0, subscriptions_per_client=50, terms_per_client=500)
    stage = Stage(
        OverlayConfiguration(
            scot=SCOT_OF_TWO, limits=limits, security=SecurityOptions(folder=folder)
        )
    )
    try:
        yield stage
    finally:
        stage.close()
        logging.disable(before)


# Without security


@contextmanager
def reception() -> Iterator[Check]:
    """Whoever connects, and goes on as a client or as a neighbour."""
    with staged() as stage:

        def check(data: bytes) -> None:
            stage.run(_met(stage, data))

        yield check


async def _met(stage: Stage, data: bytes) -> None:
    await stage.hear(stage.reception.make_connection, data)
    hold(not any(link.is_up for link in stage.broker.links.values()), "a link stays up")


@contextmanager
def answered() -> Iterator[Check]:
    """A neighbour that we have dialled, or whoever is there instead."""
    with staged() as stage:
        (link,) = stage.broker.links.values()

        def make() -> Connection:
            dialler = Dialler(stage.broker, link, Address("127.0.0.1", 1))
            hello = encode_hello(broker_hello(stage.broker.overlay, LISTENER, DIALLER))
            limits = stage.broker.overlay.limits
            return Connection(dialler, limits, stage.broker.warnings, greets=hello)

        def check(data: bytes) -> None:
            stage.run(stage.hear(make, data))

        yield check


def connection_seeds() -> list[bytes]:
    """Return what a client and a neighbour say, with what they may say at first."""
    client, broker = encode_hello(ClientHello("me", 100)), _neighbour()
    asked, linked = seeds.from_clients() + seeds.controls(), seeds.links() + seeds.targeted()
    found = [b"\0" + each for each in seeds.greetings()]
    found += [b"\0" + client + each for each in asked]
    found += [b"\0" + broker + each for each in linked + seeds.controls()]
    return [*found, b"\1" + client + asked[0], b"\3" + client + b"".join(asked), b"\0" + broker]


def _neighbour() -> bytes:
    return encode_hello(broker_hello(OverlayConfiguration(scot=SCOT_OF_TWO), DIALLER, LISTENER))


# With security


@contextmanager
def secure_folder() -> Iterator[Path]:
    """Yield a security folder for the overlay, with alice, who has a password."""
    from octopis.benchmarks.fuzz.logins import ACCESS, WORD  # noqa: PLC0415 - its libraries are extra
    from octopis.security.making import make_folder  # noqa: PLC0415 - the same
    from octopis.security.passwords import make_password  # noqa: PLC0415 - the same

    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "secure"
        hosts = {broker: ["127.0.0.1"] for broker in SCOT_OF_TWO.brokers}
        made = make_folder(folder, "fuzz", hosts, days=2, now=datetime.now(UTC))
        made.access.write_text(ACCESS.format(make_password(WORD, ITERATIONS_MIN)))
        yield folder


def certificate_of(kind: int) -> dict[str, Any]:
    """Return what TLS may have verified of the other end: a user's, a broker's, another's, none."""
    uris = (
        (),
        ("urn:octopis:client:alice",),
        ("urn:octopis:broker:a,0",),
        ("urn:octopis:client:mallory",),
        ("urn:octopis:broker:a,0", "urn:octopis:broker:b,0"),
        ("urn:octopis:client:alice/x",),
        ("urn:OCTOPIS:broker:a,0",),
    )[kind % 7]
    if not uris:
        return {}
    return {
        "subjectAltName": tuple(("URI", uri) for uri in uris),
        "notAfter": "Jan  1 00:00:00 2100 GMT",
        "serialNumber": "0A1B",
    }


@contextmanager
def clients_door() -> Iterator[Check]:
    """Whoever has come through TLS at the clients' door: nobody gets in without a login."""
    from octopis.broker.security.greeting import ClientGreeting  # noqa: PLC0415 - as above

    with secure_folder() as folder, staged(str(folder)) as stage:
        broker, guard = stage.broker, stage.broker.guard
        assert guard is not None, "a broker with security has a guard"

        def make() -> Connection:
            greeting = ClientGreeting(broker, guard, stage.reception)
            return Connection(greeting, broker.overlay.limits, broker.warnings)

        def check(data: bytes) -> None:
            certificate = certificate_of(data[0]) if data else {}
            transport = stage.run(stage.hear(make, data[1:], certificate))
            is_alice = data[:1] and data[0] % 7 == 1
            hold(bool(is_alice) or not _welcomed(transport.written), "a stranger was let in")

        yield check


@contextmanager
def links_door() -> Iterator[Check]:
    """The same at the neighbours' door: only the neighbour itself gets in."""
    from octopis.broker.security.greeting import LinkGreeting  # noqa: PLC0415 - as above

    with secure_folder() as folder, staged(str(folder)) as stage:
        broker, guard = stage.broker, stage.broker.guard
        assert guard is not None, "a broker with security has a guard"

        def make() -> Connection:
            greeting = LinkGreeting(broker, guard, stage.reception)
            return Connection(greeting, broker.overlay.limits, broker.warnings)

        def check(data: bytes) -> None:
            certificate = certificate_of(data[0]) if data else {}
            transport = stage.run(stage.hear(make, data[1:], certificate))
            is_neighbour = data[:1] and data[0] % 7 == 2
            hold(bool(is_neighbour) or not _greeted(transport.written), "a stranger is a neighbour")

        yield check


def _welcomed(written: bytes) -> bool:
    return written[4:5] == b"\x02"


def _greeted(written: bytes) -> bool:
    return written[4:5] == b"\x01"


def door_seeds() -> list[bytes]:
    """Return the same connections, behind each kind of certificate."""
    found = connection_seeds()
    secret = secrets.token_hex(8)  # in no corpus twice: it is nobody's
    logins = [Token("a.b.c"), Scram("SCRAM-SHA-256", seeds.CLIENT_FIRST), None]
    hellos = [encode_hello(ClientHello("me", 9, secret=secret, login=each)) for each in logins]
    found += [b"\0" + each for each in hellos]
    return [bytes([kind]) + each for kind in range(3) for each in found]
