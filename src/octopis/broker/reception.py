"""Whoever connects to a broker first comes here: a neighbour, a client, or neither."""

from typing import Protocol

from octopis.broker.connection import Connection
from octopis.broker.link import LinkHome, NeighbourLink
from octopis.broker.session import ClientSession, SessionHome
from octopis.core.model import BrokerId
from octopis.core.wire.frames import Frame
from octopis.core.wire.greeting import (
    BrokerHello,
    ClientHello,
    Welcome,
    decode_hello,
    encode_hello,
    encode_welcome,
)
from octopis.core.wire.link import overlay_digest
from octopis.errors import ConnectionFailed, OctopisError


class Host(LinkHome, SessionHome, Protocol):
    """The broker that people come to."""

    links: dict[BrokerId, NeighbourLink]

    def client_arrived(self, session: ClientSession) -> None:
        """A client has come."""


class Reception:
    """The Peer of every connection that has not said yet who it is."""

    name = "a stranger"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._digest = overlay_digest(host.overlay.scot)
        self.connections: set[Connection] = set()

    def make_connection(self) -> Connection:
        """Return a connection that waits for a hello."""
        connection = Connection(self, self._host.overlay.limits, self._host.warnings)
        self.connections.add(connection)
        return connection

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:
        """Hear who is there, and hand the connection on."""
        hello = decode_hello(frames[0])
        self.connections.discard(connection)
        if isinstance(hello, ClientHello):
            self._take_client(connection, hello)
        else:
            refusal = self._refusal(hello)
            if refusal is not None:
                connection.fail(refusal)
                return
            self._take_neighbour(connection, hello)
        if len(frames) > 1:
            connection.peer.frames_arrived(connection, frames[1:])

    def may_write(self, connection: Connection) -> None:
        """Nothing waits for a stranger."""

    def connection_lost(self, connection: Connection, reason: str) -> None:  # noqa: ARG002
        """A stranger has gone."""
        self.connections.discard(connection)

    def _take_client(self, connection: Connection, hello: ClientHello) -> None:
        limits = self._host.overlay.limits
        welcome = Welcome(self._host.id, limits.frame_max, limits.publish_window)
        connection.write(encode_welcome(welcome))
        session = ClientSession(self._host, hello, connection)
        connection.greeted(session)
        self._host.client_arrived(session)

    def _take_neighbour(self, connection: Connection, hello: BrokerHello) -> None:
        algorithm = self._host.overlay.algorithm.value
        answer = BrokerHello(self._host.id, hello.broker, self._digest, algorithm)
        connection.write(encode_hello(answer))
        self._host.links[hello.broker].up(connection)

    def _refusal(self, hello: BrokerHello) -> OctopisError | None:
        """Return why a broker is not taken in, if it is not."""
        here, there = self._host.id, hello.broker
        link = self._host.links.get(there)
        if hello.overlay != self._digest:
            reason = f"{there} belongs to another overlay than {here}: compare their topologies"
        elif hello.to != here:
            reason = f"{there} looks for {hello.to}, but this is {here}: compare their addresses"
        elif link is None:
            reason = f"{there} is no neighbour of {here}"
        elif hello.algorithm != self._host.overlay.algorithm.value:
            ours = self._host.overlay.algorithm.value
            reason = f"{there} routes by {hello.algorithm}, {here} by {ours}"
        elif not dials(self._host, there, here):
            reason = f"of {here} and {there}, it is {here} that dials"
        elif link.is_up:
            reason = f"the link between {there} and {here} is up already"
        else:
            return None
        return ConnectionFailed(reason)


def dials(home: LinkHome, one: BrokerId, other: BrokerId) -> bool:
    """Say whether `one` dials `other`: it does where it comes first in the overlay."""
    order = home.overlay.scot.brokers
    return order.index(one) < order.index(other)
