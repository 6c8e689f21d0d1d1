"""Where clients come in, and where their requests wait for their turn.

Nothing is taken in before the broker has heard of its neighbours, or once it stops. Publications
also wait while there is backpressure anywhere in the overlay; changes of subscriptions while a
queue of this broker is full. A turn of the event loop takes one batch from all clients that have
something waiting, one request of each after the other; so no client can shut others out, and all
that the turn brought is matched together.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping

from msgspec import Struct

from octopis.broker.backpressure import Backpressure
from octopis.broker.effects import Effects
from octopis.broker.link import NeighbourLink
from octopis.broker.recorder import Recorder
from octopis.broker.session import ClientSession
from octopis.broker.settling import Inquiries
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.core.routing import Broker
from octopis.core.wire.client import Change, SettledRequest, SubscribeRequest, UnsubscribeRequest
from octopis.core.wire.published import Published, decode_checked
from octopis.errors import (
    InvalidConfiguration,
    InvalidFilter,
    InvalidNotification,
    InvalidSubscription,
    ProtocolError,
)

BATCH_MAX = 256
CHANGES_MAX = 32
"""Requests of one turn, so that parsing many filters leaves time for others."""

_log = logging.getLogger(__name__)


class _Publication(Struct):
    """A publish request on its way through the batches."""

    request: int
    notifications: list[Published]
    taken: int = 0


class Intake:
    """The clients of a broker: they come, ask, and leave."""

    def __init__(  # noqa: PLR0913 - what clients' requests go to
        self,
        core: Broker,
        effects: Effects,
        backpressure: Backpressure,
        recorder: Recorder,
        inquiries: Inquiries,
        *,
        links: Mapping[BrokerId, NeighbourLink],
        clients: dict[str, ClientSession],
        bytes_max: int,
    ) -> None:
        self._core = core
        self._effects = effects
        self._backpressure = backpressure
        self._recorder = recorder
        self._inquiries = inquiries
        self._links = links
        self._clients = clients
        self._batch_max = min(BATCH_MAX, core.batch_max)
        self._bytes_max = bytes_max
        self._loop = asyncio.get_running_loop()
        self._changing: OrderedDict[ClientSession, None] = OrderedDict()
        self._publishing: OrderedDict[ClientSession, None] = OrderedDict()
        self._begun: dict[ClientSession, _Publication] = {}
        self._is_scheduled = False
        self.is_open = False
        self.published = 0
        self.undelivered = 0
        """Deliveries for clients that left before they had them."""

        self.dropped = 0
        """Deliveries that were dropped for slow clients which have left since."""

    # What opens and closes it

    def open(self) -> None:
        """Take requests from here on."""
        self.is_open = True
        self.wake()

    def close(self) -> None:
        """Take no more requests; what is under way goes on."""
        self.is_open = False

    @property
    def may_publish(self) -> bool:
        """Whether publications may be taken in now."""
        return self.is_open and not self._backpressure.brokers

    @property
    def may_change(self) -> bool:
        """Whether changes of subscriptions may be taken in now."""
        return self.is_open and not any(link.queue.is_full for link in self._links.values())

    def wake(self) -> None:
        """Take a turn soon, if anything may be done."""
        if (self._publishing and self.may_publish) or (self._changing and self.may_change):
            self._schedule()

    # Clients

    @property
    def waiting(self) -> int:
        """How many clients have publications that wait."""
        return len(self._publishing)

    def arrive(self, session: ClientSession) -> None:
        """Take a client in. One of the same name is the same client, whose line was cut."""
        older = self._clients.get(session.client)
        if older is not None:
            older.connection.close("the client has connected anew")
            older.connection_lost(older.connection, "the client has connected anew")
        self._clients[session.client] = session
        _log.debug("%s: %s is here", self._core.id, session.name)

    def leave(self, session: ClientSession, reason: str) -> None:
        """End the subscriptions of a client that is gone."""
        if self._clients.get(session.client) is not session:
            return
        del self._clients[session.client]
        self._effects.forget(session)
        self._changing.pop(session, None)
        self._publishing.pop(session, None)
        self._begun.pop(session, None)
        self._inquiries.leave(session)
        self.undelivered += session.undelivered
        self.dropped += session.dropped
        _log.debug("%s: %s has left: %s", self._core.id, session.name, reason)
        self._effects.carry_out(self._core.client_leaves(session.client, time.monotonic_ns()))
        self._effects.flush()

    def add(self, session: ClientSession) -> None:
        """Note that a session has requests that wait."""
        if session.publications:
            self._publishing.setdefault(session)
        if session.changes:
            self._changing.setdefault(session)
        self._schedule()

    # A turn

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        if self._changing:
            self._change()
        if self._publishing and self.may_publish:
            self._publish()
        self._effects.flush()
        if self._changing or self._publishing:
            self.wake()

    def _publish(self) -> None:
        """Route one batch of what all clients have waiting, and answer what is whole."""
        batch: list[Published] = []
        done: list[tuple[ClientSession, int]] = []
        while self._publishing and len(batch) < self._batch_max:
            session, _ = self._publishing.popitem(last=False)
            publication = self._begun.get(session) or self._begin(session)
            if publication is not None:
                start = publication.taken
                part = publication.notifications[start : start + self._batch_max - len(batch)]
                publication.taken += len(part)
                batch += part
                if publication.taken == len(publication.notifications):
                    del self._begun[session]
                    session.finish_publication()
                    done.append((session, publication.request))
            if session.publications:
                self._publishing[session] = None
        if batch:
            self.published += len(batch)
            self._recorder.published(batch)
            self._effects.carry_out(self._core.client_publishes(batch, time.monotonic_ns()))
        for session, request in done:
            session.answer(request)
            self._effects.add(session)

    def _begin(self, session: ClientSession) -> _Publication | None:
        """Return the publication of a client whose turn it is; what makes no sense is refused."""
        request = session.publications[0]
        try:
            notifications = decode_checked(request.notifications, session.client, self._bytes_max)
        except InvalidNotification as refusal:
            session.finish_publication()
            session.answer(request.request, refusal)
            self._effects.add(session)
            return None
        except ProtocolError as failure:
            session.publications.clear()
            session.connection.fail(failure)
            return None
        publication = self._begun[session] = _Publication(request.request, notifications)
        return publication

    def _change(self) -> None:
        """Subscribe and unsubscribe, one request of each client after the other."""
        for _ in range(CHANGES_MAX):
            if not self._changing or not self.may_change:
                break
            session, _ = self._changing.popitem(last=False)
            self._change_one(session, session.changes.popleft())
            self._effects.add(session)
            if session.changes:
                self._changing[session] = None

    def _change_one(self, session: ClientSession, request: Change) -> None:
        """Do what a client wants; `settled` is answered later, the others now."""
        try:
            if isinstance(request, SettledRequest):
                self._inquiries.ask(session, request)
                return
            if isinstance(request, UnsubscribeRequest):
                self._unsubscribe(session, request)
            else:
                self._subscribe(session, request)
        except (InvalidFilter, InvalidSubscription, InvalidConfiguration) as refusal:
            session.answer(request.request, refusal)
        except ProtocolError as failure:
            session.changes.clear()
            session.connection.fail(failure)
        else:
            session.answer(request.request)

    def _subscribe(self, session: ClientSession, request: SubscribeRequest) -> None:
        if session.numbers.get(request.id, request.number) != request.number:
            reason = f"the subscription {request.id!r} has another number already"
            raise InvalidSubscription(reason, request.id)
        filter_ = parse_filter(request.filter, request.dialect)
        effects = self._core.client_subscribes(
            session.client, request.id, filter_, request.epoch, time.monotonic_ns()
        )
        if request.id not in session.numbers:
            self._recorder.subscribed(session.client, request.id)
        session.numbers[request.id] = request.number
        self._effects.carry_out(effects)

    def _unsubscribe(self, session: ClientSession, request: UnsubscribeRequest) -> None:
        session.numbers.pop(request.id, None)  # also where the subscription has moved away
        self._effects.carry_out(
            self._core.client_unsubscribes(session.client, request.id, time.monotonic_ns())
        )
