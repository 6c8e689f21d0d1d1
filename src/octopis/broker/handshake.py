"""How two ends of a connection find out who the other is: a neighbour, a client, or neither.

Whoever connects to a broker says hello, and is taken in or refused. Of two neighbours, the first in
the overlay dials the other, again and again.
"""

import asyncio
import logging
from functools import partial
from ssl import SSLError
from typing import TYPE_CHECKING, Any

from octopis.broker.clients.session import ClientSession
from octopis.broker.connection import Connection
from octopis.broker.links.link import NeighbourLink
from octopis.broker.settings import OverlayConfiguration
from octopis.client.address import Address, Backoff
from octopis.core.model import BrokerId
from octopis.core.topology import SCOT
from octopis.core.wire.control import Refusal
from octopis.core.wire.frames import Frame, FrameKind
from octopis.core.wire.greeting import (
    BrokerHello,
    ClientHello,
    Welcome,
    decode_answer,
    decode_hello,
    encode_hello,
    encode_welcome,
)
from octopis.core.wire.link import overlay_digest
from octopis.errors import ConnectionFailed, LoginFailed, OctopisError, ProtocolError
from octopis.security.identity import Identity

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

_GIVEN_UP = (FrameKind.REFUSED, FrameKind.GOODBYE)
_SHUTDOWN_S = 1.0
_PROVE_S = 1.0
"""A link at whose place somebody else stands has so long to give a sign of life."""

_log = logging.getLogger(__name__)


class Reception:
    """The Peer of every connection that has not said yet who it is."""

    name = "a stranger"

    def __init__(self, broker: "LiveBroker") -> None:
        self._broker = broker
        self._hello = broker_hello(broker.overlay, broker.id, broker.id)
        self.connections: set[Connection] = set()

    def make_connection(self) -> Connection:
        """Return a connection that waits for a hello."""
        connection = Connection(self, self._broker.overlay.limits, self._broker.warnings)
        self.connections.add(connection)
        return connection

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:
        """Hear who is there, and hand the connection on."""
        hello = decode_hello(frames[0])
        if isinstance(hello, BrokerHello):
            try:
                self.take_broker(connection, hello, frames[1:])
            except ConnectionFailed as failure:
                self.refuse_broker(connection, failure)
            return
        self.take_client(connection, hello)
        if len(frames) > 1 and not connection.is_closing:
            connection.peer.frames_arrived(connection, frames[1:])

    def may_write(self, connection: Connection) -> None:
        """Nothing waits for a stranger."""

    def connection_lost(self, connection: Connection, reason: str) -> None:  # noqa: ARG002
        """A stranger has gone."""
        self.connections.discard(connection)

    def take_broker(self, connection: Connection, hello: BrokerHello, more: list[Frame]) -> None:
        """Take a neighbour in, and what it has said after its hello.

        Raises ConnectionFailed where it is none. That its link is up already comes out later.
        """
        if any(frame.kind in _GIVEN_UP for frame in more):
            connection.abort("the neighbour has given up meanwhile")
            return
        refusal = self.refusal(hello)
        if refusal is not None:
            raise refusal
        self._take_neighbour(connection, hello)
        if more and not connection.is_closing:
            connection.peer.frames_arrived(connection, more)

    def take_client(
        self,
        connection: Connection,
        hello: ClientHello,
        identity: Identity | None = None,
        verifier: bytes = b"",
    ) -> None:
        """Take a client in, with who it is where it has logged in; or refuse it."""
        limits = self._broker.overlay.limits
        session = ClientSession(self._broker, hello, connection, identity)
        intake = self._broker.intake
        refusal = intake.refusal(session)
        if refusal is not None:
            connection.fail(refusal)
            return
        older = self._broker.clients.get(session.client)  # the same client, as it is not refused
        resumed = older is not None and older.may_resume(hello, session.identity)
        if older is not None and resumed:
            intake.move(older, session.host)
            older.resume(hello, connection, session.identity)
            session = older
        self._welcome_client(connection, session, verifier, resumed=resumed)
        self.connections.discard(connection)
        connection.memory = self._broker.memory
        connection.is_resumable = bool(session.token)
        silence_s = limits.client_silence_s
        connection.greeted(session, silence_s / 4, silence_s)
        if resumed:
            session.pump()
        else:
            intake.arrive(session)

    def _welcome_client(
        self, connection: Connection, session: ClientSession, verifier: bytes, *, resumed: bool
    ) -> None:
        limits = self._broker.overlay.limits
        welcome = Welcome(
            self._broker.id,
            limits.frame_max,
            limits.publish_window,
            session.token,
            resumed,
            round(1000 * limits.session_s) if session.token else 0,
            self._broker.store_name,
            "" if session.identity is None else session.client,
            verifier,
        )
        connection.write(encode_welcome(welcome))

    def _take_neighbour(self, connection: Connection, hello: BrokerHello) -> None:
        """Let a neighbour's link be up; where it is already, find out which end is the real one.

        A neighbour whose connection has broken dials again, perhaps long before this end notices.
        But anybody may say hello in its name: so the connection that stands has the first word.
        """
        old = self._broker.links[hello.broker].connection
        if old is None:
            self._welcome_neighbour(connection, hello)
        else:
            old.prove_alive(_PROVE_S, partial(self._replace, old, connection, hello))

    def _replace(
        self, old: Connection, connection: Connection, hello: BrokerHello, is_alive: bool
    ) -> None:
        """Let a neighbour in whose old connection has given no sign of life."""
        link = self._broker.links[hello.broker]
        if connection.is_closing:
            return
        if link.connection is old and not is_alive:
            link.cut("the neighbour has dialled anew, and nothing came from the old connection")
        if link.is_up:
            here, there = self._broker.id, hello.broker
            failure = ConnectionFailed(f"the link between {there} and {here} is up already")
            self.refuse_broker(connection, failure)
        else:
            self._welcome_neighbour(connection, hello)

    def _welcome_neighbour(self, connection: Connection, hello: BrokerHello) -> None:
        self.connections.discard(connection)
        overlay = self._broker.overlay
        answer = broker_hello(overlay, self._broker.id, hello.broker)
        connection.write(encode_hello(answer))
        self._broker.links[hello.broker].up(connection)
        if self._broker.guard is not None:
            self._broker.guard.is_up(connection)

    def refuse_broker(self, connection: Connection, failure: OctopisError) -> None:
        """Close the connection of who is not taken in as a neighbour, and write it down."""
        if self._broker.guard is not None:
            reason = str(failure)
            self._broker.guard.write("link_refused", address=connection.address, reason=reason)
        connection.fail(failure)

    def refusal(self, hello: BrokerHello) -> ConnectionFailed | None:
        """Return why a broker is not taken in, if it is not."""
        here, there = self._broker.id, hello.broker
        reason = mismatch(self._hello, hello)
        if not reason and there not in self._broker.links:
            reason = f"{there} is no neighbour of {here}"
        if not reason and not dials(self._broker.overlay.scot, there, here):
            reason = f"of {here} and {there}, it is {here} that dials"
        return ConnectionFailed(reason) if reason else None


