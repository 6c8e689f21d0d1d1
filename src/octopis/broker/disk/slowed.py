"""Requests that wait as their client has staged more in a second than it may publish."""

import asyncio
from collections import deque
from collections.abc import Callable

from octopis.broker.clients.rates import Rates
from octopis.broker.clients.session import ClientSession
from octopis.broker.connection import Connection
from octopis.core.wire.durable import StageRows, StagingRequest
from octopis.errors import ProtocolError

_REQUESTS_MAX = 1_000


class Slowed:
    """What waits, in order. `go_on` takes a request that has waited; at most `window` bytes do."""

    def __init__(
        self,
        rates: Rates,
        window: int,
        go_on: Callable[[ClientSession, StagingRequest], None],
    ) -> None:
        self._rates = rates
        self._window = window
        self._go_on = go_on
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[ClientSession, deque[tuple[Connection, StagingRequest]]] = {}

    def holds(self, session: ClientSession, request: StagingRequest) -> bool:
        """Let a request wait where it has to, and say so; who waits for too many is sent away."""
        waiting = self._waiting.get(session)
        if waiting is None:
            rest_s = self._rates.rest_s(session)
            if not rest_s:
                self._take(session, request)
                return False
            waiting = self._waiting[session] = deque()
            self._loop.call_later(rest_s, self._turn, session)
        waiting.append((session.connection, request))
        size = sum(_size(each) for _, each in waiting)
        if len(waiting) > _REQUESTS_MAX or (len(waiting) > 1 and size > self._window):
            reason = f"more than {self._window:,} bytes or {_REQUESTS_MAX:,} requests of batches"
            session.fail(ProtocolError(f"{reason} are under way without answer"))
        return True

    def _take(self, session: ClientSession, request: StagingRequest) -> None:
        if size := _size(request):
            self._rates.take(session, size)

    def _turn(self, session: ClientSession) -> None:
        """Go on with what waits, as far as the client may have more."""
        waiting = self._waiting[session]
        while waiting:
            if rest_s := self._rates.rest_s(session):
                self._loop.call_later(rest_s, self._turn, session)
                return
            connection, request = waiting.popleft()
            if session.connection is connection and not connection.is_closing:
                self._take(session, request)  # else nobody waits for its answer
                self._go_on(session, request)
        del self._waiting[session]


def _size(request: StagingRequest) -> int:
    return len(request.rows) if isinstance(request, StageRows) else 0
