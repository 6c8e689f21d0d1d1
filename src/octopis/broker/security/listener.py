"""Listens behind TLS: counts who is not let in yet, and lets nobody take long over it.

Whoever connects has `limits.hello_s` for everything: TLS, hello and login. Until then it counts as
half open, for its address and in all; past these bounds whoever comes is sent away at once, and so
is who comes from where too many have come to nothing lately. The listener for neighbours counts on
its own: no crowd of clients keeps them out.
"""

import asyncio
import socket as sockets
import ssl
from collections import Counter
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING

from octopis.broker.connection import Connection
from octopis.broker.security.greeting import Greeting
from octopis.core.wire.control import Refusal
from octopis.core.wire.greeting import encode_refusal
from octopis.errors import LoginFailed
from octopis.security.failures import place_of
from octopis.security.strangers import Strangers

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

TLS_HANDSHAKE = 0x16
"""The first byte of whoever speaks TLS."""

SHUTDOWN_S = 1.0
_REST_S = 0.1
_HELLO_BYTES = 64 * 1024

_PLAIN = encode_refusal(
    Refusal.of(
        LoginFailed(
            "this broker speaks TLS alone, and lets in who logs in: connect with credentials "
            "(credentials=..., --credentials FILE, or OCTOPIS_CREDENTIALS)"
        )
    )
)


class Listener:
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
        self.refused = 0
        """How many were sent away, as too many were half open or had come to nothing."""

        self._broker = broker
        self._limits = broker.overlay.limits
        self._socket = listens
        self._socket.setblocking(False)
        self._context = context
        self._greeting = greeting
        self._hosts: Counter[str] = Counter()
        limits = self._limits  # whoever is let be half open may come to nothing once
        self._strangers = Strangers(limits.strangers_per_s, 2 * limits.half_open_per_host)
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def half_open(self) -> int:
        """How many connections are not let in yet."""
        return self._hosts.total()

    def begin(self) -> None:
        """Take connections in from here on."""
        self._keep(self._loop.create_task(self._accept()))

    def close(self) -> None:
        """Take nobody in any more; whose handshake is under way is cut off."""
        for task in self._tasks:
            task.cancel()
        self._loop.call_soon(self._socket.close)  # what waits for it lets go of it first

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        while True:
            try:
                accepted, place = await self._loop.sock_accept(self._socket)
            except OSError as failure:  # no more files, or it has gone again
                self._say("accepting", "cannot take a connection in: %s", failure)
                await asyncio.sleep(_REST_S)
                continue
            self.come(accepted, place[0])

    def come(self, accepted: socket, host: str) -> None:
        """Take a connection from a host in, or send it away where there are too many."""
        if self._is_full(host):
            self._send_away(accepted, "too many at %s are not logged in: one is sent away", host)
        elif not self._strangers.may_come(host, self._loop.time()):
            fault = "too many from %s were not let in lately: one is sent away"
            self._send_away(accepted, fault, host)
        else:
            self._keep(self._loop.create_task(self._take(accepted, host)))

    def _send_away(self, accepted: socket, fault: str, host: str) -> None:
        self.refused += 1
        self._say("sent away", fault, host)
        accepted.close()

    def _is_full(self, host: str) -> bool:
        limits = self._limits
        here = self._hosts[place_of(host)]
        return here >= limits.half_open_per_host or self.half_open >= limits.half_open

    async def _take(self, accepted: socket, host: str) -> None:
        """Shake hands, and let a connection begin; from then on it is on its own."""
        until = self._loop.time() + self._limits.hello_s
        greeting = self._greeting()
        place = place_of(host)
        self._hosts[place] += 1
        made: list[Connection] = []

        def let_go() -> None:
            if place in self._hosts:
                self._hosts[place] -= 1
                if not self._hosts[place]:
                    del self._hosts[place]

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
            let_go()
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
