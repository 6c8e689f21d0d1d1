"""A client of a broker: what it asks for, and what is on its way to it."""

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from octopis.broker.clients.answers import REQUESTS_MAX, Answers
from octopis.broker.clients.deliveries import Deliveries
from octopis.broker.clients.kept import SentDeliveries, new_token, owner_of
from octopis.broker.clients.permitted import Permit, is_same
from octopis.broker.clients.requests import Requests
from octopis.broker.clients.shares import ClientShares, Share
from octopis.broker.connection import Connection
from octopis.broker.disk.codec import source_of
from octopis.broker.metrics.delays import ClientDelays
from octopis.broker.queue import OutputQueue
from octopis.broker.settings import ClientPolicy
from octopis.core.model import BrokerId, Notification
from octopis.core.wire.client import (
    Change,
    Consumed,
    FromClient,
    PublishRequest,
    encode_lost,
    encode_missed,
)
from octopis.core.wire.durable import DurableRequest
from octopis.core.wire.frames import Frame, FrameKind
from octopis.core.wire.greeting import ClientHello
from octopis.core.wire.published import Published
from octopis.errors import (
    InvalidConfiguration,
    NotPermitted,
    OctopisError,
    ProtocolError,
)
from octopis.security.bounds.failures import place_of
from octopis.security.identity import Identity

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

_MISSED_MAX = 64
"""Words of missed notifications that a client is told again when it is back."""

_SMALL_BYTES = 64 * 1024
"""What is held for a client below this is not worth counting."""

_log = logging.getLogger(__name__)


