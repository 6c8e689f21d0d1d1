"""HTTP on a connection, with limits that uvicorn leaves to a proxy in front of it.

A head that never ends, a body that stands still and a reader that takes nothing are ended by one
sweep over all connections a second, so that the limits cost a request nothing.
"""

import asyncio
import logging
from typing import Any, cast

import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from octopis.gateway.counts import Counts
from octopis.gateway.problems import CONTENT_TYPE, Problem
from octopis.gateway.serving.websocket import LimitedSocket
from octopis.gateway.settings import GatewayLimits
from octopis.security.bounds.failures import place_of
from octopis.security.bounds.shares import Shares

SWEEP_S = 0.5
_LINGER_S = 2.0
"""So long who is refused has to take the answer."""

_log = logging.getLogger(__name__)


class LimitedProtocol(HttpToolsProtocol):
    """One connection. `limits`, `counts` and `shares` are set by the server, for all of them."""

    limits = GatewayLimits()
    counts = Counts()
    shares: Shares[str] = Shares(limits.connections_per_host, limits.connections)

    def __init__(self, config: Config, server_state: ServerState, *rest: Any, **named: Any) -> None:
        super().__init__(config, server_state, *rest, **named)
        self.head_since: float | None = self.loop.time()
        """Since when a head is awaited, TLS before it included; None while none is."""

        self.body_at: float | None = None
        """When the body has gone on last, while there is more of it."""

        self.stuck_since: float | None = None
        """Since when the other side takes nothing of what is sent."""

        self.is_made = False
        """Whether there was a connection, after TLS where that is spoken."""

        self._place: str | None = None
        """Whose share it is in, while it is in one."""

        self._head_bytes = 0
        self._after_bytes = 0
        """What has come since the body went on last: trailers, which the parser keeps."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection in, unless there are too many, of its address or in all."""
        super().connection_made(cast("asyncio.Transport", transport))
        self.is_made = True
        place = place_of(self.client[0]) if self.client else ""
        is_full = self.shares.is_full(place)
        self.shares.take(place)
        self._place = place
        if not is_full:
            return
        most = self.limits.connections_per_host
        if self.shares.of(place) > most:
            reason = f"there are {most:,} connections from your address already: close some"
            self.refuse(429, "connections_per_host", reason)
        else:
            self.refuse(503, "connections", "there are too many connections: try again later")

    def connection_lost(self, exc: Exception | None) -> None:
        """Let it go."""
        self.head_since = self.body_at = self.stuck_since = None
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data in, as far as a head may be so long."""
        if self.head_since is not None:
            self._head_bytes += len(data)
            room = self.limits.head_bytes
            super().data_received(data)
            if self._head_bytes > room and self.head_since is not None:
                self.refuse(431, "head_bytes", f"a head has at most {room:,} bytes")
            return
        self._after_bytes += len(data)
        super().data_received(data)
        room = self.limits.head_bytes
        if self._after_bytes > room and self.body_at is not None:
            self.refuse(431, "head_bytes", f"what follows a body has at most {room:,} bytes")

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        if self.head_since is None:
            self.head_since = self.loop.time()
            self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self.head_since = None
        self._head_bytes = self._after_bytes = 0
        self.body_at = self.loop.time()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Its body goes on."""
        self.body_at = self.loop.time()
        self._after_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """It is whole."""
        self.body_at = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The other side does not take what is sent."""
        self.stuck_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self.stuck_since = None
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection on, and its share with it."""
        self.head_since = self.body_at = self.stuck_since = None
        self._leave()
        super().handle_websocket_upgrade()

    def _leave(self) -> None:
        if self._place is not None:
            self.shares.give_back(self._place)
            self._place = None

    @property
    def _is_answering(self) -> bool:
        cycle = self.cycle
        return cycle is not None and cycle.response_started and not cycle.response_complete

    def sweep(self, now: float) -> None:
        """End the connection where a limit says so."""
        limits = self.limits
        if self.head_since is not None and now - self.head_since > limits.head_s:
            self.refuse(408, "head_s", f"a head must be there within {limits.head_s:g} s")
        elif self.stuck_since is not None and now - self.stuck_since > limits.stall_s:
            self.counts.ended["stall_s"] += 1
            self.transport.abort()
        elif self.body_at is not None and now - self.body_at > limits.idle_s + 2 * SWEEP_S:
            if self.flow.read_paused:  # it is we who do not read
                self.body_at = now
            else:
                self.counts.ended["idle_s"] += 1
                self.transport.abort()

    def refuse(self, status: int, limit: str, reason: str) -> None:
        """Answer to what is no whole request, and end the connection."""
        self.counts.ended[limit] += 1
        self._end_with(status, reason)

    def send_400_response(self, msg: str) -> None:
        """Answer to what is no request at all."""
        self._end_with(400, msg)

    def _end_with(self, status: int, reason: str) -> None:
        self.head_since = self.body_at = None
        if self.transport.is_closing():
            return
        if self._is_answering:
            self.transport.abort()  # in the middle of an answer there is no room for another
            return
        problem = Problem(status, reason, closes=True)
        body = msgspec.json.encode(problem.document)
        head = [
            f"HTTP/1.1 {status} {problem.document.title}",
            f"content-type: {CONTENT_TYPE}",
            f"content-length: {len(body)}",
            *(f"{name}: {value}" for name, value in problem.headers().items()),
        ]
        self.transport.write("\r\n".join((*head, "\r\n")).encode() + body)
        self.transport.close()
        self.loop.call_later(_LINGER_S, self.transport.abort)  # TLS waits for the other side's end


async def sweep_for_ever(state: ServerState) -> None:
    """Look after all connections."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(SWEEP_S)
        now = loop.time()
        for each in list(state.connections):
            if isinstance(each, LimitedProtocol | LimitedSocket):
                each.sweep(now)
