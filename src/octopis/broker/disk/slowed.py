"""Requests that wait as their client has brought more in a second than it may publish.

What counts is what a broker has to look at: rows that are staged, notifications of a durable
subscription that moves here, and each number in a long list of them.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from octopis.broker.clients.rates import Rates
from octopis.broker.clients.session import ClientSession
from octopis.broker.connection import Connection
from octopis.broker.effects import Effects
from octopis.core.wire.durable import CommitStaged, DropStaged, StageRows, StagingRequest
from octopis.core.wire.moving import BeginDurable, MoveRequest, TakeDurable
from octopis.errors import OctopisError, ProtocolError

_REQUESTS_MAX = 1_000
_NUMBER_BYTES = 9
"""What a number in a list takes at most."""

_Request = TypeVar("_Request", bound=StagingRequest | MoveRequest)


class Slowed(Generic[_Request]):
    """What waits, in order, at most `window` bytes. `do` does what a request asks for."""

    def __init__(
        self,
        rates: Rates,
        window: int,
        do: Callable[[ClientSession, _Request], None],
        effects: Effects,
    ) -> None:
        self._rates = rates
        self._window = window
        self._do = do
        self._effects = effects
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[ClientSession, deque[tuple[Connection, _Request]]] = {}

    def take(self, session: ClientSession, request: _Request) -> None:
        """Do what a client asks for, perhaps later. Raises what is wrong with it if it is now."""
        if not self._holds(session, request):
            self._do(session, request)

    def _holds(self, session: ClientSession, request: _Request) -> bool:
        """Let a request wait where it has to, and say so; who waits for too many is sent away."""
        waiting = self._waiting.get(session)
        if waiting is None:
            rest_s = self._rates.rest_s(session)
            if not rest_s:
                self._charge(session, request)
                return False
            waiting = self._waiting[session] = deque()
            self._loop.call_later(rest_s, self._turn, session)
        waiting.append((session.connection, request))
        size = sum(_size(each) for _, each in waiting)
        if len(waiting) > _REQUESTS_MAX or (len(waiting) > 1 and size > self._window):
            most = f"{self._window:,} bytes or {_REQUESTS_MAX:,} requests"
            reason = f"more than {most} of batches or moves are under way without answer"
            session.fail(ProtocolError(reason))
        return True

    def _charge(self, session: ClientSession, request: _Request) -> None:
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
                self._charge(session, request)  # else nobody waits for its answer
                self._do_late(session, request)
        del self._waiting[session]

    def _do_late(self, session: ClientSession, request: _Request) -> None:
        try:
            self._do(session, request)
        except OctopisError as refusal:
            session.answer(request.request, refusal)
        self._effects.add(session)
        self._effects.flush()


def _size(request: StagingRequest | MoveRequest) -> int:
    if isinstance(request, StageRows):
        return len(request.rows)
    if isinstance(request, CommitStaged | DropStaged):
        return _NUMBER_BYTES * sum(map(len, request.attempts))
    if isinstance(request, TakeDurable):
        return _NUMBER_BYTES * len(request.positions) + sum(map(len, request.bodies))
    return _NUMBER_BYTES * 2 * len(request.cut) if isinstance(request, BeginDurable) else 0
