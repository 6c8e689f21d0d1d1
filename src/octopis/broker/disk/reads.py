"""Reads of durable subscriptions: they wait until there is something, or as long as is wanted.

One read of each client is answered in a turn of the event loop, so that nobody who reads much keeps
others waiting.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import NamedTuple

from octopis.broker.clients.session import ClientSession
from octopis.broker.disk.permitted import visible
from octopis.broker.effects import Effects
from octopis.core.delivery.lasting.durables import Durable, Durables, Excerpt
from octopis.core.wire.durable import READ_BYTES, READS_MAX, ReadDurable, encode_batch
from octopis.errors import InvalidSubscription, OctopisError, ProtocolError

OnRead = Callable[[str, str, Excerpt], None]


class _Waiting(NamedTuple):
    session: ClientSession
    request: ReadDurable
    until: float


class Reads:
    """All reads of a broker's clients. `found` says what a client may read, or raises.

    `on_read` is told what a client, by its name, gets of which durable subscription.
    """

    def __init__(
        self,
        durables: Durables,
        effects: Effects,
        found: Callable[[ClientSession, ReadDurable], Durable],
        on_read: OnRead,
    ) -> None:
        self._on_read = on_read
        self._durables = durables
        self._effects = effects
        self._found = found
        self._loop = asyncio.get_running_loop()
        self._queued: OrderedDict[ClientSession, deque[ReadDurable]] = OrderedDict()
        self._waiting: dict[Durable, list[_Waiting]] = {}
        self._read: dict[Durable, None] = {}
        """What was read since it was looked after."""

        self._is_scheduled = False

    def take(self, session: ClientSession, request: ReadDurable) -> None:
        """Take a read in. Raises ProtocolError where the client has too many under way.

        Of those that wait for something to come, the oldest is answered then: a program may have
        let go of it long ago, and one that has not asks again.
        """
        queued = self._queued.setdefault(session, deque())
        held = [
            (durable, each)
            for durable, many in self._waiting.items()
            for each in many
            if each.session is session
        ]
        if len(queued) + len(held) >= READS_MAX:
            if not held:
                raise ProtocolError(f"more than {READS_MAX} reads wait for an answer")
            durable, oldest = min(held, key=lambda each: each[1].request.request)
            self._waiting[durable].remove(oldest)
            self._answer(session, oldest.request, durable)
        queued.append(request)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Answer one read of each client."""
        self._is_scheduled = False
        for session, queued in list(self._queued.items()):
            if queued and not session.connection.is_closing:
                self._serve(session, queued.popleft())
            if not queued or session.connection.is_closing:
                del self._queued[session]
        self._effects.flush()
        if self._queued:
            self._schedule()

    def _serve(self, session: ClientSession, request: ReadDurable) -> None:
        try:
            durable = self._found(session, request)
            if durable.end > request.after or not request.wait_ms:
                self._answer(session, request, durable)
                return
        except OctopisError as refusal:
            session.answer(request.request, refusal)
            self._effects.add(session)
            return
        until = self._loop.time() + request.wait_ms / 1000
        self._waiting.setdefault(durable, []).append(_Waiting(session, request, until))

    def _answer(self, session: ClientSession, request: ReadDurable, durable: Durable) -> None:
        self._read[durable] = None
        found = self._durables.read(durable, request.after, request.count, READ_BYTES)
        found = visible(session.permit, found, request.after)
        self._on_read(session.client, durable.state.name, found)
        about = request.request, durable.state.epoch, found.missing, found.end
        session.tell(encode_batch(*about, found.positions, found.bodies))
        self._effects.add(session)

    def more(self, durable: Durable) -> None:
        """Answer who waits for a durable subscription: there is more to read."""
        for session, request, _ in self._waiting.pop(durable, ()):
            self._queued.setdefault(session, deque()).append(request)
            self._schedule()

    def ended(self, durable: Durable, reason: str) -> None:
        """Tell who waits for a durable subscription that it has ended."""
        for session, request, _ in self._waiting.pop(durable, ()):
            session.answer(request.request, InvalidSubscription(reason, durable.state.name))
            self._effects.add(session)

    def look_after(self, now: float) -> list[Durable]:
        """Answer who has waited long enough; return what was read, or somebody waits for."""
        for durable, many in list(self._waiting.items()):
            there = [each for each in many if not each.session.connection.is_closing]
            for each in there:
                if now >= each.until:
                    self._answer(each.session, each.request, durable)
            left = [each for each in there if now < each.until]
            if left:
                self._waiting[durable] = left
            else:
                del self._waiting[durable]
        read, self._read = self._read, {}
        return list(read | dict.fromkeys(self._waiting))
