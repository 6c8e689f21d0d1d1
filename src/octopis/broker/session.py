"""A client of a broker: what it asks for, and what is on its way to it."""

import asyncio
import logging
from collections import deque
from typing import Protocol

from octopis.broker.connection import WRITE_BYTES, Connection, LogLimit
from octopis.broker.queue import OutputQueue
from octopis.broker.recording import DeliveryLog
from octopis.broker.settings import ClientPolicy, OverlayConfiguration
from octopis.core.model import BrokerId, Notification
from octopis.core.wire.client import (
    AnswerItem,
    Consumed,
    PublishRequest,
    SubscribeRequest,
    UnsubscribeRequest,
    decode_from_client,
    encode_answer,
    encode_delivery,
    encode_gap,
)
from octopis.core.wire.control import Goodbye, Ping, Pong, Status, StatusRequest, encode_control
from octopis.core.wire.frames import Frame, FrameKind, encode_items
from octopis.core.wire.greeting import ClientHello
from octopis.core.wire.link import Encoded
from octopis.core.wire.published import Published
from octopis.core.wire.refusals import Refusal
from octopis.errors import OctopisError, ProtocolError

REQUESTS_MAX = 10_000
"""Requests of a client that may wait, and answers that it may leave unread."""

_REPLIES_MAX = 100
"""The same for status and signs of life."""

_log = logging.getLogger(__name__)


class SessionHome(Protocol):
    """The broker, as its clients' sessions see it."""

    id: BrokerId
    overlay: OverlayConfiguration
    warnings: LogLimit

    def requests_wait(self, session: "ClientSession") -> None:
        """A session has requests that wait."""

    def client_left(self, session: "ClientSession", reason: str) -> None:
        """A client has gone."""

    def congestion_changed(self, output: object, *, congested: bool) -> None:
        """A queue has passed its high-water mark, or come back."""

    def status(self) -> dict[str, object]:
        """Say how the broker is."""


