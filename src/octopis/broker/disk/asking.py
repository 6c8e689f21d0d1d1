"""What clients ask about durable subscriptions and batches waits here for its turn.

Nobody knows before what a request will cost: a list may be of two durable subscriptions or of
thousands, a filter short or long. So it is measured: a turn of the event loop does one request of
each client after the other, for about as long as a turn may take, and whoever's took longer than
that rests for as long. What waits is not even decoded yet; how much that may be is in `requests`.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from octopis.broker.clients.session import ClientSession
from octopis.broker.clients.turns import TURN_S
from octopis.core.wire.durable import DurableRequest, decode_durable_request
from octopis.errors import ProtocolError


class Asking:
    """The clients whose requests wait. `take` does one, and `flush` lets go what came of many.

    `call_later` and `clock` are the event loop's and the thread's, or those of a test.
    """

    def __init__(
        self,
        take: Callable[[ClientSession, DurableRequest], None],
        flush: Callable[[], None],
        call_later: Callable[..., object],
        clock: Callable[[], float] = time.thread_time,  # where others have the core, nobody is dear
    ) -> None:
        self._take = take
        self._flush = flush
        self._call_later = call_later
        self._clock = clock
        self._waiting: OrderedDict[ClientSession, None] = OrderedDict()
        self._resting: set[ClientSession] = set()
        self._is_scheduled = False

    def add(self, session: ClientSession) -> None:
        """Note that a client has asked for something."""
        self._line_up(session)
        self._schedule()

    def _line_up(self, session: ClientSession) -> None:
        if session.asked and session not in self._resting:
            self._waiting.setdefault(session)

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self._call_later(0, self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        until = self._clock() + TURN_S
        while self._waiting and self._clock() < until:
            session, _ = self._waiting.popitem(last=False)
            if session.connection.is_closing:
                session.forget_asked()
            elif session.asked:
                self._do_one(session)
        self._flush()
        self._schedule()

    def _do_one(self, session: ClientSession) -> None:
        begin = self._clock()
        try:
            self._take(session, decode_durable_request(session.next_asked()))
        except ProtocolError as failure:
            session.fail(failure)
        if (took := self._clock() - begin) > TURN_S:
            self._resting.add(session)
            self._call_later(took, self._has_rested, session)
        self._line_up(session)

    def _has_rested(self, session: ClientSession) -> None:
        self._resting.discard(session)
        self.add(session)
