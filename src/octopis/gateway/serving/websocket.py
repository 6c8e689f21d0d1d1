"""WebSockets on a connection, with limits that the libraries leave to a proxy in front of them.

Who sends pings and never reads would have their answers pile up here, and who takes nothing at all
would keep its place for ever: closing a connection waits until what was written has gone.
"""

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from octopis.gateway.counts import Counts
from octopis.gateway.settings import GatewayLimits
from octopis.security.bounds.failures import place_of
from octopis.security.bounds.shares import Shares

_FRAGMENTS_MAX = 10_000
"""Of one message: empty ones count for nothing in its size, but are kept until it is whole."""


class LimitedSocket(WebSocketsSansIOProtocol):
    """One connection. `limits`, `counts` and `shares` are set by the server, for all of them."""

    limits = GatewayLimits()
    counts = Counts()
    shares: Shares[str] = Shares(limits.connections_per_host, limits.connections)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._stuck_since: float | None = None
        self._place = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over a connection that HTTP has let in, and its share."""
        super().connection_made(transport)
        self._place = place_of(self.client[0]) if self.client else ""
        self.shares.take(self._place)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let it go."""
        self.shares.give_back(self._place)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The other side does not take what is sent."""
        self._stuck_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self._stuck_since = None
        if not (self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()
        super().resume_writing()

    def handle_ping(self) -> None:
        """Answer, and hear no more of who does not take answers."""
        super().handle_ping()
        if self._stuck_since is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment of a message, unless there are too many."""
        if len(self.frames) >= _FRAGMENTS_MAX:
            self.counts.ended["fragments"] += 1
            self.transport.abort()
            return
        super().handle_cont(event)

    def sweep(self, now: float) -> None:
        """End the connection where it has taken nothing for too long."""
        if self._stuck_since is not None and now - self._stuck_since > self.limits.stall_s:
            self.counts.ended["stall_s"] += 1
            self._stuck_since = None
            self.transport.abort()
