"""Batches that clients stage and commit: published once, a part in each turn of the event loop."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from hashlib import blake2b

from msgspec import structs

from octopis.broker.clients.rates import Rates
from octopis.broker.clients.session import ClientSession
from octopis.broker.disk.keeping import Keeping
from octopis.broker.disk.slowed import Slowed
from octopis.broker.effects import Effects
from octopis.core.delivery.lasting.records import Staged
from octopis.core.delivery.lasting.staging import Attempt, Commit
from octopis.core.wire.durable import CommitStaged, DropStaged, StageRows, StagingRequest
from octopis.core.wire.frames import FRAME_MAX
from octopis.core.wire.published import Published, check_size, decode_checked, decode_one
from octopis.errors import InvalidNotification, OctopisError

_ROWS = 256
"""So many are published in one turn of the event loop."""

_log = logging.getLogger(__name__)


class Committing:
    """What clients have staged at a broker.

    `free` says how many notifications, from the first on, go where something goes for now.
    """

    def __init__(
        self,
        keeping: Keeping,
        effects: Effects,
        window: int,
        free: Callable[[list[Published]], int],
        rates: Rates,
    ) -> None:
        self._keeping = keeping
        self._staging = keeping.channels.staging
        self._effects = effects
        self._window = window
        self._free = free
        self._slowed = Slowed(rates, window, self._take_late)
        self._loop = asyncio.get_running_loop()
        self._asked: dict[tuple[bytes, int], list[tuple[ClientSession, int]]] = {}
        self._is_scheduled = False

    def take(self, session: ClientSession, request: StagingRequest) -> None:
        """Do what a client asks for, perhaps later. Raises what is wrong with it."""
        if not self._slowed.holds(session, request):
            self._do(session, request)

    def _take_late(self, session: ClientSession, request: StagingRequest) -> None:
        try:
            self._do(session, request)
        except OctopisError as refusal:
            session.answer(request.request, refusal)
        self._effects.add(session)
        self._effects.flush()

    def _do(self, session: ClientSession, request: StagingRequest) -> None:
        source = _source(session, request.query)
        if isinstance(request, StageRows):
            self._stage(session, request, source)
        elif isinstance(request, CommitStaged):
            self._commit(session, request, source)
        else:
            self._drop(session, request, source)

    def _stage(self, session: ClientSession, request: StageRows, source: bytes) -> None:
        refusal = self._keeping.refusal()
        if refusal is not None:
            raise refusal
        check_size(request.rows, self._window)
        rows = decode_checked(request.rows, session.client)
        if session.permit is not None:
            rows = session.permit.published(rows, FRAME_MAX // 2)
        attempt = Attempt(source, request.batch, request.part, request.attempt)
        self._staging.stage(attempt, request.first, [each.encoded for each in rows])
        self._answer([(session, request.request)])

    def _commit(self, session: ClientSession, request: CommitStaged, source: bytes) -> None:
        try:
            commit = self._staging.decide(source, request.batch, request.attempts)
        except InvalidNotification as refusal:
            if session.permit is None:
                raise
            reason = f"{refusal} (rows that were staged under another role do not count)"
            raise InvalidNotification(reason) from refusal
        if commit is None:
            self._answer([(session, request.request)])
            return
        self._asked.setdefault(commit.key, []).append((session, request.request))
        self.go_on()

    def _drop(self, session: ClientSession, request: DropStaged, source: bytes) -> None:
        if (source, request.batch) not in self._staging.commits:  # else it is decided
            for part, number in request.attempts:
                self._staging.drop(Attempt(source, request.batch, part, number))
        self._answer([(session, request.request)])

    def _answer(self, asked: list[tuple[ClientSession, int]]) -> None:
        self._keeping.when_synced(partial(self._say, asked))

    def _say(self, asked: list[tuple[ClientSession, int]]) -> None:
        for session, request in asked:
            session.answer(request)
            self._effects.add(session)

    # Publishing what is decided

    def go_on(self) -> None:
        """Publish some more of what is decided, soon."""
        if self._staging.commits and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        keeping = self._keeping
        if keeping.is_behind or keeping.failure is not None or keeping.channels.is_blocked:
            return  # it is looked at again when publishers may go on
        is_any = False
        for commit in list(self._staging.commits.values()):
            is_any |= self._publish(commit)
        self._effects.flush()
        if is_any:
            self.go_on()

    def _publish(self, commit: Commit) -> bool:
        """Publish some rows of a batch; tell if there are more that may go."""
        start = commit.done
        rows = self._read(commit, start, min(start + _ROWS, len(commit.rows)))
        part = rows[: self._free(rows)] if rows else []
        if part:
            self._keeping.take(part, [])
            commit.done += len(part)
        if commit.done == len(commit.rows):
            self._staging.finish(commit)
            self._answer(self._asked.pop(commit.key, []))
            return False
        return len(part) == len(rows)

    def _read(self, commit: Commit, start: int, end: int) -> list[Published]:
        found = []
        records = self._keeping.channels.read_records(commit.rows[start:end])
        for row, record in enumerate(records, start):
            assert isinstance(record, Staged), "a batch is made of rows"
            source, sequence = commit.decision.source, commit.sequence(row)
            published = decode_one(record.body)
            found.append(structs.replace(published, source=source, sequence=sequence))
        return found


def _source(session: ClientSession, query: str) -> bytes:
    """Return what a query of an owner is known by."""
    about = f"{session.owner}\0{query}".encode()
    return blake2b(about, digest_size=8, person=b"octopis-query").digest()
