"""Where clients come in, and where their requests wait for their turn.

Nothing is taken in before the broker has heard of its neighbours, or once it stops. Publications
also wait while there is backpressure on their way, and with them what their client published later;
changes of subscriptions while too many of them wait for a link anywhere. A turn of the event loop
takes one batch from all clients that publish, one request of each after the other; so no client can
shut others out, and all that the turn brought is matched together. How much of a turn each may have
is in `turns`; how changes are taken in, in `changing`.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from msgspec import Struct

from octopis.broker.clients.changing import Changing
from octopis.broker.clients.permitted import is_same
from octopis.broker.clients.rates import Rates
from octopis.broker.clients.requests import NO_STATUS
from octopis.broker.clients.session import ClientSession
from octopis.broker.clients.turns import Turns
from octopis.broker.disk.keeping import Answer, Keeping
from octopis.broker.effects import Effects
from octopis.broker.links.backpressure import Backpressure
from octopis.broker.links.posting import Posting
from octopis.broker.links.settling import Inquiries
from octopis.broker.pace import Pace
from octopis.broker.recorder import Recorder
from octopis.broker.settings import Limits
from octopis.core.routing import Broker
from octopis.core.routing.table import Entry
from octopis.core.wire.control import LOG_IN_ANEW
from octopis.core.wire.published import Published, decode_checked
from octopis.errors import (
    ConnectionFailed,
    InvalidNotification,
    NotPermitted,
    OctopisError,
    ProtocolError,
    StoreFailed,
)
from octopis.logs import one_line
from octopis.security.identity import Identity

BATCH_MAX = 256
_log = logging.getLogger(__name__)


class _Publication(Struct):
    """A publish request on its way through the batches."""

    request: int
    notifications: list[Published]
    taken: int = 0
    unsent: int = 0
    held_by: int | None = None


class Intake:
    """The clients of a broker: they come, ask, and leave."""

    def __init__(  # noqa: PLR0913, PLR0917 - what clients' requests go to
        self,
        core: Broker,
        effects: Effects,
        backpressure: Backpressure,
        recorder: Recorder,
        inquiries: Inquiries,
        pace: Pace,
        *,
        clients: dict[str, ClientSession],
        limits: Limits,
        posting: Posting | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        self._posting = posting
        self._keeping = keeping
        self._core = core
        self._effects = effects
        self._backpressure = backpressure
        self._recorder = recorder
        self._clients = clients
        self._batch_max = min(BATCH_MAX, core.at_once_max)
        self._bytes_max = limits.frame_max // 2
        self._limits = limits
        self._hosts: Counter[str] = Counter()
        self._loop = asyncio.get_running_loop()
        self._publishing: OrderedDict[ClientSession, None] = OrderedDict()
        self._begun: dict[ClientSession, _Publication] = {}
        self._turns = Turns(self.add, self._loop.call_later)
        self.rates = Rates(limits.publish_bytes_per_s)
        changes = core, effects, recorder, inquiries, pace
        self._changes = Changing(*changes, lambda: self.may_change)
        self._is_scheduled = False
        self.is_open = False
        self.is_closed = False
        """Whether the broker stops: clients whose connections break are gone."""

        self.published = 0
        self.undelivered = 0
        """Deliveries for clients that left before they had them."""

        self.dropped = 0
        """Deliveries that were dropped for slow clients which have left since."""

    # What opens and closes it

    def open(self) -> None:
        """Take requests from here on."""
        self.is_open, self.is_closed = True, False
        self.wake()

    def close(self) -> None:
        """Take no more requests; what is under way goes on."""
        self.is_open, self.is_closed = False, True
        for session in [each for each in self._clients.values() if each.is_kept]:
            session.end("the broker stops")

    @property
    def may_publish(self) -> bool:
        """Whether publications may be taken in now, wherever they go."""
        return self.is_open and not self._backpressure.holds

    @property
    def may_change(self) -> bool:
        """Whether changes of subscriptions may be taken in now."""
        return self.is_open and not self._backpressure.change_brokers

    def wake(self) -> None:
        """Take a turn soon, if anything may be done: something has changed."""
        if self._publishing and self.is_open:
            self._schedule()
        self._changes.wake()

    # Clients

    @property
    def waiting(self) -> int:
        """How many clients have publications that wait."""
        return len(self._publishing) + sum(bool(s.publications) for s in self._turns.resting)

    def refusal(self, session: ClientSession) -> OctopisError | None:
        """Return why a client is not taken in, if it is not."""
        permit = session.permit
        if permit is not None and session.is_observer and not permit.permissions.sees_status:
            return NotPermitted(NO_STATUS)
        older = self._clients.get(session.client)
        if older is not None and older.known_by != session.known_by:
            return ConnectionFailed(f"the name {session.client!r} is another client's here")
        most = self._limits.clients_per_host
        is_here = older is not None and older.host == session.host
        if not is_here and self._hosts[session.host] >= most:
            return ConnectionFailed(f"there are {most:,} clients of {session.host} here already")
        return None

    def arrive(self, session: ClientSession) -> None:
        """Take a client in. One of the same name is the same client, whose line was cut."""
        older = self._clients.get(session.client)
        if older is not None:
            _log.warning("%s: %s has connected anew", self._core.id, session.name)
            older.connection.close("the client has connected anew")
            older.end("the client has connected anew")
        self._clients[session.client] = session
        self._hosts[session.host] += 1
        _log.debug("%s: %s is here", self._core.id, session.name)

    def cut_off(self, session: ClientSession) -> None:
        """Forget what a client wanted to hear over a connection that is gone."""
        self._changes.cut_off(session)

    def move(self, session: ClientSession, host: str) -> None:
        """Note that a client is back, over another connection, and perhaps from another address."""
        _log.debug("%s: %s is back", self._core.id, session.name)
        self._hosts[host] += 1
        self._count_out(session.host)
        session.host = host

    def leave(self, session: ClientSession, reason: str) -> bool:
        """End the subscriptions of a client that is gone; tell whether it was still here."""
        if self._clients.get(session.client) is not session:
            return False
        del self._clients[session.client]
        self._count_out(session.host)
        self._effects.forget(session)
        self.cut_off(session)
        self._publishing.pop(session, None)
        self._begun.pop(session, None)
        self._turns.leave(session)
        self.rates.leave(session)
        self.undelivered += session.undelivered
        self.dropped += session.dropped
        _log.debug("%s: %s has left: %s", self._core.id, session.name, one_line(reason))
        self._changes.leave(session.client)
        return True

    def roles_changed(self, current: Callable[[Identity], Identity | None]) -> int:
        """Send away whose role allows something else now; return how many.

        `current` says what an identity is now; None where it may not be in any more. Whoever was
        sent away may log in anew; what was chosen for it by its old role is not delivered.
        """
        gone = 0
        for session in list(self._clients.values()):
            if session.identity is None:
                continue
            now = current(session.identity)
            if now is None:
                session.dismiss(f"{session.identity.name!r} may not be in any more")
            elif is_same(now.permissions, session.identity.permissions):
                continue
            else:
                session.dismiss(f"what {now.name!r} may do has changed: {LOG_IN_ANEW}")
            gone += 1
        return gone

    def _count_out(self, host: str) -> None:
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    def add(self, session: ClientSession) -> None:
        """Note that a session has requests that wait."""
        if session.publications and session not in self._turns.resting:
            self._line_up(session)
            self._schedule()
        if session.changes:
            self._changes.add(session)

    def _line_up(self, session: ClientSession) -> None:
        """Let a client publish when it is its turn; who has published too much rests before."""
        if session in self._publishing:
            return
        if rest_s := self.rates.rest_s(session):
            self._turns.rest(session, rest_s)
        else:
            self._publishing[session] = None

    # A turn

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        self._turns.begin()
        is_behind = self._keeping is not None and self._keeping.is_behind
        goes_on = self._publishing and self.is_open and not is_behind and self._publish()
        self._effects.flush()
        for session in self._turns.end():
            self._publishing.pop(session, None)
        if goes_on:
            self._schedule()

    def _publish(self) -> bool:
        """Route one batch of what all clients have waiting, and answer what is whole.

        Returns whether there is more that may be routed.
        """
        batch: list[Published] = []
        done: list[tuple[ClientSession, _Publication]] = []
        held: dict[ClientSession, None] = {}
        is_sent = self._posting is not None or self._core.reaches_all
        while self._publishing and len(batch) < self._batch_max:
            session = next(iter(self._publishing))
            if not self._turns.may_join(session):
                break
            del self._publishing[session]
            publication = self._go_on(session) or self._begin(session)
            if publication is not None:
                start = publication.taken
                part = publication.notifications[start : start + self._batch_max - len(batch)]
                part = self._turns.fitting(session, part)
                if self._backpressure.holds:
                    part, is_held = self._free(publication, part)
                    held |= dict.fromkeys([session] if is_held else ())
                publication.taken += len(part)
                batch += part
                if not is_sent:  # by itself, to know whose copies go nowhere
                    publication.unsent += self._route(part)
                if publication.taken == len(publication.notifications):
                    del self._begun[session]
                    session.finish_publication()
                    done.append((session, publication))
            if session.publications and session not in held:
                self._line_up(session)
        goes_on = bool(self._publishing)
        self._publishing |= held
        if self._keeping is not None:
            self._keep(self._keeping, batch, done)
            return goes_on
        if batch and is_sent:
            self._route(batch)
        self._answer(done)
        return goes_on

    def _answer(self, done: list[tuple[ClientSession, _Publication]]) -> None:
        unheard = len(self._core.unheard)
        for session, publication in done:
            session.answer(publication.request, None, publication.unsent, unheard)
            self._effects.add(session)

    def _free(
        self, publication: _Publication, part: list[Published]
    ) -> tuple[list[Published], bool]:
        """Return the notifications before the first that goes where nothing goes for now."""
        backpressure = self._backpressure
        if publication.held_by == backpressure.version:  # nothing changed since it was looked at
            return [], True
        count = self.free(part, backpressure.is_held)
        if count < len(part):
            publication.held_by = backpressure.version
        return part[:count], count < len(part)

    def free(self, part: list[Published], is_held: Callable[[Entry], bool]) -> int:
        """Return how many notifications stand before the first that has to wait."""
        if self._backpressure.holds:
            for number, entries in enumerate(self._core.matching(part)):
                if any(map(is_held, entries)):
                    return number
        return len(part)

    def _keep(
        self,
        keeping: Keeping,
        batch: list[Published],
        done: list[tuple[ClientSession, _Publication]],
    ) -> None:
        """Let publications go on their way, and answer those that are whole, from disk."""
        if batch or done:
            self.published += len(batch)
            self._recorder.published(batch)
            for session, each in done:
                session.syncing.add(each.request)
            keeping.take(batch, [Answer(session, each.request) for session, each in done])

    def _route(self, batch: list[Published]) -> int:
        """Route notifications, and return how many copies could not be sent."""
        before = self._core.counters.unsent
        self.published += len(batch)
        self._recorder.published(batch)
        for effects in self._core.publishes_in_parts(batch, time.monotonic_ns()):
            self._effects.carry_out(effects)
            if len(batch) > self._core.batch_max:  # let them go before the next is planned
                self._effects.flush()
        if self._posting is None:
            return self._core.counters.unsent - before
        self._posting.stir()
        return 0  # what has no way now is sent again

    def _go_on(self, session: ClientSession) -> _Publication | None:
        """Return the publication of a client that has begun, unless it has waited too long."""
        publication = self._begun.get(session)
        if publication is None or publication.taken or self._keeping is None:
            return publication
        return None if self._keeping.refusal() is not None else publication

    def _begin(self, session: ClientSession) -> _Publication | None:
        """Return the publication of a client whose turn it is; what makes no sense is refused."""
        request, permit = session.publications[0], session.permit
        self.rates.take(session, len(request.notifications))
        self._begun.pop(session, None)
        try:
            if self._keeping is not None and (full := self._keeping.refusal()) is not None:
                raise full
            notifications = decode_checked(
                request.notifications, session.client, self._bytes_max, session.source
            )
            if permit is not None:
                notifications = permit.published(notifications, self._bytes_max)
        except (InvalidNotification, NotPermitted, StoreFailed) as refusal:
            session.finish_publication()
            session.answer(request.request, refusal)
            self._effects.add(session)
            return None
        except ProtocolError as failure:
            session.publications.clear()
            session.fail(failure)
            return None
        publication = self._begun[session] = _Publication(request.request, notifications)
        return publication
