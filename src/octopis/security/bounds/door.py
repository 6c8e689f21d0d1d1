"""Takes connections in at a socket, for TLS: counts who is half open, and sends away too many.

Whoever connects is half open until it is in or gone, for its address and in all; past these bounds
whoever comes is sent away at once, and so is who comes from where too many have come to nothing
lately. A crowd from one address keeps out nobody else.
"""

import asyncio
from abc import ABC, abstractmethod
from socket import socket

from octopis.security.bounds.failures import place_of
from octopis.security.bounds.shares import Shares
from octopis.security.bounds.strangers import Strangers

_REST_S = 0.1
_FAULTS = {
    "half_open": "too many at %s are not let in yet: one is sent away",
    "strangers": "too many from %s were not let in lately: one is sent away",
}


class Door(ABC):
    """The accepting half of a listener. `begin`, and `close` at the end."""

    def __init__(
        self, listens: socket, half_open_per_host: int, half_open: int, strangers: Strangers
    ) -> None:
        self.refused = 0
        """How many were sent away, as too many were half open or had come to nothing."""

        self._socket = listens
        self._socket.setblocking(False)
        self._half_open: Shares[str] = Shares(half_open_per_host, half_open)
        self._strangers = strangers
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def half_open(self) -> int:
        """How many connections are not let in yet."""
        return self._half_open.total

    def begin(self) -> None:
        """Take connections in from here on."""
        self._keep(self._loop.create_task(self._accept()))

    def close(self) -> None:
        """Take nobody in any more; whose handshake is under way is cut off."""
        for task in self._tasks:
            task.cancel()
        self._loop.call_soon(self._socket.close)  # what waits for it lets go of it first

    def come(self, accepted: socket, host: str) -> None:
        """Take a connection from a host in, or send it away where there are too many."""
        place = place_of(host)
        if self._half_open.is_full(place):
            self._send_away(accepted, "half_open", host)
        elif not self._strangers.may_come(host, self._loop.time()):
            self._send_away(accepted, "strangers", host)
        else:
            self._half_open.take(place)
            task = self._loop.create_task(self._take(accepted, host))
            task.add_done_callback(lambda _: self._half_open.give_back(place))
            self._keep(task)

    @abstractmethod
    async def _take(self, accepted: socket, host: str) -> None:
        """Shake hands; return once the connection is in, or gone."""

    @abstractmethod
    def _say(self, kind: str, message: str, *facts: object) -> None:
        """Say in the log what strangers do, not too often."""

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

    def _send_away(self, accepted: socket, limit: str, host: str) -> None:
        self.refused += 1
        self._say("sent away", _FAULTS[limit], host)
        accepted.close()