def mismatch(ours: BrokerHello, hello: BrokerHello) -> str:
    """Return why there can be no link with whoever says this hello; empty where there can.

    Both ends look: whoever dials has no reason to believe what answers.
    """
    here, there = ours.broker, hello.broker
    if hello.overlay != ours.overlay:
        return f"{there} belongs to another overlay than {here}: compare their topologies"
    if hello.to != here:
        return f"{there} looks for {hello.to}, but this is {here}: compare their addresses"
    if hello.algorithm != ours.algorithm:
        return f"{there} routes by {hello.algorithm}, {here} by {ours.algorithm}"
    if hello.level != ours.level:
        return f"{there} delivers at level {hello.level!r}, {here} at {ours.level!r}"
    return ""


def level_of(overlay: OverlayConfiguration) -> str:
    """Return how notifications are delivered, as brokers compare it."""
    return overlay.level if overlay.has_channels else ""


def broker_hello(overlay: OverlayConfiguration, broker: BrokerId, to: BrokerId) -> BrokerHello:
    """Return what a broker says to a neighbour."""
    digest, algorithm = overlay_digest(overlay.scot), overlay.routing.algorithm.value
    return BrokerHello(broker, to, digest, algorithm, level_of(overlay))


def dials(scot: SCOT, one: BrokerId, other: BrokerId) -> bool:
    """Say whether `one` dials `other`: it does where it comes first in the overlay."""
    order = scot.brokers
    return order.index(one) < order.index(other)


