"""Where clients ask for their durable subscriptions, read them and acknowledge what they have read.

Reads wait until there is something to read, or for as long as the client wants. One of each client
is answered in a turn of the event loop, so that nobody who reads much keeps others waiting.
"""

import asyncio
import logging
import time
from collections import OrderedDict, deque

from octopis.broker.clients.session import ClientSession
from octopis.broker.disk.keeping import Keeping
from octopis.broker.effects import Effects
from octopis.core.delivery.lasting.durables import Durable, id_of
from octopis.core.delivery.lasting.records import DurableState, Policy
from octopis.core.filters import parse_filter
from octopis.core.routing import Broker
from octopis.core.routing.broker import DURABLE
from octopis.core.wire.durable import (
    READ_BYTES,
    READS_MAX,
    AckDurable,
    DropDurable,
    DurableAnswer,
    DurableInfo,
    DurableRequest,
    ListDurables,
    OpenDurable,
    ReadDurable,
    encode_batch,
    encode_durable_answer,
)
from octopis.errors import InvalidSubscription, OctopisError, ProtocolError, StoreFailed

_EXPIRE_WARN = 0.8
_log = logging.getLogger(__name__)


class Desk:
    """The durable subscriptions of a broker, as its clients see them."""

    def __init__(self, keeping: Keeping, core: Broker, effects: Effects, expire_s: float) -> None:
        self._keeping = keeping
        self._durables = keeping.channels.durables
        self._durables.on_more = self._more
        self._core = core
        self._effects = effects
        self._expire_s = expire_s
        self._loop = asyncio.get_running_loop()
        self._reads: OrderedDict[ClientSession, deque[ReadDurable]] = OrderedDict()
        self._waiting: dict[Durable, dict[tuple[ClientSession, int], tuple[ReadDurable, float]]] = {}
        self._unsynced: deque[tuple[int, ClientSession, int, Durable | None]] = deque()
        self._is_scheduled = False
        self._warned: set[Durable] = set()

    # What clients ask

    def take(self, session: ClientSession, request: DurableRequest) -> None:
        """Do what a client asks for; what is wrong is answered. Raises ProtocolError."""
        if isinstance(request, ReadDurable):
            self._queue(session, request)
            return
        try:
            if isinstance(request, OpenDurable):
                self._open(session, request)
            elif isinstance(request, AckDurable):
                self._acknowledge(session, request)
            elif isinstance(request, DropDurable):
                self._drop(session, request)
            else:
                self._list(session, request)
        except OctopisError as refusal:
            session.answer(request.request, refusal)
        self._effects.add(session)
        self._effects.flush()

    def _open(self, session: ClientSession, request: OpenDurable) -> None:
        if self._keeping.failure is not None:
            raise self._keeping.failure
        durable = self._durables.get(request.name)
        owner = "" if request.shared else session.owner
        if durable is None:
            durable = self._make(request, owner)
        else:
            self._check_owner(durable, owner)
            if request.filter is not None:
                wanted = str(parse_filter(request.filter, request.dialect))
                if wanted != durable.state.filter:
                    reason = (
                        f"the durable subscription {request.name!r} asks for "
                        f"{durable.state.filter!r}, not for {wanted!r}; drop it first, or use "
                        "another name"
                    )
                    raise InvalidSubscription(reason, request.name)
            if request.policy is not None and request.policy is not durable.state.policy:
                self._durables.change(durable, policy=request.policy)
        self._answer_synced(session, request.request, durable)

    def _make(self, request: OpenDurable, owner: str) -> Durable:
        name = request.name
        if not name.isprintable():
            raise InvalidSubscription("a name is printable", name)
        elsewhere = self._core.table.get(id_of(name))
        if elsewhere is not None:
            reason = (
                f"the durable subscription {name!r} lives at {elsewhere.host.short}: connect "
                "there, or move it (octopis durable move)"
            )
            raise InvalidSubscription(reason, name)
        if request.filter is None:
            reason = f"there is no durable subscription {name!r} here, and no filter to make it"
            raise InvalidSubscription(reason, name)
        filter_ = parse_filter(request.filter, request.dialect)
        now_ns = time.time_ns()
        state = DurableState(
            name=name,
            key=0,
            epoch=now_ns,
            owner=owner,
            filter=str(filter_),
            policy=request.policy or Policy.REFUSE,
            moves=0,
            created_ns=now_ns,
            used_ns=now_ns,
        )
        effects = self._core.client_subscribes(
            DURABLE, id_of(name), filter_, None, time.monotonic_ns(), owner=owner, durable=True
        )
        durable = self._durables.make(state)
        self._effects.carry_out(effects)
        _log.info("%s: durable subscription %r begins", self._core.id, name)
        return durable

    def _acknowledge(self, session: ClientSession, request: AckDurable) -> None:
        durable = self._found(session, request.name, shared=request.shared)
        if request.epoch != durable.state.epoch:
            reason = f"the durable subscription {request.name!r} was made anew since"
            raise InvalidSubscription(reason, request.name)
        if request.position > durable.end:
            reason = f"{request.name!r} has no position {request.position:,}: {durable.end:,} is last"
            raise InvalidSubscription(reason, request.name)
        if self._keeping.failure is not None:
            raise self._keeping.failure
        self._durables.acknowledge(durable, request.position, time.time_ns())
        self._answer_synced(session, request.request, None)

    def _drop(self, session: ClientSession, request: DropDurable) -> None:
        durable = self._found(session, request.name, shared=request.shared)
        if self._core.holder_of(durable.id) is not None:
            self._effects.carry_out(
                self._core.client_unsubscribes(DURABLE, durable.id, time.monotonic_ns())
            )
        self._end(durable, f"the durable subscription {request.name!r} was dropped")
        self._answer_synced(session, request.request, None)

    def _end(self, durable: Durable, reason: str) -> None:
        self._durables.drop(durable)
        for (session, number), _ in self._waiting.pop(durable, {}).items():
            session.answer(number, InvalidSubscription(reason, durable.state.name))
            self._effects.add(session)
        _log.info("%s: %s", self._core.id, reason)

    def _list(self, session: ClientSession, request: ListDurables) -> None:
        found = [info_of(each) for each in self._durables]
        session.tell(encode_durable_answer(DurableAnswer(request.request, found)))

    def _found(self, session: ClientSession, name: str, *, shared: bool) -> Durable:
        durable = self._durables.get(name)
        if durable is None:
            known = self._core.table.get(id_of(name))
            where = f"; it lives at {known.host.short}" if known is not None else ""
            reason = f"there is no durable subscription {name!r} here{where}"
            raise InvalidSubscription(reason, name)
        self._check_owner(durable, "" if shared else session.owner)
        return durable

    def _check_owner(self, durable: Durable, owner: str) -> None:
        if durable.state.owner != owner:
            name = durable.state.name
            reason = f"the durable subscription {name!r} is another's: is the secret the right one?"
            raise InvalidSubscription(reason, name)

    # Answers that wait for the disk

    def _answer_synced(
        self, session: ClientSession, request: int, durable: Durable | None
    ) -> None:
        self._unsynced.append((self._keeping.store.ticket, session, request, durable))
        self.synced()

    def synced(self) -> None:
        """Answer what has waited for the disk."""
        done = self._keeping.store.synced
        while self._unsynced and self._unsynced[0][0] <= done:
            _, session, request, durable = self._unsynced.popleft()
            if durable is None:
                session.answer(request)
            else:
                session.tell(encode_durable_answer(DurableAnswer(request, [info_of(durable)])))
            self._effects.add(session)

    # Reading

    def _queue(self, session: ClientSession, request: ReadDurable) -> None:
        reads = self._reads.setdefault(session, deque())
        waiting = sum((session, each) in held for held in self._waiting.values() for each in ())
        if len(reads) + waiting >= READS_MAX:
            raise ProtocolError(f"more than {READS_MAX} reads wait for an answer")
        reads.append(request)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Answer one read of each client."""
        self._is_scheduled = False
        for session in list(self._reads):
            reads = self._reads[session]
            if session.connection.is_closing or not reads:
                del self._reads[session]
                continue
            self._serve(session, reads.popleft())
            if not reads:
                del self._reads[session]
        self._effects.flush()
        if self._reads:
            self._schedule()

    def _serve(self, session: ClientSession, request: ReadDurable) -> None:
        try:
            durable = self._found(session, request.name, shared=request.shared)
            if request.after > durable.end:
                reason = f"{request.name!r} ends at position {durable.end:,}, before {request.after:,}"
                raise InvalidSubscription(reason, request.name)
            if durable.end > request.after or not request.wait_ms:
                self._send(session, request, durable)
            else:
                until = self._loop.time() + request.wait_ms / 1000
                self._waiting.setdefault(durable, {})[session, request.request] = request, until
        except (InvalidSubscription, StoreFailed) as refusal:
            session.answer(request.request, refusal)
            self._effects.add(session)

    def _send(self, session: ClientSession, request: ReadDurable, durable: Durable) -> None:
        found = self._durables.read(durable, request.after, request.count, READ_BYTES)
        items = list(zip(found.positions, found.bodies, strict=True))
        about = request.request, durable.state.epoch, found.missing, found.end
        session.tell(encode_batch(*about, items))
        self._effects.add(session)

    def _more(self, durable: Durable) -> None:
        """Answer who waits for a durable subscription: there is more to read."""
        for (session, _), (request, _) in self._waiting.pop(durable, {}).items():
            self._reads.setdefault(session, deque()).append(request)
            self._schedule()

    # Time

    def look_after(self, now: float) -> None:
        """Answer reads that have waited long enough; end what nobody has used for long."""
        for durable, held in list(self._waiting.items()):
            for (session, number), (request, until) in list(held.items()):
                if session.connection.is_closing:
                    del held[session, number]
                elif now >= until:
                    del held[session, number]
                    self._send(session, request, durable)
            if held:
                self._use(durable)
            else:
                del self._waiting[durable]
        for durable in self._durables if self._expire_s else ():
            self._look_at_age(durable)
        self._effects.flush()

    def _use(self, durable: Durable) -> None:
        """Know that somebody reads it, also where there is nothing to acknowledge."""
        if time.time_ns() - durable.state.used_ns > 60e9:
            self._durables.change(durable, used_ns=time.time_ns())
            self._warned.discard(durable)

    def _look_at_age(self, durable: Durable) -> None:
        age_s = (time.time_ns() - durable.state.used_ns) / 1e9
        name = durable.state.name
        if age_s > self._expire_s and self._core.holder_of(durable.id) is not None:
            self._effects.carry_out(
                self._core.client_unsubscribes(DURABLE, durable.id, time.monotonic_ns())
            )
            self._end(durable, f"nobody has used the durable subscription {name!r} for {age_s:.0f} s")
            self._warned.discard(durable)
        elif age_s > _EXPIRE_WARN * self._expire_s and durable not in self._warned:
            self._warned.add(durable)
            left_s = self._expire_s - age_s
            _log.warning(
                "%s: nobody uses the durable subscription %r; it ends in %.0f s",
                *(self._core.id, name, left_s),
            )


def info_of(durable: Durable) -> DurableInfo:
    """Return how a durable subscription is."""
    state = durable.state
    return DurableInfo(
        name=state.name,
        filter=state.filter,
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
    )
