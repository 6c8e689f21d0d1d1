"""Where clients ask for their durable subscriptions, and acknowledge what they have read."""

import asyncio
import logging
import time
from functools import partial

from octopis.broker.clients.permitted import Permit
from octopis.broker.clients.rates import Rates
from octopis.broker.clients.session import ClientSession
from octopis.broker.disk.asking import Asking
from octopis.broker.disk.committing import Committing
from octopis.broker.disk.keeping import Answer, Keeping
from octopis.broker.disk.moving import Moving, has_moved
from octopis.broker.disk.owners import Owners
from octopis.broker.disk.permitted import asked_of, guarded, lists, permitted, told
from octopis.broker.disk.reads import OnRead, Reads
from octopis.broker.effects import Effects
from octopis.broker.settings import Limits
from octopis.core.delivery.lasting.durables import MOVE, Durable, id_of
from octopis.core.delivery.lasting.records import DurableState, Policy
from octopis.core.filters import parse_filter
from octopis.core.routing import Broker
from octopis.core.routing.broker import DURABLE
from octopis.core.wire.durable import (
    AckDurable,
    DropDurable,
    DurableAnswer,
    DurableInfo,
    DurableRequest,
    ListDurables,
    OpenDurable,
    ReadDurable,
    StagingRequest,
    encode_durable_answer,
)
from octopis.core.wire.moving import MoveRequest
from octopis.errors import InvalidSubscription, OctopisError

_EXPIRE_WARN = 0.8
_USED_S = 60.0
"""So old may be what is on disk of when a subscription was used last."""

_log = logging.getLogger(__name__)


