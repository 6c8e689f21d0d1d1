"""The broker's part when durable subscriptions move (octopis.core.delivery.lasting.moving)."""

import logging
import time
from functools import partial
from itertools import pairwise
from typing import Protocol

from octopis.broker.clients.rates import Rates
from octopis.broker.clients.session import ClientSession
from octopis.broker.disk.keeping import Answer, Keeping
from octopis.broker.disk.owners import Owners
from octopis.broker.disk.permitted import visible
from octopis.broker.disk.slowed import Slowed
from octopis.broker.effects import Effects
from octopis.core.delivery.lasting.durables import Durable, id_of
from octopis.core.delivery.lasting.records import DurableState
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.core.routing import Broker
from octopis.core.routing.broker import DURABLE
from octopis.core.wire.moving import (
    COPY_MAX,
    BeginDurable,
    CopyDurable,
    Excerpts,
    FinishDurable,
    ForgetDurable,
    JoinDurable,
    LeaveDurable,
    Left,
    Merged,
    MoveAnswer,
    MoveRequest,
    Passage,
    PassDurable,
    TakeDurable,
    encode_move_answer,
)
from octopis.core.wire.published import decode_one
from octopis.errors import InvalidSubscription, LabelOrderError, StoreFull

COPY_BYTES = 2**20
"""How many bytes are copied at a time, or a single longer notification."""

MERGE_MAX = 4_096
"""How many that have come meanwhile are taken over in one turn of the event loop."""

_log = logging.getLogger(__name__)


def has_moved(name: str, to: str) -> str:
    """Return what those are told who look for something where it does not live any more."""
    return f"the durable subscription {name!r} has moved: it lives at {to} now, connect there"


class Home(Protocol):
    """The desk, as far as moves go."""

    owners: Owners

    def found(self, session: ClientSession, name: str, *, shared: bool) -> Durable:
        """Return a client's own durable subscription, or raise InvalidSubscription."""

    def answer_synced(self, session: ClientSession, request: int, durable: Durable | None) -> None:
        """Answer when what was asked for is on disk."""

    def unsubscribe(self, durable: Durable) -> None:
        """Let the overlay know that nothing is to come here for one any more."""

    def drop(self, durable: Durable) -> None:
        """Keep nothing more for one, and let the overlay and its owner's share know."""

    def end_reads(self, durable: Durable, reason: str) -> None:
        """Tell who reads one why it is not here any more."""


