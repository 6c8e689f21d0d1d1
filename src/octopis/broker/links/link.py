"""A link to a neighbour: its queue, its connection while there is one, and what goes between."""

import asyncio
import logging
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from octopis.broker.connection import WRITE_BYTES, Connection
from octopis.broker.links.changes import WaitingChanges
from octopis.broker.links.checks import LinkChecks
from octopis.broker.queue import OutputQueue, Shaper
from octopis.broker.settings import LinkPolicy
from octopis.core.delivery.posts import Post
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, Message, NotificationMessage, Reason
from octopis.core.wire.control import Goodbye, Notice, Ping, Pong, encode_control
from octopis.core.wire.frames import Frame, FrameKind
from octopis.core.wire.inquiries import Asking, encode_asking
from octopis.core.wire.link import LinkControl, LinkDecoder, encode_notification, frames_of
from octopis.core.wire.posts import POSTS_MAX, Posts, encode_posts
from octopis.core.wire.targeted import TargetedDecoder
from octopis.errors import ProtocolError

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

SYSTEM_BUFFER_BYTES = 256 * 1024
"""What the system may hold of a link, unseen by the link status table, in each direction."""

_SLOW_KINDS = FrameKind.CHANGES, FrameKind.SNAPSHOT, FrameKind.HOST_STATE, FrameKind.HOST_TABLE
_INBOX_MARK = 256
"""Frames of changes that wait to be taken in, beyond which hosts take no more of them."""

_INBOX_MAX = 16 * _INBOX_MARK
_NOTIFICATIONS_ALONE = {NotificationMessage}
_log = logging.getLogger(__name__)


