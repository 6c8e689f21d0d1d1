"""A client of a broker: what it asks for, and what is on its way to it."""

import asyncio
import logging
import secrets
from collections import deque
from functools import partial
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from octopis.broker.connection import WRITE_BYTES, Connection
from octopis.broker.queue import OutputQueue
from octopis.broker.settings import ClientPolicy
from octopis.core.model import Notification
from octopis.core.wire.client import (
    AnswerItem,
    Change,
    Consumed,
    FromClient,
    PublishRequest,
    decode_from_client,
    encode_answers,
    encode_delivery,
    encode_gap,
    encode_lost,
)
from octopis.core.wire.control import (
    Goodbye,
    Ping,
    Pong,
    Refusal,
    Status,
    StatusRequest,
    encode_control,
)
from octopis.core.wire.frames import Frame, FrameKind, encode_items
from octopis.core.wire.greeting import ClientHello
from octopis.core.wire.link import Encoded
from octopis.core.wire.published import PUBLISH_MAX, Published, count_notifications
from octopis.errors import InvalidNotification, OctopisError, ProtocolError

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

REQUESTS_MAX = 10_000
"""Requests of a client that may wait, and answers that it may leave unread."""

_REPLIES_MAX = 100
"""The same for status and signs of life."""

_SMALL_BYTES = 64 * 1024
"""What is held for a client below this is not worth counting."""

_OBSERVING = (StatusRequest, Ping, Pong, Goodbye)
_log = logging.getLogger(__name__)


def owner_of(secret: str) -> str:
    """Return what brokers know a secret by: from it nobody finds the secret.

    Whoever has none gets a new one: nobody can be the same client later.
    """
    known_by = secret.encode() or secrets.token_bytes(16)
    return blake2b(known_by, digest_size=16, person=b"octopis-owner").hexdigest()


class Share(NamedTuple):
    """What a subscription takes of what its client may have."""

    terms: int
    cost_us: int


_NOTHING = Share(0, 0)