class Moving:
    """What leaves a broker, and what joins it."""

    def __init__(  # noqa: PLR0913, PLR0917 - what moves go through
        self,
        keeping: Keeping,
        core: Broker,
        effects: Effects,
        home: Home,
        rates: Rates,
        window: int,
    ) -> None:
        self._slowed = Slowed[MoveRequest](rates, window, self._do, effects)
        self._keeping = keeping
        self._channels = keeping.channels
        self._durables = keeping.channels.durables
        self._moves = keeping.channels.moves
        self._core = core
        self._effects = effects
        self._home = home

    def take(self, session: ClientSession, request: MoveRequest) -> None:
        """Do what a client asks for, perhaps later, or raise InvalidSubscription, StoreFailed."""
        self._slowed.take(session, request)

    def _do(self, session: ClientSession, request: MoveRequest) -> None:
        self._keeping.check()
        match request:
            case JoinDurable():
                self._join(session, request)
            case PassDurable():
                self._say_passage(session, request)
            case LeaveDurable():
                self._leave(session, request)
            case CopyDurable():
                self._copy(session, request)
            case BeginDurable():
                self._begin(session, request)
            case TakeDurable():
                self._take_copy(session, request)
            case FinishDurable():
                self._finish(session, request)
            case ForgetDurable():
                self._forget(session, request)

    # At any broker

    def _say_passage(self, session: ClientSession, request: PassDurable) -> None:
        """Say what is known now, when it is on disk."""
        holder, toward = self._broker(request.holder), self._broker(request.toward)
        identity = id_of(request.name, request.moves)
        if holder == self._core.id:
            knows = self._core.holder_of(identity) == DURABLE
        else:
            has = self._channels.hosts.where(request.name).get(holder)
            knows = has is not None and has.id == identity
        knows = knows and self._core.heard_of(holder) >= request.version
        version = self._core.heard_of(self._core.id)
        about = self._channels.passage(toward)
        self._answer_synced(session, Passage(request.request, knows, *about, version))

    def _broker(self, name: str) -> BrokerId:
        try:
            found = BrokerId.parse(name)
        except LabelOrderError as failure:
            raise InvalidSubscription(str(failure), name) from None
        if not self._channels.has_place(found):
            raise InvalidSubscription(f"there is no broker {name}", name)
        return found

    def _answer_synced(self, session: ClientSession, answer: MoveAnswer) -> None:
        asked = [Answer(session, answer.request)]
        self._keeping.when_synced(partial(self._tell, session, answer), asked)

    def _tell(self, session: ClientSession, answer: MoveAnswer) -> None:
        session.tell(encode_move_answer(answer))
        self._effects.add(session)

    # At the broker that it leaves

    def _leave(self, session: ClientSession, request: LeaveDurable) -> None:
        name = request.name
        durable = self._home.found(session, name, shared=request.shared)
        state, to = durable.state, self._broker(request.to)
        if state.moved_to not in {"", to.short}:
            reason = f"the durable subscription {name!r} has moved to {state.moved_to}"
            raise InvalidSubscription(reason, name)
        if state.joins or state.moves + 1 != request.moves:
            reason = f"the durable subscription {name!r} has moved {state.moves} times, and not so"
            raise InvalidSubscription(reason, name)
        if state.is_suspended:
            reason = f"{name!r} is suspended: it can move when all that it has is acknowledged"
            raise InvalidSubscription(reason, name)
        if not state.moved_to:
            self._moves.leave(durable, to.short, self._channels.cut())
            self._home.end_reads(durable, has_moved(name, to.short))
        asked = Answer(session, request.request)
        self._keeping.when_synced(partial(self._left, *asked, durable), [asked])

    def _left(self, session: ClientSession, request: int, durable: Durable) -> None:
        """Let others know, now that it is on disk, and answer."""
        self._home.unsubscribe(durable)
        state = durable.state
        assert state.cut is not None, "that was fixed when it left"
        about = state.acked, state.until, state.dropped, state.policy, state.cut
        self._tell(session, Left(request, *about))

    def _copy(self, session: ClientSession, request: CopyDurable) -> None:
        durable = self._home.found(session, request.name, shared=request.shared)
        if not durable.state.moved_to:
            reason = f"{request.name!r} lives here: only what has moved is copied"
            raise InvalidSubscription(reason, request.name)
        found = self._durables.read(durable, request.after, COPY_MAX, COPY_BYTES)
        upto = found.positions[-1] if found.positions else request.after + found.missing
        found = visible(session.permit, found, request.after)
        self._tell(session, Excerpts(request.request, list(found.positions), found.bodies, upto))

    def _forget(self, session: ClientSession, request: ForgetDurable) -> None:
        durable = self._durables.get(request.name)
        if durable is not None:
            durable = self._home.found(session, request.name, shared=request.shared)
            if durable.state.moved_to != request.to:
                reason = f"{request.name!r} has not moved to {request.to}"
                raise InvalidSubscription(reason, request.name)
            self._home.drop(durable)
        self._home.answer_synced(session, request.request, None)

    # At the broker that it joins

    def _join(self, session: ClientSession, request: JoinDurable) -> None:
        durable = self._durables.get(request.name)
        if durable is None:
            durable = self._make(session, request, "" if request.shared else session.owner)
        else:
            durable = self._home.found(session, request.name, shared=request.shared)
            state = durable.state
            is_same = (state.epoch, state.moves) == (request.epoch, request.moves)
            if not is_same or state.moved_to:
                reason = (
                    f"there is a durable subscription {request.name!r} here already; if it is half "
                    "of a move, octopis durable move --abort takes it away"
                )
                raise InvalidSubscription(reason, request.name)
        self._home.answer_synced(session, request.request, durable)

    def _make(self, session: ClientSession, request: JoinDurable, owner: str) -> Durable:
        """Keep for what lives elsewhere, as is known here, and is the client's own."""
        name, source = request.name, self._broker(request.source)
        there = self._channels.hosts.where(name).get(source)
        if there is None or there.id != id_of(name, request.moves - 1) or there.owner != owner:
            reason = f"no durable subscription {name!r} of this owner is known at {source.short}"
            raise InvalidSubscription(reason, name)
        self._home.owners.check(owner, name, there.filter)
        now_ns = time.time_ns()
        state = DurableState(
            name=name,
            key=0,
            epoch=request.epoch,
            owner=owner,
            filter=str(there.filter),
            policy=request.policy,
            moves=request.moves,
            created_ns=request.created_ns,
            used_ns=now_ns,
            joins=True,
            asked=self._asked(session, request),
        )
        about = id_of(name, request.moves), there.filter, request.moves
        effects = self._core.client_subscribes(
            DURABLE, *about, time.monotonic_ns(), owner=owner, durable=True
        )
        durable = self._moves.join(state)
        self._home.owners.note(durable, there.filter)
        self._effects.carry_out(effects)
        _log.info(
            "%s: durable subscription %r is on its way here from %s",
            *(self._core.id, name, source),
        )
        return durable

    @staticmethod
    def _asked(session: ClientSession, request: JoinDurable) -> str:
        """Return what a durable subscription of somebody with a role is for, as its owner says.

        It is opened with that here, and is then given what the role allows of it.
        """
        if session.permit is None or not request.asked:
            return ""
        return str(parse_filter(request.asked))

    def _joining(
        self, session: ClientSession, request: BeginDurable | TakeDurable | FinishDurable
    ) -> Durable:
        durable = self._home.found(session, request.name, shared=request.shared)
        if not durable.state.joins:
            reason = f"the durable subscription {request.name!r} is not on its way here"
            raise InvalidSubscription(reason, request.name)
        return durable

    def _begin(self, session: ClientSession, request: BeginDurable) -> None:
        durable = self._joining(session, request)
        if request.acked > request.until:
            reason = f"{request.name!r} ends at {request.until:,}, before {request.acked:,}"
            raise InvalidSubscription(reason, request.name)
        if durable.state.cut is None:
            about = request.acked, request.until, request.dropped, request.policy, request.cut
            self._moves.begin(durable, *about)
        self._home.answer_synced(session, request.request, durable)

    def _take_copy(self, session: ClientSession, request: TakeDurable) -> None:
        durable, name = self._joining(session, request), request.name
        positions, after = request.positions, durable.next - 1
        is_sound = (
            len(positions) == len(request.bodies)
            and all(a < b for a, b in pairwise(positions))
            and (not positions or 0 < positions[0] <= positions[-1] <= request.upto)
            and request.upto <= durable.state.until
        )
        if durable.state.cut is None or not is_sound:
            raise InvalidSubscription(f"that is no copy of {name!r} after {after:,}", name)
        if self._channels.is_blocked:
            raise StoreFull(str(self._core.id), f"there is no room for a copy of {name!r}")
        for body in request.bodies:
            decode_one(body)
        self._moves.copy(durable, positions, request.bodies, request.upto)
        self._home.answer_synced(session, request.request, durable)

    def _finish(self, session: ClientSession, request: FinishDurable) -> None:
        durable = self._home.found(session, request.name, shared=request.shared)
        left = 0
        if durable.state.joins:
            missing = durable.state.until - durable.next + 1
            if durable.state.cut is None or missing > 0:
                reason = f"{request.name!r} is not copied yet: {missing:,} are missing"
                raise InvalidSubscription(reason, request.name)
            left = self._moves.merge(durable, MERGE_MAX)
            if not left:
                _log.info("%s: durable subscription %r lives here", self._core.id, request.name)
        self._answer_synced(session, Merged(request.request, left))
