"""Changes of subscriptions that clients ask for, and those that clients leave behind.

They are taken in by steps, of which `pace` says when: each goes to every broker, and takes long.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

from octopis.broker.clients.session import ClientSession
from octopis.broker.effects import Effects
from octopis.broker.links.settling import Inquiries
from octopis.broker.pace import Pace
from octopis.broker.recorder import Recorder
from octopis.core.delivery.lasting.durables import PREFIX
from octopis.core.filters import parse_filter
from octopis.core.routing import Broker
from octopis.core.wire.client import Change, SettledRequest, SubscribeRequest, UnsubscribeRequest
from octopis.errors import (
    InvalidConfiguration,
    InvalidFilter,
    InvalidSubscription,
    NotPermitted,
    ProtocolError,
)


class Changing:
    """The changes that wait at a broker. `may_change` says whether any may be taken in now."""

    def __init__(  # noqa: PLR0913, PLR0917 - what changes go to
        self,
        core: Broker,
        effects: Effects,
        recorder: Recorder,
        inquiries: Inquiries,
        pace: Pace,
        may_change: Callable[[], bool],
    ) -> None:
        self._core = core
        self._effects = effects
        self._recorder = recorder
        self._inquiries = inquiries
        self._pace = pace
        self._may_change = may_change
        self._changing: OrderedDict[ClientSession, None] = OrderedDict()
        self._leaving: dict[str, dict[str, None]] = {}
        """Clients that are gone, with those of their subscriptions that are to be ended still."""

    def wake(self) -> None:
        """Take steps soon, if any may be taken: something has changed."""
        if self._changing and self._may_change():
            self._pace.add(self)

    def add(self, session: ClientSession) -> None:
        """Note that a client has changes that wait."""
        self._changing.setdefault(session)
        self._pace.add(self)

    def cut_off(self, session: ClientSession) -> None:
        """Forget what a client wanted to hear over a connection that is gone."""
        self._changing.pop(session, None)
        self._inquiries.leave(session)

    def leave(self, client: str) -> None:
        """End the subscriptions of a client that is gone, one after the other."""
        left = self._core.subscriptions_of(client)
        if left:
            self._leaving.setdefault(client, {}).update(dict.fromkeys(left))
            self._pace.add(self)

    def step(self) -> bool:
        """End a subscription of a client that is gone, and do what one that is here wants."""
        if self._leaving:
            self._end_subscription()
        if self._changing and self._may_change():
            session, _ = self._changing.popitem(last=False)
            self._change_one(session, session.changes.popleft())
            self._effects.add(session)
            if session.changes:
                self._changing[session] = None
        self._core.table.tidy()
        return bool(self._leaving) or (bool(self._changing) and self._may_change())

    def rest(self) -> None:
        """Send what came of it."""
        self._effects.flush()

    def _end_subscription(self) -> None:
        client, left = next(iter(self._leaving.items()))
        subscription, _ = left.popitem()
        if not left:
            del self._leaving[client]
        if self._core.holder_of(subscription) == client:  # else it has moved away meanwhile
            self._effects.carry_out(
                self._core.client_unsubscribes(client, subscription, time.monotonic_ns())
            )

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
        except (InvalidFilter, InvalidSubscription, InvalidConfiguration, NotPermitted) as refusal:
            session.answer(request.request, refusal)
        except ProtocolError as failure:
            session.changes.clear()
            session.fail(failure)
        else:
            session.answer(request.request)

    def _subscribe(self, session: ClientSession, request: SubscribeRequest) -> None:
        permit = session.permit
        known_as = request.id if permit is None else permit.subscription(request.id)
        if known_as.startswith(PREFIX):
            reason = f"names that begin with {PREFIX!r} are those of durable subscriptions"
            raise InvalidSubscription(reason, request.id)
        if session.numbers.get(known_as, request.number) != request.number:
            reason = f"the subscription {request.id!r} has another number already"
            raise InvalidSubscription(reason, request.id)
        filter_ = parse_filter(request.filter, request.dialect)
        if permit is not None:
            filter_ = permit.guarded(filter_)
        share = session.shares.share_of(known_as, filter_)
        if session.client in self._leaving:  # it is back, and goes on with this one
            self._leaving[session.client].pop(known_as, None)
            if not self._leaving[session.client]:
                del self._leaving[session.client]
        effects = self._core.client_subscribes(
            session.client,
            known_as,
            filter_,
            request.epoch,
            time.monotonic_ns(),
            owner=session.owner,
        )
        if request.epoch and not session.numbers:  # it was here, or elsewhere, before
            session.tell_missed_lately()
        if known_as not in session.numbers:
            self._recorder.subscribed(session.client, known_as)
        session.note(known_as, request.number, share)
        self._effects.carry_out(effects)

    def _unsubscribe(self, session: ClientSession, request: UnsubscribeRequest) -> None:
        permit = session.permit
        known_as = request.id if permit is None else permit.subscription(request.id)
        session.forget(known_as)  # also where the subscription has moved away
        self._effects.carry_out(
            self._core.client_unsubscribes(session.client, known_as, time.monotonic_ns())
        )