class ClientSession:
    """One client, as long as its connection stands. It is the connection's Peer.

    At most `window` deliveries are sent that the client has not consumed; the others wait in
    `queue`. So a client always reads, and answers reach it past any number of deliveries.
    """

    def __init__(self, broker: "LiveBroker", hello: ClientHello, connection: Connection) -> None:
        self.client = hello.client
        self.owner = owner_of(hello.secret)
        self.host = connection.address.rpartition(":")[0]
        self.is_observer = hello.observer
        self.name = f"client {hello.client}"
        self.connection = connection
        self.numbers: dict[str, int] = {}
        """The client's own numbers for its subscriptions, by their ids."""

        self.changes: deque[Change] = deque()
        self.publications: deque[PublishRequest] = deque()
        self.publications_bytes = 0
        self.delivered = 0
        self.dropped = 0
        self.undelivered = 0
        self.shares: dict[str, Share] = {}
        """What its subscriptions take, by their ids."""

        self.terms = self.cost_us = 0
        self._is_holding = False
        self._broker = broker
        self._intake = broker.intake
        self._queue_log = broker.recorder.client_log()
        self._limits = broker.overlay.limits
        bounds = broker.overlay.client_queues
        self._policy = bounds.policy
        if bounds.policy is ClientPolicy.PAUSE:
            self.queue = OutputQueue(bounds, partial(broker.backpressure.output_changed, self))
        else:
            self.queue = OutputQueue(bounds)
        self._window = hello.window
        self._sent = hello.backlog
        self._consumed = 0
        self._dropped_unsaid = 0
        self._answers: list[AnswerItem] = []
        self._replies: list[bytes] = []
        self._fresh: list[Encoded] = []
        self._loop = asyncio.get_running_loop()
        self._progress_at = self._loop.time()

    # What the client says

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:  # noqa: ARG002
        """Take in what the client asks for."""
        for frame in frames:
            request = self._decode(frame)
            if isinstance(request, PublishRequest):
                self._take_publication(request)
            elif isinstance(request, Change):
                self.changes.append(request)
                if len(self.changes) > REQUESTS_MAX:
                    raise ProtocolError(f"more than {REQUESTS_MAX:,} requests wait for an answer")
            elif isinstance(request, Consumed):
                self._take_consumed(request)
            elif isinstance(request, Ping):
                self._reply(Pong())
            elif isinstance(request, StatusRequest):
                self._reply(Status(request.request, self._broker.status()))
            elif isinstance(request, Goodbye):
                _log.debug("%s says goodbye: %s", self.name, request.reason)
        if self.changes or self.publications:
            self._intake.add(self)

    def _decode(self, frame: Frame) -> FromClient:
        request = decode_from_client(frame)
        if self.is_observer and not isinstance(request, _OBSERVING):
            raise ProtocolError("an observer only asks for the status")
        return request

    def _reply(self, reply: Pong | Status) -> None:
        """Answer at once, or as soon as the client reads again."""
        self._replies.append(encode_control(reply))
        if self.connection.is_writable:
            self._send_replies()
        elif len(self._replies) > _REPLIES_MAX:
            raise ProtocolError("the client does not read its answers")

    def _send_replies(self) -> None:
        self.connection.write(b"".join(self._replies))
        self._replies = []

    def _take_publication(self, request: PublishRequest) -> None:
        size, count = len(request.notifications), count_notifications(request.notifications)
        window = self._limits.publish_window
        if self.publications and self.publications_bytes + size > window:
            raise ProtocolError(
                f"more than {window:,} bytes of publications are under way without answer"
            )
        if count > PUBLISH_MAX or (count > 1 and size > window):
            reason = (
                f"a request publishes at most {PUBLISH_MAX:,} notifications and {window:,} bytes, "
                f"or a single longer one; not {count:,} of {size:,} bytes"
            )
            self.answer(request.request, InvalidNotification(reason))
            self.pump()
            return
        # A copy: the view would keep all that came with it in memory, for as long as it waits.
        self.publications.append(PublishRequest(request.request, bytes(request.notifications)))
        self.publications_bytes += size
        self._hold()

    def finish_publication(self) -> None:
        """Forget the oldest publication: it is on its way, or refused."""
        self.publications_bytes -= len(self.publications.popleft().notifications)
        self._hold()

    def _hold(self) -> None:
        """Say how much is held for the client, where that is worth saying."""
        size = self.queue.bytes + self.publications_bytes
        if size > _SMALL_BYTES or self._is_holding:
            self._is_holding = size > _SMALL_BYTES
            self._broker.memory.hold(self, size if self._is_holding else 0)

    def send_away(self, reason: str) -> None:
        """Close the connection: too much is held for the client."""
        self._is_holding = False
        self.connection.fail(ProtocolError(reason))

    def _take_consumed(self, request: Consumed) -> None:
        if not self._consumed <= request.deliveries <= self._sent:
            raise ProtocolError(
                f"{request.deliveries:,} deliveries cannot be consumed: "
                f"{self._sent:,} were sent, {self._consumed:,} consumed before"
            )
        if request.deliveries > self._consumed:  # saying the same again is no progress
            self._consumed = request.deliveries
            self._progress_at = self._loop.time()
            self.pump()

    # What goes to the client

    def deliver(self, notification: Notification, subscriptions: list[str]) -> None:
        """Take a notification for the client; `pump` then puts it on its queue and lets it go."""
        assert isinstance(notification, Published), "only what came over the wire is delivered"
        if self.connection.is_closing:
            self.undelivered += 1
            return
        known = self.numbers
        numbers = [known[each] for each in subscriptions if each in known]
        if not numbers:  # they are of an earlier connection of the client, and end soon
            self.undelivered += 1
            return
        if self._queue_log is not None:
            self._queue_log.queued(notification, [each for each in subscriptions if each in known])
        self._fresh.append((FrameKind.DELIVER, encode_delivery(numbers, notification.encoded)))

    def note(self, subscription: str, number: int, share: Share) -> None:
        """Note a subscription: its number, and what it takes."""
        self.forget(subscription)
        self.numbers[subscription], self.shares[subscription] = number, share
        self.terms += share.terms
        self.cost_us += share.cost_us

    def forget(self, subscription: str) -> int | None:
        """Forget a subscription, and return its number if there is one."""
        share = self.shares.pop(subscription, _NOTHING)
        self.terms -= share.terms
        self.cost_us -= share.cost_us
        return self.numbers.pop(subscription, None)

    def lost(self, subscription: str) -> None:
        """Tell the client that a subscription has gone on to another broker."""
        number = self.forget(subscription)
        if number is not None:
            reason = f"the subscription {subscription!r} has moved on to another broker"
            self._replies.append(encode_lost(number, reason))

    def answer(
        self, request: int, error: OctopisError | None = None, unsent: int = 0, unheard: int = 0
    ) -> None:
        """Answer a request; `pump` then lets it go."""
        refusal = None if error is None else Refusal.of(error)
        self._answers.append(AnswerItem(request, refusal, unsent, unheard))
        if len(self._answers) > REQUESTS_MAX and not self.connection.is_closing:
            self.connection.fail(ProtocolError("the client does not read its answers"))

    def pump(self) -> None:
        """Let answers and deliveries go to the socket, as far as it and the client allow."""
        connection, queue = self.connection, self.queue
        if self._fresh:
            queue.put(self._fresh)
            self._fresh = []
            if queue.has_backpressure and queue.is_over_bound:
                self._overflow()
        if self._replies and connection.is_writable:
            self._send_replies()
        if self._answers and connection.is_writable:
            connection.write(encode_answers(self._answers))
            self._answers = []
        while queue.messages and connection.is_writable:
            credit = self._consumed + self._window - self._sent
            if credit <= 0:
                break
            if self._dropped_unsaid:
                connection.write(encode_gap(self._dropped_unsaid))
                self._dropped_unsaid = 0
            batch = queue.take(WRITE_BYTES, credit)
            self.delivered += len(batch)
            self._sent += len(batch)
            if self._queue_log is not None:
                self._queue_log.left(len(batch))
            connection.write(encode_items(FrameKind.DELIVER, list(map(itemgetter(1), batch))))
        if queue.bytes or self._is_holding:
            self._hold()

    def look_after(self, now: float) -> None:
        """Let publishers not wait for ever for a client that consumes nothing."""
        self.connection.look_after(now)
        stalled_s = now - self._progress_at
        if self._policy is not ClientPolicy.PAUSE or not self.queue.has_backpressure:
            self._progress_at = now
        elif stalled_s > self._limits.stall_s:
            fault = f"the client has consumed nothing for {stalled_s:.0f} s, and publishers wait"
            self.connection.fail(ProtocolError(fault))

    def may_write(self, connection: Connection) -> None:  # noqa: ARG002 - Peer's interface
        """Send what has waited for room in the socket."""
        self.pump()

    def connection_lost(self, connection: Connection, reason: str) -> None:  # noqa: ARG002
        """The client is gone, and with it what was meant for it."""
        self.undelivered += self.queue.clear() + len(self._fresh)
        self._fresh = []
        self._intake.leave(self, reason)
        self.publications.clear()
        self.changes.clear()
        self.publications_bytes = 0
        self._hold()

    def _overflow(self) -> None:
        if self._policy is not ClientPolicy.DROP_OLDEST:
            self.connection.fail(ProtocolError("the client does not keep up with its deliveries"))
            return
        dropped = self.queue.drop_oldest()
        self.dropped += dropped
        self._dropped_unsaid += dropped
        if self._queue_log is not None:
            self._queue_log.dropped(dropped)
        self._broker.warnings.say(
            self._loop.time(),
            "slow clients",
            "%s: %s is too slow: dropped %d deliveries so far",
            self._broker.id,
            self.name,
            self.dropped,
        )
