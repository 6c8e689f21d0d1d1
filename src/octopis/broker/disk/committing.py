"""Batches that clients stage and commit: published once, a part in each turn of the event loop."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from hashlib import blake2b

from octopis.broker.clients.rates import Rates
from octopis.broker.clients.session import ClientSession
from octopis.broker.disk.keeping import Answer, Keeping
from octopis.broker.disk.slowed import Slowed
from octopis.broker.effects import Effects
from octopis.core.delivery.lasting.batches import Attempt, Commit
from octopis.core.wire.durable import CommitStaged, DropStaged, StageRows, StagingRequest
from octopis.core.wire.frames import FRAME_MAX
from octopis.core.wire.published import (
    Published,
    array_of,
    check_published,
    check_size,
    decode_checked,
    decode_numbered,
    without_first,
)
from octopis.errors import (
    InvalidNotification,
    OctopisError,
    StoreDamaged,
    StoreFailed,
    StoreFull,
)

_ROWS = 1_024
"""So many are published in one turn of the event loop."""

_ASKED_MAX = 100
"""So many requests wait for one batch that is held back; who asks again then is told to wait."""

_log = logging.getLogger(__name__)


class Committing:
    """What clients have staged at a broker.

    `free` says how many notifications, from the first on, go where something goes for now.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what batches go through
        self,
        keeping: Keeping,
        effects: Effects,
        window: int,
        free: Callable[[list[Published]], int],
        rates: Rates,
        staged_s: float,
    ) -> None:
        self._keeping = keeping
        self._staging = keeping.channels.staging
        self._effects = effects
        self._window = window
        self._free = free
        self._slowed = Slowed(rates, window, self._do, effects)
        self._staged_ns = int(staged_s * 1e9)
        self._loop = asyncio.get_running_loop()
        self._asked: dict[tuple[bytes, int], list[Answer]] = {}
        self._decoded: dict[tuple[bytes, int], tuple[int, list[Published]]] = {}
        """Of each batch the piece that is being published: its first row, and all."""

        self._is_scheduled = False

    def take(self, session: ClientSession, request: StagingRequest) -> None:
        """Do what a client asks for, perhaps later. Raises what is wrong with it."""
        self._slowed.take(session, request)

    def _do(self, session: ClientSession, request: StagingRequest) -> None:
        self._keeping.check()
        source = _source(session, request.query)
        if isinstance(request, StageRows):
            self._stage(session, request, source)
        elif isinstance(request, CommitStaged):
            self._commit(session, request, source)
        else:
            self._drop(session, request, source)

    def _stage(self, session: ClientSession, request: StageRows, source: bytes) -> None:
        refusal = self._keeping.staging_refusal()
        if refusal is not None:
            raise refusal
        check_size(request.rows, self._window)
        count, rows = _checked(session, request.rows)
        attempt = Attempt(source, request.batch, request.part, request.attempt)
        self._keep(attempt, request.first, count, rows)
        self._answer([Answer(session, request.request)])

    def _keep(self, attempt: Attempt, first: int, count: int, rows: bytes) -> None:
        """Stage rows; those that are there are left out: they are sent again after a break."""
        if self._staging.is_decided(attempt.source, attempt.batch):
            return  # by an attempt that came too late, or a batch that is run again
        now_ns = time.monotonic_ns()
        there = max(0, self._staging.staged(attempt) - first)
        if there >= count:
            self._staging.touch(attempt, now_ns)
            return
        if there:
            rows = without_first(rows, there)
        if not self._staging.has_room(attempt, len(rows)):
            reason = "what others have staged and not committed leaves no room for more"
            raise StoreFull(self._keeping.name, reason)
        self._staging.stage(attempt, first + there, count - there, rows, now_ns)

    def _commit(self, session: ClientSession, request: CommitStaged, source: bytes) -> None:
        try:
            about = source, request.batch, request.attempts
            commit = self._staging.decide(*about, is_one_off=request.one_off)
        except InvalidNotification as refusal:
            if session.permit is None:
                raise
            reason = f"{refusal} (rows that were staged under another role do not count)"
            raise InvalidNotification(reason) from refusal
        if commit is None:
            self._answer([Answer(session, request.request)])
            return
        asked = self._asked.setdefault(commit.key, [])
        if len(asked) >= _ASKED_MAX:
            reason = f"{_ASKED_MAX} requests wait for batch {request.batch} already"
            raise StoreFull(self._keeping.name, reason)
        asked.append(Answer(session, request.request))
        self.go_on()

    def _drop(self, session: ClientSession, request: DropStaged, source: bytes) -> None:
        if (source, request.batch) not in self._staging.commits:  # else it is decided
            for part, number in request.attempts:
                self._staging.drop(Attempt(source, request.batch, part, number))
        self._answer([Answer(session, request.request)])

    def _answer(self, asked: list[Answer], refusal: OctopisError | None = None) -> None:
        self._keeping.when_synced(partial(self._say, asked, refusal), asked)

    def _say(self, asked: list[Answer], refusal: OctopisError | None = None) -> None:
        for session, request in asked:
            session.answer(request, refusal)
            self._effects.add(session)

    def look_after(self) -> None:
        """Drop what nobody has gone on with for long."""
        for attempt, rows in self._staging.drop_older(time.monotonic_ns() - self._staged_ns):
            _log.warning(
                "%s: %d rows of part %d of batch %d were staged and not committed within "
                "durability.staged_s: they are dropped",
                *(self._keeping.name, rows, attempt.part, attempt.batch),
            )

    # Publishing what is decided

    def go_on(self) -> None:
        """Publish some more of what is decided, soon."""
        if self._staging.commits and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        keeping = self._keeping
        if keeping.failure is not None:
            self._refuse_all(keeping.failure)
            return
        if keeping.is_behind or keeping.channels.holds_batches:
            return  # it is looked at again when publishers may go on
        is_any = False
        for commit in self._staging.due:
            is_any |= self._publish(commit)
        self._effects.flush()
        if is_any:
            self.go_on()

    def _refuse_all(self, failure: OctopisError) -> None:
        """Tell who waits for a batch that it does not go on in this life of the broker."""
        while self._asked:
            self._say(self._asked.popitem()[1], failure)
        self._effects.flush()

    def _publish(self, commit: Commit) -> bool:
        """Publish some rows of a batch; tell if there are more that may go."""
        try:
            rows = self._next(commit) if commit.done < commit.count else []
        except StoreFailed as failure:
            self._undo(commit, failure)
            return True
        part = rows[: self._free(rows)] if rows else []
        if part:
            self._keeping.take(part, [])
            commit.done += len(part)
        if commit.done == commit.count:
            self._decoded.pop(commit.key, None)
            self._staging.finish(commit)
            self._answer(self._asked.pop(commit.key, []))
            return True  # perhaps the next of the same source
        return len(part) == len(rows)

    def _undo(self, commit: Commit, failure: StoreFailed) -> None:
        """Let go of a batch of which rows cannot be read, and tell who waits for it."""
        piece, first = commit.piece(commit.done)
        refusal = StoreDamaged(
            failure.folder,
            f"rows {first + 1:,} to {first + piece.count:,} of the {commit.count:,} of batch "
            f"{commit.decision.batch} cannot be read: {failure.reason}; {commit.done:,} rows are "
            "published. Write the batch again: what is published of it is left out, row by row",
        )
        _log.error("%s: %s", self._keeping.name, refusal)
        self._decoded.pop(commit.key, None)
        self._staging.undo(commit)
        self._answer(self._asked.pop(commit.key, []), refusal)

    def _next(self, commit: Commit) -> list[Published]:
        """Return the next rows of a batch; a piece of what was staged is decoded in one go."""
        first, rows = self._decoded.get(commit.key, (0, []))
        if not first <= commit.done < first + len(rows):
            piece, first = commit.piece(commit.done)
            staged = self._keeping.channels.read_staged(piece.position)
            rows = decode_numbered(staged, commit.decision.source, commit.sequence(first))
            self._decoded[commit.key] = first, rows
        at = commit.done - first
        return rows[at : at + _ROWS]


def _checked(session: ClientSession, rows: bytes) -> tuple[int, bytes]:
    """Return how many rows a client stages, and how they are kept: as they came, if that may be.

    Only where its role says something of rows is each of them looked at. Raises what is wrong.
    """
    if session.permit is None:
        return check_published(rows, session.client), rows
    came = decode_checked(rows, session.client)
    kept = session.permit.published(came, FRAME_MAX // 2)
    if kept is not came:  # something is forced into them
        rows = array_of([each.encoded for each in kept])
    return len(kept), rows


def _source(session: ClientSession, query: str) -> bytes:
    """Return what a query of an owner is known by."""
    about = f"{session.owner}\0{query}".encode()
    return blake2b(about, digest_size=8, person=b"octopis-query").digest()