class NeighbourLink:
    """One end of a link. It is a connection's Peer while the connection stands.

    It tells the routing core all that happens on the link: what arrives, what leaves the queue,
    what a full queue drops, and when the link goes up and down.
    """

    def __init__(self, broker: "LiveBroker", neighbour: BrokerId) -> None:
        overlay = broker.overlay
        self.neighbour = neighbour
        self.name = str(neighbour)
        self.connection: Connection | None = None
        self.dropped = 0
        self.lost = 0
        self.sent = self.sent_bytes = 0  # of the queue alone: posts and control messages pass it
        self.reconnects = -1
        self.heard_at = 0.0
        """When the neighbour has sent messages the last time, by the event loop's clock."""

        self._broker = broker
        self._core = broker.core
        self._effects = broker.effects
        self._backpressure = broker.backpressure
        self._queue_log = broker.recorder.link_log(neighbour)
        self._limits = overlay.limits
        self._policy = overlay.queues.policy
        self.queue = OutputQueue(overlay.queues)
        """Notifications that wait."""

        if not overlay.has_channels:  # else nobody waits for a link: what it drops is sent again
            self.queue.changed = partial(self._backpressure.output_changed, self)
        self.changes = WaitingChanges(
            overlay.queues.high_water, partial(self._backpressure.changes_changed, self)
        )
        """Changes of tables that wait; they go first."""

        self._loop = asyncio.get_running_loop()
        shape = overlay.shapes.get((broker.id, neighbour))
        self._shaper = None if shape is None else Shaper(shape, self._loop.time())
        self._timer: asyncio.TimerHandle | None = None
        scot = overlay.scot
        self._targeted: TargetedDecoder | None = None
        self._encode = encode_notification
        if overlay.routing.algorithm is Algorithm.TNR:
            self._targeted = TargetedDecoder(
                scot.bit(broker.id),
                len(scot.brokers),
                len(scot.clusters),
                is_numbered=overlay.has_channels,
            )
            self._encode = self._targeted.encode
        self._plain_kind = getattr(self._targeted, "kind", FrameKind.NOTIFICATIONS)
        self._unreadable = 0
        self._decoder = LinkDecoder(self._targeted)
        self._inbox: deque[Frame] = deque()
        self._is_behind = False
        self._goodbye: str | None = None
        self._checks = LinkChecks(broker.core, scot, neighbour)

    @property
    def is_up(self) -> bool:
        """Whether a connection stands."""
        return self.connection is not None

    @property
    def unreadable(self) -> int:
        """How many notifications have come that made no sense."""
        return 0 if self._targeted is None else self._targeted.unreadable

    @property
    def is_busy(self) -> bool:
        """Whether anything waits or is held back on its way."""
        return self.waiting > 0 or (self._shaper is not None and self._shaper.is_carrying)

    @property
    def waiting(self) -> int:
        """How many messages wait."""
        return len(self.queue) + len(self.changes)

    # Up and down

    def up(self, connection: Connection) -> None:
        """Take a connection whose greeting is over, and bring the neighbour up to date."""
        assert self.connection is None, f"the link to {self.neighbour} is up already"
        _log.info("%s: the link to %s is up", self._broker.id, self.neighbour)
        connection.greeted(self, self._limits.keepalive_s, self._limits.silence_s)
        connection.set_buffers(SYSTEM_BUFFER_BYTES)
        self.connection = connection
        self.reconnects += 1
        self._decoder = LinkDecoder(self._targeted)
        self._inbox.clear()
        self._goodbye = None
        self._effects.carry_out(self._core.link_up(self.neighbour, time.monotonic_ns()))
        self._backpressure.tell(self.neighbour)
        self._effects.flush()

    def cut(self, reason: str) -> None:
        """Let go of a connection whose other end is gone, without waiting for it."""
        connection = self.connection
        if connection is not None:
            connection.abort(reason)
            self.connection_lost(connection, reason)

    def close(self, reason: str) -> None:
        """Say goodbye and close the connection, if there is one."""
        if self.connection is not None:
            self._goodbye = reason
            self.connection.close(reason)

    def connection_lost(self, connection: Connection, reason: str) -> None:
        """Let what waits go another way; where there is none it is lost.

        What is under way may have arrived: sent again, it could come twice.
        """
        if connection is not self.connection:
            return
        self.connection = None
        self._inbox.clear()
        if self._is_behind:
            self._is_behind = False
            self._backpressure.changes_changed(("behind", self), False)
        if self._shaper is not None:
            self._shaper.clear()
        self._effects.forget(self)
        notifications, changes = list(self.queue.messages), self.changes.clear()
        self.queue.clear()
        unsent = changes
        if self._targeted is not None:
            unsent += self._targeted.decode_items([item for _, item in notifications])
        counters = self._core.counters
        before = counters.rerouted, counters.lost_without_route
        effects = self._core.link_down(self.neighbour, unsent, time.monotonic_ns())
        rerouted = counters.rerouted - before[0]
        lost = len(notifications) - rerouted
        self.lost += lost
        self._say_down(reason, lost, rerouted, counters.lost_without_route - before[1])
        if self._queue_log is not None:
            self._queue_log.went_down(time.time_ns(), rerouted + len(changes))
        self._effects.carry_out(effects)
        self._effects.flush()

    def _say_down(self, reason: str, lost: int, rerouted: int, unreachable: int) -> None:
        thrown = f", {lost:,} notifications are lost with it" if lost else ""
        around = f", {rerouted:,} notifications are routed anew" if rerouted else ""
        if unreachable:
            around += f", {unreachable:,} of their targets cannot be reached"
        is_expected = self._goodbye is not None and not lost and not unreachable
        _log.log(
            logging.INFO if is_expected else logging.WARNING,
            "%s: the link to %s is down: %s%s%s",
            self._broker.id,
            self.neighbour,
            self._goodbye or reason,
            thrown,
            around,
        )

    # What comes

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:
        """Take in what the neighbour says: changes of tables in steps, as they take long.

        Notifications do not wait for them: whoever has subscribed is served a little later.
        """
        slow = [frame for frame in frames if frame.kind in _SLOW_KINDS]
        if not slow:
            self._take_frames(connection, frames)
            return
        if len(slow) < len(frames):
            quick = [frame for frame in frames if frame.kind not in _SLOW_KINDS]
            self._take_frames(connection, quick)
        self._inbox += slow
        self._look_at_inbox(connection)
        self._broker.pace.add(self)

    def step(self) -> bool:
        """Take in a frame of changes; tell whether there are more."""
        if self.connection is None or not self._inbox:
            return False
        try:
            self._take_frames(self.connection, [self._inbox.popleft()])
        except ProtocolError as failure:
            self._inbox.clear()
            self.connection.fail(failure)
        self._core.table.tidy()
        return bool(self._inbox)

    def rest(self) -> None:
        """Ask for more changes where few are left."""
        if self.connection is not None:
            self._look_at_inbox(self.connection)

    def _look_at_inbox(self, connection: Connection) -> None:
        waiting = len(self._inbox)
        if (waiting > _INBOX_MARK) != self._is_behind and (waiting > _INBOX_MARK or not waiting):
            self._is_behind = waiting > _INBOX_MARK
            self._backpressure.changes_changed(("behind", self), self._is_behind)
        connection.pause_reading(on=waiting > _INBOX_MAX)

    def _take_frames(self, connection: Connection, frames: list[Frame]) -> None:
        messages: list[Message] = []
        for frame in frames:
            said = self._decoder.decode(frame)
            if isinstance(said, list):
                if frame.kind != self._plain_kind:
                    self._checks.check(said)
                messages += said
            else:
                self._hear(connection, said)
        if self._targeted is not None and self._targeted.unreadable > self._unreadable:
            self._say_unreadable(self._targeted.unreadable)
        if messages:
            self.messages_arrived(messages)

    def _hear(self, connection: Connection, said: LinkControl) -> None:
        """Take in what has come past the queues."""
        if isinstance(said, Posts):
            self._broker.take_posts(said.posts)
        elif isinstance(said, Ping):
            connection.write(encode_control(Pong()))
        elif isinstance(said, Notice):
            self._backpressure.heard(self.neighbour, said)
        elif isinstance(said, Asking):
            self._broker.inquiries.heard(self.neighbour, said)
        elif isinstance(said, Goodbye):
            self._goodbye = said.reason

    def _say_unreadable(self, count: int) -> None:
        """Say that notifications made no sense. Whoever passed them on has not read them."""
        self._unreadable = count
        self._broker.warnings.say(
            self._loop.time(),
            "unreadable notifications",
            "%s: a notification that came from %s cannot be read: dropped, %d so far",
            self._broker.id,
            self.neighbour,
            count,
        )

    def messages_arrived(self, messages: list[Message]) -> None:
        """Let the routing core have what the neighbour has sent, as much at once as it wants."""
        self.heard_at = self._loop.time()
        parts = self._core.arrive_in_parts(self.neighbour, messages, time.monotonic_ns())
        for effects in parts:
            self._effects.carry_out(effects)
            self._effects.flush()
        if self._broker.posting is not None:
            self._broker.posting.stir()
        if not self._broker.start_up.is_over:
            self._broker.start_up.look()

    # What goes

    def enqueue(self, messages: list[Message], reasons: list[Reason]) -> None:
        """Put messages on the queue; `pump` then lets them go."""
        if set(map(type, messages)) != _NOTIFICATIONS_ALONE:
            messages, reasons = self._enqueue_changes(messages, reasons)
        if self._queue_log is not None:
            self._queue_log.enqueued(messages, reasons, time.time_ns())
        queue = self.queue
        queue.put(list(map(self._encode, messages)))  # type: ignore[arg-type]
        if queue.has_backpressure and queue.is_over_bound:
            self._overflow()

    def _enqueue_changes(
        self, messages: list[Message], reasons: list[Reason]
    ) -> tuple[list[Message], list[Reason]]:
        """Let changes wait where they do, and return the notifications."""
        rest: tuple[list[Message], list[Reason]] = [], []
        gone = 0
        for message, reason in zip(messages, reasons, strict=True):
            if isinstance(message, NotificationMessage):
                rest[0].append(message)
                rest[1].append(reason)
                continue
            key, obsolete = self.changes.put(message)
            gone += obsolete
            if self._queue_log is not None:
                self._queue_log.change(key, message, reason, obsolete, time.time_ns())
        if gone:  # they are off the queue, and went nowhere
            self._core.messages_dropped(self.neighbour, gone, time.monotonic_ns())
        return rest

    def control(self, message: Ping | Pong | Goodbye | Notice | Asking) -> None:
        """Send a control message past the queue."""
        if self.connection is not None:
            if isinstance(message, Asking):
                self.connection.write(encode_asking(message))
            else:
                self.connection.write(encode_control(message))

    def posts(self, posts: list[Post]) -> None:
        """Send posts of channels past the queue."""
        if self.connection is not None:
            for start in range(0, len(posts), POSTS_MAX):
                self.connection.write(encode_posts(posts[start : start + POSTS_MAX]))

    def pump(self) -> None:
        """Let messages go from the queue to the socket, as far as both allow."""
        connection = self.connection
        if connection is None:
            return
        if self._shaper is not None:
            self._pump_shaped(connection, self._shaper)
        else:
            while (self.queue.messages or len(self.changes)) and connection.is_writable:
                connection.write(self._take(WRITE_BYTES))

    def may_write(self, connection: Connection) -> None:  # noqa: ARG002 - Peer's interface
        """Send what has waited for room in the socket."""
        self.pump()

    def _take(self, bytes_max: float) -> bytes:
        if len(self.changes):
            batch, left = self.changes.take(bytes_max)
            if self._queue_log is not None:
                self._queue_log.changes_left(left, time.time_ns())
        else:
            batch = self.queue.take(bytes_max)
            left = len(batch)
            if self._queue_log is not None:
                self._queue_log.left(left, time.time_ns())
        self._core.messages_left(self.neighbour, left, time.monotonic_ns())
        data = b"".join(frames_of(batch))
        self.sent += left
        self.sent_bytes += len(data)
        return data

    def _pump_shaped(self, connection: Connection, shaper: Shaper) -> None:
        now = self._loop.time()
        while self.waiting and connection.is_writable and (budget := shaper.budget(now)) > 0:
            shaper.send(self._take(min(budget, WRITE_BYTES)), now)
        for data in shaper.arrived(now):
            connection.write(data)
        if self._timer is not None:
            self._timer.cancel()
        again = shaper.next_event(now, waiting=self.waiting > 0)
        self._timer = None if again is None else self._loop.call_at(again, self.pump)

    def _overflow(self) -> None:
        if self._policy is LinkPolicy.DROP_OLDEST:
            dropped = self.queue.drop_oldest()
        else:
            dropped = self.queue.drop_newest()
        self.dropped += dropped
        if self._queue_log is not None:
            self._queue_log.lost(dropped, time.time_ns())
        self._core.messages_dropped(self.neighbour, dropped, time.monotonic_ns())
        if self._policy is LinkPolicy.DISCONNECT and self.connection is not None:
            self.connection.close(f"the queue to {self.neighbour} is over its bound")
        self._broker.warnings.say(
            self._loop.time(),
            "full queues",
            "%s: the queue to %s is full: dropped %d notifications, %d so far",
            self._broker.id,
            self.neighbour,
            dropped,
            self.dropped,
        )