class Desk:
    """The durable subscriptions of a broker, as its clients see them."""

    def __init__(  # noqa: PLR0913, PLR0917 - what clients' wishes go to
        self,
        keeping: Keeping,
        core: Broker,
        effects: Effects,
        committing: Committing,
        on_read: OnRead,
        expire_s: float,
        limits: Limits,
        rates: Rates,
    ) -> None:
        self._keeping = keeping
        self._committing = committing
        call_later = asyncio.get_running_loop().call_later
        self.asking = Asking(self.take, effects.flush, call_later)
        self._durables = keeping.channels.durables
        self._reads = Reads(self._durables, effects, self._read, on_read)
        self._durables.on_more = self._reads.more
        self.owners = Owners(limits, self._durables)
        self._moving = Moving(keeping, core, effects, self, rates, limits.publish_window)
        self._core = core
        self._effects = effects
        self._expire_s = expire_s
        self._begun_ns = time.time_ns()
        self._warned: set[Durable] = set()

    # What clients ask

    def take(self, session: ClientSession, request: DurableRequest) -> None:
        """Do what a client asks for; what is wrong is answered. Raises ProtocolError."""
        number = request.request
        try:
            if session.permit is not None:
                request = permitted(session.permit, request)
            if not isinstance(request, ReadDurable):
                self._do(session, request)
        except OctopisError as refusal:
            session.answer(number, refusal)
        else:
            if isinstance(request, ReadDurable):
                self._reads.take(session, request)
                return
        self._effects.add(session)

    def _do(self, session: ClientSession, request: DurableRequest) -> None:
        if isinstance(request, ListDurables):
            self._list(session, request)
            return
        self._keeping.check()
        if isinstance(request, MoveRequest):
            self._moving.take(session, request)
        elif isinstance(request, OpenDurable):
            self._open(session, request)
        elif isinstance(request, AckDurable):
            self._acknowledge(session, request)
        elif isinstance(request, DropDurable):
            self._drop(session, request)
        elif isinstance(request, StagingRequest):
            self._committing.take(session, request)

    def _open(self, session: ClientSession, request: OpenDurable) -> None:
        durable = self._durables.get(request.name)
        owner = "" if request.shared else session.owner
        if durable is None:
            durable = self._make(session, request, owner)
        else:
            self._check_owner(durable, owner)
            self._check_home(durable)
            if request.filter is not None:
                wanted = str(parse_filter(request.filter, request.dialect))
                asked = durable.state.asked or durable.state.filter
                if wanted != asked:
                    reason = (
                        f"the durable subscription {request.name!r} asks for {asked!r}, not for "
                        f"{wanted!r}; drop it first, or use another name"
                    )
                    raise InvalidSubscription(reason, request.name)
            if session.permit is not None and durable.state.guard != session.permit.guard:
                self._guard_anew(durable, session.permit)
            if request.policy is not None and request.policy is not durable.state.policy:
                self._durables.change(durable, policy=request.policy)
        self.answer_synced(session, request.request, durable)

    def _guard_anew(self, durable: Durable, permit: Permit) -> None:
        """Let one have what the role of whoever opens it allows now; what it has stays."""
        filter_, about = guarded(permit, asked_of(durable.state))
        is_another = about["filter"] != durable.state.filter
        self._durables.change(durable, **about)
        self.owners.note(durable, filter_)
        if is_another and self._core.holder_of(durable.id) is not None:
            ask = DURABLE, durable.id, filter_, None, time.monotonic_ns()
            owner = durable.state.owner
            effects = self._core.client_subscribes(*ask, owner=owner, durable=True, anew=True)
            self._effects.carry_out(effects)

    def _make(self, session: ClientSession, request: OpenDurable, owner: str) -> Durable:
        name = request.name
        if not name.isprintable():
            raise InvalidSubscription("a name is printable", name)
        if MOVE in name:
            raise InvalidSubscription(f"no {MOVE} stands in a name", name)
        for elsewhere in self._keeping.channels.hosts.where(name):
            reason = (
                f"the durable subscription {name!r} lives at {elsewhere.short}: connect there, or "
                "move it (octopis durable move)"
            )
            raise InvalidSubscription(reason, name)
        if request.filter is None:
            reason = f"there is no durable subscription {name!r} here, and no filter to make it"
            raise InvalidSubscription(reason, name)
        filter_, about = guarded(session.permit, parse_filter(request.filter, request.dialect))
        self.owners.check(owner, name, filter_)
        now_ns = time.time_ns()
        state = DurableState(
            name=name,
            key=0,
            epoch=now_ns,
            owner=owner,
            **about,
            policy=request.policy or Policy.REFUSE,
            moves=0,
            created_ns=now_ns,
            used_ns=now_ns,
        )
        durable = self._durables.make(state)
        self.owners.note(durable, filter_)
        self._keeping.when_synced(partial(self._announce, durable))
        return durable

    def _announce(self, durable: Durable) -> None:
        """Let the overlay know of a durable subscription.

        Not before it is on disk: what others send for it would be lost with it.
        """
        name, owner, now_ns = durable.state.name, durable.state.owner, time.monotonic_ns()
        if self._durables.get(name) is not durable:  # it was dropped at once
            return
        filter_ = parse_filter(durable.state.filter)
        try:
            effects = self._core.client_subscribes(
                DURABLE, id_of(name), filter_, None, now_ns, owner=owner, durable=True
            )
        except InvalidSubscription as refusal:  # somebody else was quicker, elsewhere
            self._end(durable, str(refusal))
        else:
            self._effects.carry_out(effects)
            _log.info("%s: durable subscription %r begins", self._core.id, name)

    def _acknowledge(self, session: ClientSession, request: AckDurable) -> None:
        durable = self.found(session, request.name, shared=request.shared)
        self._check_home(durable)
        if request.epoch != durable.state.epoch:
            reason = f"the durable subscription {request.name!r} was made anew since"
            raise InvalidSubscription(reason, request.name)
        if request.position > durable.end:
            reason = (
                f"{request.name!r} has no position {request.position:,}: {durable.end:,} is last"
            )
            raise InvalidSubscription(reason, request.name)
        self._durables.acknowledge(durable, request.position, time.time_ns())
        self.answer_synced(session, request.request, None)

    def _drop(self, session: ClientSession, request: DropDurable) -> None:
        durable = self.found(session, request.name, shared=request.shared)
        self._end(durable, f"the durable subscription {request.name!r} was dropped")
        self.answer_synced(session, request.request, None)

    def end_named(self, name: str, reason: str) -> bool:
        """End the one of that name, whoever's it is; tell whether there was one.

        On a disk that has failed it stays until the broker starts again.
        """
        durable = self._durables.get(name)
        if durable is None or self._keeping.failure is not None:
            return False
        self._end(durable, reason)
        self._effects.flush()
        return True

    def _end(self, durable: Durable, reason: str) -> None:
        self.drop(durable)
        self.end_reads(durable, reason)

    def drop(self, durable: Durable) -> None:
        """Keep nothing more for one, and let the overlay and its owner's share know."""
        self.unsubscribe(durable)
        self._durables.drop(durable)
        self.owners.forget(durable)

    def unsubscribe(self, durable: Durable) -> None:
        """Let the overlay know that nothing is to come here for one any more."""
        if self._core.holder_of(durable.id) is not None:
            self._effects.carry_out(
                self._core.client_unsubscribes(DURABLE, durable.id, time.monotonic_ns())
            )

    def end_reads(self, durable: Durable, reason: str) -> None:
        """Tell who reads one why it is not here any more."""
        self._reads.ended(durable, reason)
        _log.info("%s: %s", self._core.id, reason)

    def _list(self, session: ClientSession, request: ListDurables) -> None:
        permit = session.permit
        found = [
            told(permit, self.info_of(each)) for each in self._durables if lists(permit, each.state)
        ]
        session.tell(encode_durable_answer(DurableAnswer(request.request, found)))

    def found(self, session: ClientSession, name: str, *, shared: bool) -> Durable:
        """Return a client's own durable subscription, or raise InvalidSubscription."""
        durable = self._durables.get(name)
        if durable is None:
            known = [each.short for each in self._keeping.channels.hosts.where(name)]
            where = f"; it lives at {known[0]}" if known else ""
            reason = f"there is no durable subscription {name!r} here{where}"
            raise InvalidSubscription(reason, name)
        self._check_owner(durable, "" if shared else session.owner)
        return durable

    def _check_owner(self, durable: Durable, owner: str) -> None:
        if durable.state.owner != owner:
            name = durable.state.name
            reason = f"the durable subscription {name!r} is another's: is the secret the right one?"
            raise InvalidSubscription(reason, name)

    def _check_home(self, durable: Durable) -> None:
        """Raise InvalidSubscription where something does not live here."""
        name, state = durable.state.name, durable.state
        if state.moved_to:
            raise InvalidSubscription(has_moved(name, state.moved_to), name)
        if state.joins:
            reason = (
                f"the durable subscription {name!r} is on its way here: octopis durable move ends "
                "that, or with --abort lets it stay where it was"
            )
            raise InvalidSubscription(reason, name)

    def _read(self, session: ClientSession, request: ReadDurable) -> Durable:
        durable = self.found(session, request.name, shared=request.shared)
        self._check_home(durable)
        if request.after > durable.end:
            reason = f"{request.name!r} ends at {durable.end:,}, before {request.after:,}"
            raise InvalidSubscription(reason, request.name)
        return durable

    def answer_synced(self, session: ClientSession, request: int, durable: Durable | None) -> None:
        """Answer when what was asked for is on disk."""

        def answer() -> None:
            if durable is None:
                session.answer(request)
            else:
                info = told(session.permit, self.info_of(durable))
                session.tell(encode_durable_answer(DurableAnswer(request, [info])))
            self._effects.add(session)

        self._keeping.when_synced(answer, [Answer(session, request)])

    def info_of(self, durable: Durable) -> DurableInfo:
        """Return how a durable subscription is."""
        state = durable.state
        return DurableInfo(
            name=state.name,
            filter=state.asked or state.filter,
            policy=state.policy.value,
            epoch=state.epoch,
            acked=state.acked,
            end=durable.end,
            bytes=durable.bytes,
            dropped=state.dropped,
            suspended=state.is_suspended,
            shared=not state.owner,
            created_ns=state.created_ns,
            used_ns=state.used_ns,
            moved_to=state.moved_to,
            joins=state.joins,
            moves=state.moves,
            ends_ns=self.ends_ns(durable),
        )

    # Time

    def ends_ns(self, durable: Durable) -> int:
        """Return when one ends that nobody uses; 0: not soon."""
        age_s = self._age_s(durable)
        if not self._may_end(durable) or age_s <= _EXPIRE_WARN * self._expire_s:
            return 0
        return time.time_ns() + int((self._expire_s - age_s) * 1e9)

    def _age_s(self, durable: Durable) -> float:
        """Return how long nobody has used one; a broker that was down long gives time to do so."""
        now_ns = time.time_ns()
        unused_s, up_s = (now_ns - durable.state.used_ns) / 1e9, (now_ns - self._begun_ns) / 1e9
        return min(unused_s, _EXPIRE_WARN * self._expire_s + up_s)

    def _may_end(self, durable: Durable) -> bool:
        return bool(self._expire_s) and not durable.state.joins and not durable.state.moved_to

    def look_after(self, now: float) -> None:
        """Answer reads that have waited long enough; end what nobody has used for long."""
        read = self._reads.look_after(now)
        if self._keeping.failure is None:
            for durable in read:
                self._use(durable)
            for durable in self._durables if self._expire_s else ():
                if self._may_end(durable):
                    self._look_at_age(durable)
            self._committing.look_after()
        self._effects.flush()

    def _use(self, durable: Durable) -> None:
        """Know that somebody reads it, also where there is nothing to acknowledge."""
        if self._durables.get(durable.state.name) is not durable:  # it was dropped since
            return
        now_ns = time.time_ns()
        if now_ns - durable.state.used_ns > min(_USED_S, self._expire_s / 10 or _USED_S) * 1e9:
            self._durables.change(durable, used_ns=now_ns)

    def _look_at_age(self, durable: Durable) -> None:
        age_s, name = self._age_s(durable), durable.state.name
        if age_s <= _EXPIRE_WARN * self._expire_s:
            self._warned.discard(durable)
        elif durable not in self._warned:
            self._warned.add(durable)
            left_s = self._expire_s - age_s
            _log.warning(
                "%s: nobody uses the durable subscription %r; it ends in %.0f s",
                *(self._core.id, name, max(0.0, left_s)),
            )
        elif age_s > self._expire_s and self._core.holder_of(durable.id) is not None:
            self._end(
                durable, f"nobody has used the durable subscription {name!r} for {age_s:.0f} s"
            )
            self._warned.discard(durable)
