"""Listens behind TLS, and lets nobody take long over coming in.

Whoever connects has `limits.hello_s` for everything: TLS, hello and login. Until then it counts as
half open at this door; see Door. The listener for neighbours counts on its own: no crowd of clients
keeps them out.
"""

import asyncio
import socket as sockets
import ssl
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING

from octopis.broker.connection import Connection
from octopis.broker.security.greeting import Greeting
from octopis.core.wire.control import Refusal
from octopis.core.wire.greeting import encode_refusal
from octopis.errors import LoginFailed
from octopis.security.bounds.door import Door
from octopis.security.bounds.strangers import Strangers

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

TLS_HANDSHAKE = 0x16
"""The first byte of whoever speaks TLS."""

SHUTDOWN_S = 1.0
_HELLO_BYTES = 64 * 1024

_PLAIN = encode_refusal(
    Refusal.of(
        LoginFailed(
            "this broker speaks TLS alone, and lets in who logs in: connect with credentials "
            "(credentials=..., --credentials FILE, or OCTOPIS_CREDENTIALS)"
        )
    )
)


class Listener(Door):
    """Takes connections in at one socket, each with a TLS handshake and a greeting of its own.

    `context` is asked for each connection: certificates are renewed while the broker runs.
    """

    def __init__(
        self,
        broker: "LiveBroker",
        listens: socket,
        context: Callable[[], ssl.SSLContext],
        greeting: Callable[[], Greeting],
    ) -> None:
        self._broker = broker
        self._limits = limits = broker.overlay.limits
        each = limits.half_open_per_host  # whoever is let be half open may come to nothing once
        strangers = Strangers(limits.strangers_per_s, 2 * each)
        super().__init__(listens, each, limits.half_open, strangers)
        self._context = context
        self._greeting = greeting

    async def _take(self, accepted: socket, host: str) -> None:
        """Shake hands, and let a connection begin; from then on it is on its own."""
        until = self._loop.time() + self._limits.hello_s
        greeting = self._greeting()
        made: list[Connection] = []

        def make() -> Connection:
            made.append(Connection(greeting, self._limits, self._broker.warnings, until=until))
            return made[0]

        try:
            async with asyncio.timeout_at(until):
                first = await self._first_byte(accepted)
            if not first or first[0] != TLS_HANDSHAKE:
                self._refuse(accepted, host, first)
            else:
                await self._loop.connect_accepted_socket(
                    make,
                    accepted,
                    ssl=self._context(),
                    ssl_handshake_timeout=max(0.01, until - self._loop.time()),
                    ssl_shutdown_timeout=SHUTDOWN_S,
                )
                await made[0].begun  # let in, or gone
        except (OSError, TimeoutError) as failure:
            reason = str(failure) or type(failure).__name__
            self._say("handshakes", "no TLS handshake with %s: %s", host, reason)
            greeting.no_handshake(host, reason)
        finally:
            if not made or not made[0].is_greeted:
                self._strangers.came_to_nothing(host, self._loop.time())
            if not made or not made[0].is_made:
                accepted.close()
            elif not made[0].begun.done():
                made[0].abort("the broker stops")

    async def _first_byte(self, accepted: socket) -> bytes:
        """Return the first byte that comes, which stays there to be read."""
        readable: asyncio.Future[None] = self._loop.create_future()

        def is_there() -> None:
            if not readable.done():
                readable.set_result(None)

        self._loop.add_reader(accepted, is_there)
        try:
            await readable
        finally:
            self._loop.remove_reader(accepted)
        return accepted.recv(1, sockets.MSG_PEEK)

    def _refuse(self, accepted: socket, host: str, first: bytes) -> None:
        """Say to who speaks without TLS what is missing; it is not read any further."""
        if first:
            accepted.recv(_HELLO_BYTES)  # what is unread when it closes would cut the answer off
            accepted.send(_PLAIN)
            accepted.shutdown(sockets.SHUT_WR)
            self._say("handshakes", "%s speaks without TLS, and is refused", host)

    def _say(self, kind: str, message: str, *facts: object) -> None:
        now, here = self._loop.time(), self._broker.id
        self._broker.warnings.say(now, kind, f"%s: {message}", here, *facts)
