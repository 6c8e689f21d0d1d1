"""Drives a broker's part in inquiries whether all is settled (octopis.core.routing.settling).

Inquiries, confirmations and reports go past the queues. Those that come close together leave
together, so that a broker whose neighbours all confirm says so once.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Protocol, cast

from octopis.broker.effects import Effects
from octopis.core.model import BrokerId
from octopis.core.routing import Broker, Marked
from octopis.core.routing.marks import Confirmed
from octopis.core.routing.settling import Inquiry, Report, Settling
from octopis.core.topology import SCOT
from octopis.core.wire.client import SettledRequest
from octopis.core.wire.inquiries import Asking
from octopis.errors import OctopisError, ProtocolError

REQUESTS_MAX = 100
"""Of one client at a time."""

_TOGETHER_S = 0.002


class AskingOutput(Protocol):
    """A link, as far as inquiries go."""

    def control(self, message: Asking) -> None:
        """Send a message past the queue."""


class Asker(Protocol):
    """A client, as far as it asks whether all is settled."""

    def answer(self, request: int, error: OctopisError | None = None) -> None:
        """Answer a request."""

    def pump(self) -> None:
        """Let answers go."""


class Inquiries:
    """What a broker asks and is asked about who knows which subscriptions."""

    def __init__(
        self,
        core: Broker,
        scot: SCOT,
        links: Mapping[BrokerId, AskingOutput],
        effects: Effects,
        first_number: int,
    ) -> None:
        self._settling = Settling(core, scot, first_number, time.monotonic_ns())
        self._known = frozenset(scot.brokers)
        self._links = links
        self._effects = effects
        self._asked: dict[Asker, set[int]] = {}
        self._loop = asyncio.get_running_loop()
        self._soon: asyncio.TimerHandle | None = None
        self._later: asyncio.TimerHandle | None = None
        effects.on_mark = self.marked
        self.when_kept: Callable[[Callable[[], None]], None] = lambda action: action()
        """Does something when all that is known here would outlive this broker."""

    # Own clients

    def ask(self, asker: Asker, request: SettledRequest) -> None:
        """Have a client's request answered when all is settled. Raises ProtocolError."""
        asked = self._asked.setdefault(asker, set())
        if len(asked) >= REQUESTS_MAX or request.request in asked:
            raise ProtocolError(f"more than {REQUESTS_MAX} settled requests wait, or one twice")
        asked.add(request.request)
        limit_ns = request.limit_ms * 1_000_000
        self._settling.ask((asker, request.request), limit_ns, time.monotonic_ns())
        self._carry_out()
        self._send_soon()

    def leave(self, asker: Asker) -> None:
        """Forget the requests of a client that is gone."""
        for request in self._asked.pop(asker, ()):
            self._settling.forget((asker, request))

    # Neighbours

    def heard(self, neighbour: BrokerId, said: Asking) -> None:
        """Take in what a neighbour says past the queue, or raise ProtocolError."""
        self._check(said)
        now_ns = time.monotonic_ns()
        if isinstance(said, Inquiry):
            self._settling.inquired(neighbour, said, now_ns)
        elif isinstance(said, Confirmed):
            self._settling.confirmed(said)
        else:
            self._settling.reported(said, now_ns)
        self._carry_out()
        self._send_soon()

    def marked(self, marked: Marked) -> None:
        """Take in that a mark has come: what stands before it is known when it is on disk, too."""

        def known() -> None:
            self._settling.marked(marked)
            self._send_soon()

        self.when_kept(known)

    def stop(self) -> None:
        """Ask and answer no more."""
        for timer in (self._soon, self._later):
            if timer is not None:
                timer.cancel()

    def _check(self, said: Asking) -> None:
        if isinstance(said, Inquiry):
            named, bits = {said.origin}, said.again | said.anew
        elif isinstance(said, Confirmed):
            named, bits = {said.host}, said.brokers
        else:
            assert isinstance(said, Report)
            named, bits = {said.origin, said.broker}, said.up | said.known
        if not named <= self._known or bits >> len(self._known):
            raise ProtocolError(f"{type(said).__name__} names brokers that are not there")

    # What goes

    def _carry_out(self) -> None:
        self._effects.carry_out(self._settling.effects())
        self._effects.flush()

    def _send_soon(self) -> None:
        if self._soon is None:
            self._soon = self._loop.call_later(_TOGETHER_S, self._send)

    def _send(self) -> None:
        self.stop()
        self._soon = self._later = None
        now_ns = time.monotonic_ns()
        out = self._settling.take(now_ns)
        self._settling.look(now_ns)
        self._carry_out()
        for neighbour, message in out + self._settling.take(now_ns):
            self._links[neighbour].control(message)
        for key, error in self._settling.answers():
            asker, request = cast("tuple[Asker, int]", key)  # as `ask` made it
            self._asked[asker].discard(request)
            asker.answer(request, error)
            asker.pump()
        next_ns = self._settling.next_ns
        if next_ns is not None:
            delay_s = max(_TOGETHER_S, (next_ns - now_ns) / 1e9)
            self._later = self._loop.call_later(delay_s, self._send)
