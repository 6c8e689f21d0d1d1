"""The first words behind TLS: a client logs in, a neighbour is who its certificate says.

Nobody's word about himself counts. Who speaks to clients takes no broker in, and the other way
round; and nothing may be said before the welcome but what was asked for.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from octopis.broker.connection import Connection
from octopis.broker.handshake import Reception
from octopis.broker.security.guard import Guard
from octopis.core.wire.frames import Frame
from octopis.core.wire.greeting import BrokerHello, ClientHello, decode_hello
from octopis.core.wire.login import Scram, Token, decode_proof, encode_challenge
from octopis.errors import ConnectionFailed, LoginFailed, OctopisError, ProtocolError
from octopis.security.identity import Identity
from octopis.security.login import Challenge

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

_HOW: dict[type, str] = {Token: "token", Scram: "password"}
_SPARE_S = 0.5
"""An answer that waits, after failed logins, comes so long before the greeting has to be over."""


class Greeting(ABC):
    """The Peer of one connection behind TLS until it is known who is there."""

    name = "a stranger"

    def __init__(self, broker: "LiveBroker", guard: Guard, reception: Reception) -> None:
        self._broker = broker
        self._guard = guard
        self._reception = reception
        self._loop = asyncio.get_running_loop()
        self._latest = self._loop.time() + broker.overlay.limits.hello_s - _SPARE_S

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:
        """Hear who is there."""
        try:
            self._hear(connection, frames)
        except OctopisError as failure:
            self._refuse(connection, failure)

    def may_write(self, connection: Connection) -> None:  # noqa: B027 - nothing is to be done
        """Nothing waits for a stranger."""

    def connection_lost(self, connection: Connection, reason: str) -> None:  # noqa: B027 - the same
        """A stranger has gone."""

    @abstractmethod
    def no_handshake(self, host: str, reason: str) -> None:
        """Note that somebody has not come as far as a connection."""

    @abstractmethod
    def _hear(self, connection: Connection, frames: list[Frame]) -> None: ...

    @abstractmethod
    def _refuse(self, connection: Connection, failure: OctopisError) -> None: ...


class ClientGreeting(Greeting):
    """A client says who it is, and proves it: by certificate, by token, or by password."""

    def __init__(self, broker: "LiveBroker", guard: Guard, reception: Reception) -> None:
        super().__init__(broker, guard, reception)
        self._hello: ClientHello | None = None
        self._challenge: Challenge | None = None
        self._is_decided = False

    def no_handshake(self, host: str, reason: str) -> None:
        """Note nothing: whoever scans ports would fill the audit log."""

    def _hear(self, connection: Connection, frames: list[Frame]) -> None:
        if len(frames) > 1 or self._is_decided:
            raise ProtocolError("it goes on before it is welcomed")
        if self._challenge is not None:
            challenge, self._challenge = self._challenge, None
            self._finish(connection, challenge, decode_proof(frames[0]).message)
            return
        hello = decode_hello(frames[0])
        if not isinstance(hello, ClientHello):
            raise LoginFailed("clients are taken in here, and brokers at another port")
        self._hello = hello
        self._begin(connection, hello)

    def _begin(self, connection: Connection, hello: ClientHello) -> None:
        """Look at a hello: it is a whole login, or the beginning of one by password."""
        host = host_of(connection)
        now = self._loop.time()
        wait_s = min(self._guard.failures.delay(host, now), self._latest - now)
        try:
            found = self._guard.logins.begin(hello.login, connection.certificate, time.time())
        except LoginFailed as failure:
            self._fail(wait_s, connection, failure)
            return
        if isinstance(found, Challenge):
            self._challenge = found
            connection.write(encode_challenge(found.message))
            return
        self._is_decided = True  # nobody guesses a signature: who has one waits for no other
        self._let_in(connection, found, b"")

    def _finish(self, connection: Connection, challenge: Challenge, message: bytes) -> None:
        """Look at the proof of a password, where logins have failed in its turn and slowly.

        A right password waits as a wrong one does: else what does not wait would tell.
        """
        host = host_of(connection)
        wait_s = self._guard.failures.turn(host, self._loop.time(), self._latest)
        if wait_s is None:
            self._is_decided = True
            self._refuse(connection, _too_many(host))
            return
        try:
            identity, verifier = challenge.finish(message)
        except LoginFailed as failure:
            self._fail(wait_s, connection, failure)
            return
        self._is_decided = True
        self._later(wait_s, connection, partial(self._let_in, connection, identity, verifier))

    def _fail(self, wait_s: float, connection: Connection, failure: LoginFailed) -> None:
        self._is_decided = True
        self._guard.failures.failed(host_of(connection), self._loop.time())
        self._later(wait_s, connection, partial(self._refuse, connection, failure))

    def _later(self, wait_s: float, connection: Connection, answer: Callable[[], None]) -> None:
        if wait_s <= 0:
            answer()
        else:
            self._loop.call_later(wait_s, self._still, connection, answer)

    @staticmethod
    def _still(connection: Connection, answer: Callable[[], None]) -> None:
        if not connection.is_closing:
            answer()

    def _let_in(self, connection: Connection, identity: Identity, verifier: bytes) -> None:
        assert self._hello is not None, "who is let in has said hello"
        hello = self._hello
        current = self._guard.logins.current(identity)  # roles may have changed while it waited
        if current is None:
            self._refuse(connection, LoginFailed(f"{identity.name} may not be in any more"))
            return
        self._reception.take_client(connection, hello, current, verifier)
        self._guard.write(
            "login" if not connection.is_closing else "refused",
            user=identity.name,
            how=identity.how,
            credential=identity.credential,
            roles=current.roles,
            client=hello.client,
            address=connection.address,
        )

    def _refuse(self, connection: Connection, failure: OctopisError) -> None:
        if isinstance(failure, ConnectionFailed):
            login = None if self._hello is None else self._hello.login
            self._guard.write(
                "login_failed",
                client="" if self._hello is None else self._hello.client,
                how=_HOW.get(type(login), "certificate"),
                address=connection.address,
                reason=str(failure),
            )
        connection.fail(failure)


class LinkGreeting(Greeting):
    """A neighbour says who it is, and its certificate says the same."""

    def no_handshake(self, host: str, reason: str) -> None:
        """Note that somebody has come to the neighbours' door without a certificate that counts."""
        self._guard.write("link_refused", host=host, reason=reason)

    def _hear(self, connection: Connection, frames: list[Frame]) -> None:
        hello = decode_hello(frames[0])
        if not isinstance(hello, BrokerHello):
            raise LoginFailed("brokers are taken in here, and clients at another port")
        self._guard.keep(connection, self._guard.neighbour(connection, hello.broker))
        self._reception.take_broker(connection, hello, frames[1:])

    def _refuse(self, connection: Connection, failure: OctopisError) -> None:
        self._reception.refuse_broker(connection, failure)


def host_of(connection: Connection) -> str:
    """Return where the other end is, without its port."""
    return connection.address.rpartition(":")[0]


def _too_many(host: str) -> ConnectionFailed:
    """Return what to tell whose password was not looked at. It is no failed login: try again."""
    return ConnectionFailed(
        f"too many logins have failed at {host}, and passwords from there are looked at one after "
        "the other: try again later, or log in by token or certificate"
    )