class Dialler:
    """Keeps one link connected, and is the connection's Peer while the greeting lasts."""

    def __init__(self, broker: "LiveBroker", link: NeighbourLink, address: Address) -> None:
        self.name = str(link.neighbour)
        overlay = broker.overlay
        self._broker = broker
        self._guard = broker.guard
        self._link = link
        self._address = address
        self._backoff = Backoff(most_s=overlay.limits.redial_s_max)
        self._hello = broker_hello(overlay, broker.id, link.neighbour)

    async def run(self) -> None:
        """Dial, wait until the connection is gone, and dial again, until cancelled."""
        loop = asyncio.get_running_loop()
        limits = self._broker.overlay.limits
        greets = encode_hello(self._hello)
        failed = False
        while True:
            try:
                async with asyncio.timeout(limits.hello_s):
                    _, connection = await loop.create_connection(
                        lambda: Connection(
                            self,
                            limits,
                            self._broker.warnings,
                            greets=greets,
                            check=None if self._guard is None else self._check,
                        ),
                        *self._address,
                        **self._tls(),
                    )
            except SSLError as failure:
                self._say_not_trusted(failure)
            except (OSError, TimeoutError) as failure:
                if not failed:  # once, not at every try
                    _log.info(
                        "%s: %s cannot be reached at %s yet: %s",
                        self._broker.id,
                        self.name,
                        self._address,
                        failure,
                    )
                failed = True
            else:
                failed = False
                try:
                    await connection.closed
                finally:
                    if not connection.closed.done():
                        connection.close("the broker stops")
            await asyncio.sleep(self._backoff.next())

    def _tls(self) -> dict[str, Any]:
        """Return how the neighbour is dialled under security; nothing without."""
        if self._guard is None:
            return {}
        within_s = self._broker.overlay.limits.hello_s
        return {
            "ssl": self._guard.contexts.dial,
            "server_hostname": self._address.host,
            "ssl_handshake_timeout": within_s,
            "ssl_shutdown_timeout": _SHUTDOWN_S,
        }

    def _say_not_trusted(self, failure: SSLError) -> None:
        """Say that TLS has failed: whoever is at the neighbour's address is not the neighbour."""
        assert self._guard is not None, "TLS is spoken where there is security"
        reason = getattr(failure, "verify_message", None) or failure.reason or str(failure)
        self._write_refused(reason)
        self._broker.warnings.say(
            asyncio.get_running_loop().time(),
            "refusals",
            "%s: whoever answers for %s at %s is not trusted: %s",
            self._broker.id,
            self.name,
            self._address,
            reason,
        )

    def _check(self, connection: Connection) -> None:
        """Raise LoginFailed unless it is the neighbour that has answered."""
        assert self._guard is not None, "without security there is nothing to check"
        try:
            self._guard.neighbour(connection, self._link.neighbour)
        except LoginFailed as failure:
            reason = f"at {self._address}: {failure}"
            self._write_refused(str(failure))
            raise LoginFailed(reason) from failure

    def _write_refused(self, reason: str) -> None:
        """Write down that whoever is at the neighbour's address is not taken for it."""
        if self._guard is not None:
            self._guard.write("link_refused", address=str(self._address), reason=reason)

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:
        """Hear the neighbour's answer to our hello."""
        answer = decode_answer(frames[0])
        if isinstance(answer, Refusal):
            self._broker.warnings.say(
                asyncio.get_running_loop().time(),
                "refusals",
                "%s: %s refuses the link: %s",
                self._broker.id,
                self.name,
                answer.message,
            )
            connection.abort("the link was refused")
            return
        if not isinstance(answer, BrokerHello) or answer.broker != self._link.neighbour:
            raise ProtocolError(f"{self._address} is not {self._link.neighbour}")
        reason = mismatch(self._hello, answer)
        if reason:
            self._write_refused(reason)
            connection.fail(ConnectionFailed(reason))
            return
        self._backoff.reset()
        if self._guard is not None:
            self._guard.keep(connection, self._guard.neighbour(connection, answer.broker))
        self._link.up(connection)
        if self._guard is not None:
            self._guard.is_up(connection)
        if len(frames) > 1:
            self._link.frames_arrived(connection, frames[1:])

    def may_write(self, connection: Connection) -> None:
        """Nothing waits during the greeting."""

    def connection_lost(self, connection: Connection, reason: str) -> None:  # noqa: ARG002
        """The greeting failed; `run` tries again."""
        if self._guard is not None:  # it may not have taken our certificate
            self._broker.warnings.say(
                asyncio.get_running_loop().time(),
                "links",
                "%s: the greeting with %s at %s failed: %s",
                self._broker.id,
                self.name,
                self._address,
                reason,
            )