class ClientSession(Requests):
    """One client, as long as its connection stands, and for a while after it breaks.

    It is the connection's Peer. A client always reads, as no more is sent than it consumes; and
    answers reach it past any number of deliveries. A client with a secret can go on with the
    session over another connection, unless one side has ended the first: what the client has not
    got is sent again.
    """

    def __init__(
        self,
        broker: "LiveBroker",
        hello: ClientHello,
        connection: Connection,
        identity: Identity | None = None,
    ) -> None:
        super().__init__(broker)
        self.identity = identity
        """Who has logged in; None where nobody has to, and everything is allowed."""

        self.permit = None if identity is None else Permit(identity)
        """What it may do; None: everything."""

        self.client = hello.client if identity is None else identity.named(hello.client)
        self.known_by = owner_of(hello.secret)
        """What makes it the same client on its next connection."""

        self.owner = self.known_by if self.permit is None else self.permit.owner
        """Whose its subscriptions are."""

        self.source = source_of(hello, self.owner)
        """What one run of its program is known by, if it has said so."""

        self.host = place_of(connection.address.rpartition(":")[0])
        self.is_observer = hello.observer
        self.name = f"client {self.client}"
        self.connection = connection
        self.token = new_token(hello, broker.overlay.limits)
        """What names the session; empty where it cannot go on over another connection."""

        self.numbers: dict[str, int] = {}
        """The client's own numbers for its subscriptions, by their ids."""

        self.undelivered = 0
        users = None if self.permit is None else broker.users
        self.shares = ClientShares(broker.overlay.limits, self.client, self.owner, users)
        self._is_holding = False
        bounds = broker.overlay.client_queues
        self._policy = bounds.policy
        if bounds.policy is ClientPolicy.PAUSE:
            queue = OutputQueue(bounds, partial(broker.backpressure.output_changed, self))
        else:
            queue = OutputQueue(bounds)
        sent = SentDeliveries(hello, bounds, broker.memory, keeps=bool(self.token))
        delays = None if broker.delays is None else ClientDelays(broker.delays.delivery)
        log = broker.recorder.client_log(self.client)
        self.deliveries = Deliveries(queue, sent, log, hello.window, delays)
        self._kept_at: float | None = None  # since when there is no connection
        self._answers = Answers()
        self._missed: deque[bytes] = deque(maxlen=_MISSED_MAX)  # told, but perhaps not heard
        self._loop = asyncio.get_running_loop()
        self._progress_at = self._loop.time()

    @property
    def queue(self) -> OutputQueue:
        """What waits to be sent to it."""
        return self.deliveries.queue

    @property
    def dropped(self) -> int:
        """How many deliveries were dropped, as it was too slow."""
        return self.deliveries.dropped

    # What the client says

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:
        """Take in what the client asks for."""
        desk = None if self.is_observer else self._broker.desk
        for frame in frames:
            if connection.is_closing:  # it is sent away: what else it asks for is not done
                break
            if desk is not None and frame.kind == FrameKind.DURABLE:
                self._take_asked(frame.body)
            else:
                self._take(self._decode(frame))
        if self.changes or self.publications:
            self._intake.add(self)
        if desk is not None:
            desk.asking.add(self)

    def _take(self, request: FromClient) -> None:
        if isinstance(request, PublishRequest):
            self._take_publication(request)
        elif isinstance(request, Change):
            self.changes.append(request)
            if len(self.changes) > REQUESTS_MAX:
                raise ProtocolError(f"more than {REQUESTS_MAX:,} requests wait for an answer")
        elif isinstance(request, Consumed):
            self._take_consumed(request)
        elif isinstance(request, DurableRequest):
            self._refuse_durable(request)
        else:
            self._take_control(request)

    def _refuse_durable(self, request: DurableRequest) -> None:
        here = self._broker.id.short
        reason = (
            f"{here} keeps nothing on disk, so no subscription can be durable here: start the "
            "overlay with --durable, or set durability.folder"
        )
        self.answer(request.request, InvalidConfiguration(reason))
        self.pump()

    def _hold(self) -> None:
        """Say how much is held for the client, where that is worth saying."""
        size = self.queue.bytes + self.publications_bytes + self.asked_bytes + self._answers.bytes
        if size > _SMALL_BYTES or self._is_holding:
            self._is_holding = size > _SMALL_BYTES
            self._broker.memory.hold(self, size if self._is_holding else 0)

    def send_away(self, reason: str) -> None:
        """Let the client go: too much is held for it."""
        self._is_holding = False
        self.fail(ProtocolError(reason))
        self._loop.call_soon(self.end, reason)  # not in the middle of a batch

    def _take_consumed(self, request: Consumed) -> None:
        if self.deliveries.consumed(request.deliveries):
            self._missed.clear()
            self._progress_at = self._loop.time()
            self.pump()

    # What goes to the client

    def deliver(self, notification: Notification, subscriptions: list[str]) -> None:
        """Take a notification for the client; `pump` then puts it on its queue and lets it go."""
        assert isinstance(notification, Published), "only what came over the wire is delivered"
        if self.connection.is_ended:
            self.undelivered += 1
            return
        known = self.numbers
        numbers = [known[each] for each in subscriptions if each in known]
        if not numbers:  # they are of an earlier connection of the client, and end soon
            self.undelivered += 1
            return
        self.deliveries.add(
            notification, numbers, [each for each in subscriptions if each in known]
        )

    def note(self, subscription: str, number: int, share: Share) -> None:
        """Note a subscription: its number, and what it takes."""
        self.numbers[subscription] = number
        self.shares.note(subscription, share)

    def forget(self, subscription: str) -> int | None:
        """Forget a subscription, and return its number if there is one."""
        self.shares.forget(subscription)
        return self.numbers.pop(subscription, None)

    def lost(self, subscription: str) -> None:
        """Tell the client that a subscription has gone on to another broker."""
        number = self.forget(subscription)
        if number is not None:
            self._keep_nothing()  # the client goes on elsewhere, and this would not be told again
            if self.is_kept:
                self.fail(ProtocolError("its subscriptions have moved on to another broker"))
            own = subscription if self.permit is None else self.permit.told(subscription)
            reason = f"the subscription {own!r} has moved on to another broker"
            self._answers.tell(encode_lost(number, reason))

    def missed(self, host: BrokerId, count: int | None) -> None:
        """Tell the client of notifications that will not come."""
        frame = encode_missed(host, count)
        self._missed.append(frame)
        if not self.is_kept:
            self._answers.tell(frame)

    def tell(self, frame: bytes) -> None:
        """Say something past deliveries; `pump` then lets it go."""
        self._answers.tell(frame)
        self._look_at_answers()
        self._hold()

    def _look_at_answers(self) -> None:
        """Send whoever leaves too many unread away; nothing is kept to be told to who is gone."""
        if self._answers.is_unread and not self.connection.is_closing:
            self.fail(ProtocolError("the client does not read its answers"))
        if self.connection.is_closing:
            self._answers.clear()  # who sends a publication again is answered again

    def tell_missed_lately(self) -> None:
        """Tell a client that is back what was missed here while it was away."""
        for host, count in self._broker.missed_lately():
            self.missed(host, count)

    def answer(
        self, request: int, error: OctopisError | None = None, unsent: int = 0, unheard: int = 0
    ) -> None:
        """Answer a request; `pump` then lets it go."""
        if error is not None and self.permit is not None:
            error = self.permit.in_own_words(error)
            if isinstance(error, NotPermitted):
                self._broker.refused(self, error)
        self._answers.answer(request, error, unsent, unheard)
        self._look_at_answers()

    def pump(self) -> None:
        """Let answers and deliveries go to the socket, as far as it and the client allow."""
        if self.deliveries.enqueue():
            self._look_at_bounds()
        self._answers.write(self.connection)
        self.deliveries.send(self.connection)
        if self.queue.bytes or self._is_holding:
            self._hold()

    def look_after(self, now: float) -> None:
        """Let publishers not wait for ever for a client that consumes nothing, or is gone."""
        if self._kept_at is not None:
            if now - self._kept_at > self._limits.session_s:
                self.end(f"the client has not come back within {self._limits.session_s:g} s")
            return
        self.connection.look_after(now)
        stalled_s = now - self._progress_at
        if self._policy is not ClientPolicy.PAUSE or not self.queue.has_backpressure:
            self._progress_at = now
        elif stalled_s > self._limits.stall_s:
            fault = f"the client has consumed nothing for {stalled_s:.0f} s, and publishers wait"
            self.fail(ProtocolError(fault))

    def may_write(self, connection: Connection) -> None:  # noqa: ARG002 - Peer's interface
        """Send what has waited for room in the socket."""
        self.pump()

    # How it ends, or goes on

    @property
    def is_kept(self) -> bool:
        """Whether the client is not connected, and may come back."""
        return self._kept_at is not None

    def connection_lost(self, connection: Connection, reason: str) -> None:
        """The client is gone: for good, or it comes back within a while."""
        if connection is not self.connection:
            return  # it has gone on over another one
        if self.token and not connection.is_ended and not self._intake.is_closed:
            _log.debug("%s is cut off and may come back: %s", self.name, reason)
            self._kept_at = self._loop.time()
            self._cut_off()
            self._look_at_bounds()
        else:
            self.end(reason)

    def may_resume(self, hello: ClientHello, identity: Identity | None = None) -> bool:
        """Tell whether a client can go on with this session: what it lacks is still here.

        What waits was chosen by what its role allowed: under another it begins anew.
        """
        return (
            hello.session == self.token != ""
            and not self.connection.is_ended
            and self._is_of(identity)
            and self.deliveries.may_resume(hello.received)
        )

    def _is_of(self, identity: Identity | None) -> bool:
        if self.identity is None or identity is None:
            return self.identity is identity
        is_same_name = self.identity.name == identity.name
        return is_same_name and is_same(self.identity.permissions, identity.permissions)

    def resume(
        self, hello: ClientHello, connection: Connection, identity: Identity | None = None
    ) -> None:
        """Go on over another connection: send what the client has not received."""
        self.identity = identity  # the same, but perhaps by another credential
        before, self.connection = self.connection, connection
        before.abort("the client has connected anew")
        self._kept_at = None
        self._cut_off()
        self.deliveries.resume(hello.received, hello.window)
        self._answers.resume({each.request for each in self.publications} | self.syncing)
        for frame in self._missed:
            self._answers.tell(frame)
        self._progress_at = self._loop.time()

    def _cut_off(self) -> None:
        """Forget what was asked over a connection that is gone, but for publications."""
        self._intake.cut_off(self)
        self.changes.clear()
        self.forget_asked()
        self._answers.clear()
        self._hold()

    def fail(self, failure: OctopisError) -> None:
        """Send the client away, or forget it where it is not connected."""
        if not self.is_kept:
            self.connection.fail(failure)
        elif not self.connection.is_ended:
            self.connection.is_ended = True
            self._warn("kept sessions", f"forgotten: {failure}")
            self._loop.call_soon(self.end, str(failure))  # not in the middle of a batch

    def dismiss(self, reason: str) -> None:
        """Send the client away at once, and forget all that waits for it."""
        if not self.is_kept:
            self.connection.close(reason)
        self.connection.is_ended = True
        self.end(reason)

    def end(self, reason: str) -> None:
        """The client is gone for good, and with it what was meant for it."""
        self._keep_nothing()
        self.undelivered += self.deliveries.end()
        self.shares.end()
        if self._intake.leave(self, reason):
            self._broker.left(self, reason)
        self.publications.clear()
        self.changes.clear()
        self.forget_asked()
        self.publications_bytes = 0
        self._hold()

    def _keep_nothing(self) -> None:
        self.token = ""
        self.deliveries.keep_nothing()

    def _look_at_bounds(self) -> None:
        """Keep to the bounds of the queue; publishers wait for nobody who is not here."""
        if not self.queue.has_backpressure:
            return
        would_wait = self._policy is ClientPolicy.PAUSE and self.is_kept
        if self._policy is not ClientPolicy.DROP_OLDEST and (
            would_wait or self.queue.is_over_bound
        ):
            self.fail(ProtocolError("the client does not keep up with its deliveries"))
        elif self.queue.is_over_bound:
            self._drop()

    def _drop(self) -> None:
        self.deliveries.drop()
        self._warn("slow clients", f"too slow: dropped {self.dropped} deliveries so far")

    def _warn(self, kind: str, fact: str) -> None:
        now, here = self._loop.time(), self._broker.id
        self._broker.warnings.say(now, kind, "%s: %s is %s", here, self.name, fact)