class ClientSession:
    """One client, as long as its connection stands. It is the connection's Peer.

    At most `window` deliveries are sent that the client has not consumed; the others wait in
    `queue`. So a client always reads, and answers reach it past any number of deliveries.
    """

    def __init__(self, home: SessionHome, hello: ClientHello, connection: Connection) -> None:
        self.client = hello.client
        self.name = f"client {hello.client}"
        self.connection = connection
        self.queue = OutputQueue(home.overlay.client_queues)
        self.numbers: dict[str, int] = {}
        self.changes: deque[SubscribeRequest | UnsubscribeRequest] = deque()
        self.publications: deque[PublishRequest] = deque()
        self.publications_bytes = 0
        self.delivered = 0
        self.dropped = 0
        self.undelivered = 0
        self.log: DeliveryLog | None = None
        self._home = home
        self._policy = home.overlay.client_policy
        self._window = hello.window
        self._sent = hello.backlog
        self._consumed = 0
        self._dropped_unsaid = 0
        self._answers: list[bytes] = []
        self._replies: list[bytes] = []
        self._fresh: list[Encoded] = []
        self._said_congested = False
        self._progress_at = asyncio.get_running_loop().time()

    # What the client says

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:  # noqa: ARG002
        """Take in what the client asks for."""
        for frame in frames:
            request = decode_from_client(frame)
            if isinstance(request, PublishRequest):
                self._take_publication(request)
            elif isinstance(request, SubscribeRequest | UnsubscribeRequest):
                self.changes.append(request)
                if len(self.changes) > REQUESTS_MAX:
                    raise ProtocolError(f"more than {REQUESTS_MAX:,} requests wait for an answer")
            elif isinstance(request, Consumed):
                self._take_consumed(request)
            elif isinstance(request, Ping):
                self._reply(Pong())
            elif isinstance(request, StatusRequest):
                self._reply(Status(request.request, self._home.status()))
            elif isinstance(request, Goodbye):
                _log.debug("%s says goodbye: %s", self.name, request.reason)
        if self.changes or self.publications:
            self._home.requests_wait(self)

    def _reply(self, reply: Pong | Status) -> None:
        """Answer at once, or as soon as the client reads again."""
        self._replies.append(encode_control(reply))
        if self.connection.is_writable:
            self.connection.write(b"".join(self._replies))
            self._replies = []
        elif len(self._replies) > _REPLIES_MAX:
            raise ProtocolError("the client does not read its answers")

    def _take_publication(self, request: PublishRequest) -> None:
        window = self._home.overlay.limits.publish_window
        size = len(request.notifications)
        if self.publications and self.publications_bytes + size > window:
            raise ProtocolError(
                f"more than {window:,} bytes of publications are under way without answer"
            )
        # A copy: the view would keep all that came with it in memory, for as long as it waits.
        self.publications.append(PublishRequest(request.request, bytes(request.notifications)))
        self.publications_bytes += size

    def _take_consumed(self, request: Consumed) -> None:
        if not self._consumed <= request.deliveries <= self._sent:
            raise ProtocolError(
                f"{request.deliveries:,} deliveries cannot be consumed: "
                f"{self._sent:,} were sent, {self._consumed:,} consumed before"
            )
        self._consumed = request.deliveries
        self._progress_at = asyncio.get_running_loop().time()
        self.pump()

    # What goes to the client

    def deliver(self, notification: Notification, subscriptions: list[str]) -> None:
        """Take a notification for the client; `pump` then puts it on its queue and lets it go."""
        assert isinstance(notification, Published), "only what came over the wire is delivered"
        if self.connection.is_closing:
            self.undelivered += 1
            return
        if self.log is not None:
            self.log.queued(notification, subscriptions)
        numbers = list(map(self.numbers.__getitem__, subscriptions))
        self._fresh.append((FrameKind.DELIVER, encode_delivery(numbers, notification.encoded)))

    def answer(self, request: int, error: OctopisError | None = None) -> None:
        """Answer a request; `pump` then lets it go."""
        refusal = None if error is None else Refusal.of(error)
        self._answers.append(encode_answer(AnswerItem(request, refusal)))
        if len(self._answers) > REQUESTS_MAX and not self.connection.is_closing:
            self.connection.fail(ProtocolError("the client does not read its answers"))

    def pump(self) -> None:
        """Let answers and deliveries go to the socket, as far as it and the client allow."""
        connection = self.connection
        if self._fresh:
            self.queue.put(self._fresh)
            self._fresh = []
            if self.queue.is_over_bound:
                self._overflow()
        if self._replies and connection.is_writable:
            connection.write(b"".join(self._replies))
            self._replies = []
        if self._answers and connection.is_writable:
            connection.write(encode_items(FrameKind.ANSWERS, self._answers))
            self._answers = []
        while connection.is_writable and self.queue:
            credit = self._consumed + self._window - self._sent
            if credit <= 0:
                break
            if self._dropped_unsaid:
                connection.write(encode_gap(self._dropped_unsaid))
                self._dropped_unsaid = 0
            batch = self.queue.take(WRITE_BYTES, credit)
            self.delivered += len(batch)
            self._sent += len(batch)
            if self.log is not None:
                self.log.left(len(batch))
            connection.write(encode_items(FrameKind.DELIVER, [item for _, item in batch]))
        self._tell_congestion()

    def look_after(self, now: float) -> None:
        """Let publishers not wait for ever for a client that consumes nothing."""
        self.connection.look_after(now)
        stalled_s = now - self._progress_at
        if not self._said_congested:
            self._progress_at = now
        elif stalled_s > self._home.overlay.limits.stall_s:
            fault = f"the client has consumed nothing for {stalled_s:.0f} s, and publishers wait"
            self.connection.fail(ProtocolError(fault))

    def may_write(self, connection: Connection) -> None:  # noqa: ARG002 - Peer's interface
        """Go on."""
        self.pump()

    def connection_lost(self, connection: Connection, reason: str) -> None:  # noqa: ARG002
        """The client is gone, and with it what was meant for it."""
        self.undelivered += self.queue.clear() + len(self._fresh)
        self._fresh = []
        self._tell_congestion()
        self._home.client_left(self, reason)

    def _overflow(self) -> None:
        if self._policy is not ClientPolicy.DROP_OLDEST:
            self.connection.fail(ProtocolError("the client does not keep up with its deliveries"))
            return
        dropped = self.queue.drop_oldest()
        self.dropped += dropped
        self._dropped_unsaid += dropped
        if self.log is not None:
            self.log.dropped(dropped)
        self._home.warnings.say(
            asyncio.get_running_loop().time(),
            "slow clients",
            "%s: %s is too slow: dropped %d deliveries so far",
            self._home.id,
            self.name,
            self.dropped,
        )

    def _tell_congestion(self) -> None:
        if self._policy is ClientPolicy.PAUSE and self.queue.is_congested != self._said_congested:
            self._said_congested = self.queue.is_congested
            self._home.congestion_changed(self, congested=self._said_congested)
