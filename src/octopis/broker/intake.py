"""Where requests of clients wait for their turn.

Publications wait while any broker of the overlay is congested; changes of subscriptions while a
queue of this broker is full. A turn of the event loop takes one batch from all clients that have
something waiting, one request of each after the other; so no client can shut others out, and all
that the turn brought is matched together.
"""

import asyncio
from collections import OrderedDict
from typing import Protocol

from octopis.broker.session import ClientSession
from octopis.core.wire.client import PublishRequest, SubscribeRequest, UnsubscribeRequest
from octopis.core.wire.published import Published, decode_checked
from octopis.errors import InvalidNotification, ProtocolError

BATCH_MAX = 256
CHANGES_MAX = 32
"""Requests of one turn, so that parsing many filters leaves time for others."""


class IntakeHome(Protocol):
    """The broker, as its intake sees it."""

    @property
    def may_publish(self) -> bool:
        """Whether publications may be taken in now."""

    @property
    def may_change(self) -> bool:
        """Whether changes of subscriptions may be taken in now."""

    def publish(self, batch: list[Published]) -> None:
        """Route notifications."""

    def change(
        self, session: ClientSession, request: SubscribeRequest | UnsubscribeRequest
    ) -> None:
        """Subscribe or unsubscribe, and answer."""

    def flush(self) -> None:
        """Let answers go."""


class _Publication:
    """A publish request on its way through the batches."""

    __slots__ = ("at", "batch", "request", "size")

    def __init__(self, request: PublishRequest, publisher: str, bytes_max: int) -> None:
        self.request = request.request
        self.size = len(request.notifications)
        self.batch = decode_checked(request.notifications, publisher)
        self.at = 0
        for each in self.batch:
            if len(each.encoded) > bytes_max:
                raise InvalidNotification(
                    f"a notification has {len(each.encoded):,} bytes, more than {bytes_max:,}"
                )


class Intake:
    """Requests that wait, client by client."""

    def __init__(self, home: IntakeHome, *, batch_max: int, bytes_max: int) -> None:
        self._home = home
        self._batch_max = batch_max
        self._bytes_max = bytes_max
        self._loop = asyncio.get_running_loop()
        self._changing: OrderedDict[ClientSession, None] = OrderedDict()
        self._publishing: OrderedDict[ClientSession, None] = OrderedDict()
        self._begun: dict[ClientSession, _Publication] = {}
        self._is_scheduled = False

    @property
    def waiting(self) -> int:
        """How many clients have publications that wait."""
        return len(self._publishing)

    def add(self, session: ClientSession) -> None:
        """Note that a session has requests that wait."""
        if session.changes:
            self._changing.setdefault(session)
        if session.publications:
            self._publishing.setdefault(session)
        self.wake()

    def forget(self, session: ClientSession) -> None:
        """Drop the requests of a client that is gone."""
        self._changing.pop(session, None)
        self._publishing.pop(session, None)
        self._begun.pop(session, None)

    def wake(self) -> None:
        """Take a turn soon, if anything may be done."""
        may = (self._changing and self._home.may_change) or (
            self._publishing and self._home.may_publish
        )
        if may and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        for _ in range(CHANGES_MAX):
            if not self._changing or not self._home.may_change:
                break
            session, _ = self._changing.popitem(last=False)
            self._home.change(session, session.changes.popleft())
            if session.changes:
                self._changing[session] = None
        if self._publishing and self._home.may_publish:
            self._publish()
        self._home.flush()
        self.wake()

    def _publish(self) -> None:
        batch: list[Published] = []
        done: list[tuple[ClientSession, int]] = []
        while self._publishing and len(batch) < self._batch_max:
            session, _ = self._publishing.popitem(last=False)
            publication = self._next(session)
            if publication is not None:
                part = publication.batch[publication.at :][: self._batch_max - len(batch)]
                publication.at += len(part)
                batch += part
                if publication.at == len(publication.batch):
                    self._finish(session, publication.size)
                    done.append((session, publication.request))
            if session.publications:
                self._publishing[session] = None
        if batch:
            self._home.publish(batch)
        for session, request in done:
            session.answer(request)
            session.pump()

    def _next(self, session: ClientSession) -> _Publication | None:
        """Return the publication of a client whose turn it is; what makes no sense is refused."""
        begun = self._begun.get(session)
        if begun is not None:
            return begun
        request = session.publications[0]
        try:
            publication = _Publication(request, session.client, self._bytes_max)
        except InvalidNotification as failure:
            self._finish(session, len(request.notifications))
            session.answer(request.request, failure)
            session.pump()
            return None
        except ProtocolError as failure:
            self._finish(session, len(request.notifications))
            session.publications.clear()
            session.connection.fail(failure)
            return None
        self._begun[session] = publication
        return publication

    def _finish(self, session: ClientSession, size: int) -> None:
        self._begun.pop(session, None)
        session.publications.popleft()
        session.publications_bytes -= size
