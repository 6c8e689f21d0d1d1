"""A link to a neighbour: its queue, its connection while there is one, and what goes between."""

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from octopis.broker.connection import WRITE_BYTES, Connection
from octopis.broker.queue import OutputQueue, Shaper
from octopis.broker.settings import LinkPolicy
from octopis.core.model import BrokerId
from octopis.core.routing import Mark, Message, NotificationMessage, Reason
from octopis.core.wire.control import Goodbye, Notice, Ping, Pong, encode_control
from octopis.core.wire.frames import Frame, FrameKind
from octopis.core.wire.inquiries import Asking, encode_asking
from octopis.core.wire.link import LinkDecoder, encode_message, frames_of
from octopis.errors import ProtocolError

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

SYSTEM_BUFFER_BYTES = 256 * 1024
"""What the system may hold of a link, unseen by the link status table, in each direction."""

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
        self.reconnects = -1
        self.heard_at = 0.0
        """When the neighbour has sent messages the last time, by the event loop's clock."""

        self._broker = broker
        self._core = broker.core
        self._effects = broker.effects
        self._backpressure = broker.backpressure
        self._queue_log = broker.recorder.link_log(neighbour)
        self._policy = overlay.queues.policy
        self.queue = OutputQueue(overlay.queues, partial(self._backpressure.output_changed, self))
        self._loop = asyncio.get_running_loop()
        shape = overlay.shapes.get((broker.id, neighbour))
        self._shaper = None if shape is None else Shaper(shape, self._loop.time())
        self._timer: asyncio.TimerHandle | None = None
        self._decoder = LinkDecoder()
        self._goodbye: str | None = None
        self._other_clusters = (1 << len(overlay.scot.clusters)) - 1 & ~(1 << broker.id.cluster)

    @property
    def is_up(self) -> bool:
        """Whether a connection stands."""
        return self.connection is not None

    @property
    def is_busy(self) -> bool:
        """Whether anything waits or is held back on its way."""
        return bool(self.queue) or (self._shaper is not None and self._shaper.is_carrying)

    # Up and down

    def up(self, connection: Connection) -> None:
        """Take a connection whose greeting is over, and bring the neighbour up to date."""
        assert self.connection is None, f"the link to {self.neighbour} is up already"
        _log.info("%s: the link to %s is up", self._broker.id, self.neighbour)
        connection.greeted(self)
        connection.set_buffers(SYSTEM_BUFFER_BYTES)
        self.connection = connection
        self.reconnects += 1
        self._decoder = LinkDecoder()
        self._goodbye = None
        self._effects.carry_out(self._core.link_up(self.neighbour, time.monotonic_ns()))
        self._backpressure.tell(self.neighbour)
        self._effects.flush()

    def close(self, reason: str) -> None:
        """Say goodbye and close the connection, if there is one."""
        if self.connection is not None:
            self._goodbye = reason
            self.connection.close(reason)

    def connection_lost(self, connection: Connection, reason: str) -> None:
        """Throw away what waits: nobody can say what of it would arrive twice."""
        if connection is not self.connection:
            return
        self.connection = None
        if self._shaper is not None:
            self._shaper.clear()
        lost = self.queue.clear()
        self.lost += lost
        thrown = f", {lost:,} notifications are lost with it" if lost else ""
        is_expected = self._goodbye is not None and not lost
        _log.log(
            logging.INFO if is_expected else logging.WARNING,
            "%s: the link to %s is down: %s%s",
            self._broker.id,
            self.neighbour,
            self._goodbye or reason,
            thrown,
        )
        self._effects.forget(self)
        if self._queue_log is not None:
            self._queue_log.went_down(time.time_ns())
        self._core.link_down(self.neighbour)

    # What comes

    def frames_arrived(self, connection: Connection, frames: list[Frame]) -> None:
        """Take in what the neighbour says."""
        messages: list[Message] = []
        for frame in frames:
            said = self._decoder.decode(frame)
            if isinstance(said, list):
                if frame.kind != FrameKind.NOTIFICATIONS:
                    self._check(said)
                messages += said
            elif isinstance(said, Ping):
                connection.write(encode_control(Pong()))
            elif isinstance(said, Notice):
                self._backpressure.heard(self.neighbour, said)
            elif isinstance(said, Asking):
                self._broker.inquiries.heard(self.neighbour, said)
            elif isinstance(said, Goodbye):
                self._goodbye = said.reason
        if messages:
            self.messages_arrived(messages)

    def messages_arrived(self, messages: list[Message]) -> None:
        """Let the routing core have what the neighbour has sent, as much at once as it wants."""
        self.heard_at = self._loop.time()
        step = self._core.batch_size(messages)
        for start in range(0, len(messages), step):
            part = messages[start : start + step]
            effects = self._core.messages_arrived(self.neighbour, part, time.monotonic_ns())
            self._effects.carry_out(effects)
            self._effects.flush()
        if not self._broker.start_up.is_over:
            self._broker.start_up.look()

    def _check(self, messages: list[Message]) -> None:
        """Refuse what the core must never see, whoever claims to be the neighbour."""
        overlay = self._broker.overlay
        for message in messages:
            if not self._core.speaks(message):
                algorithm = overlay.routing.algorithm
                raise ProtocolError(f"{type(message).__name__} is not spoken under {algorithm}")
            if isinstance(message, NotificationMessage):
                if message.cbv_p & ~self._other_clusters:
                    raise ProtocolError(f"{message.cbv_p} names clusters that cannot be pending")
                if message.bids >> len(overlay.scot.brokers):
                    raise ProtocolError("a notification is for brokers that are not there")
            elif isinstance(message, Mark) and message.host not in overlay.scot.brokers:
                raise ProtocolError(f"a mark is of {message.host}, which is not there")

    # What goes

    def enqueue(self, messages: list[Message], reasons: list[Reason]) -> None:
        """Put messages on the queue; `pump` then lets them go."""
        if self._queue_log is not None:
            self._queue_log.enqueued(messages, reasons, time.time_ns())
        queue = self.queue
        queue.put([encode_message(message) for message in messages])
        if queue.has_backpressure and queue.is_over_bound:
            self._overflow()

    def control(self, message: Ping | Pong | Goodbye | Notice | Asking) -> None:
        """Send a control message past the queue."""
        if self.connection is not None:
            if isinstance(message, Asking):
                self.connection.write(encode_asking(message))
            else:
                self.connection.write(encode_control(message))

    def pump(self) -> None:
        """Let messages go from the queue to the socket, as far as both allow."""
        connection, waiting = self.connection, self.queue.messages
        if connection is None:
            return
        if self._shaper is not None:
            self._pump_shaped(connection, self._shaper)
        else:
            while waiting and connection.is_writable:
                connection.write(self._take(WRITE_BYTES))

    def may_write(self, connection: Connection) -> None:  # noqa: ARG002 - Peer's interface
        """Send what has waited for room in the socket."""
        self.pump()

    def _take(self, bytes_max: float) -> bytes:
        batch = self.queue.take(bytes_max)
        if self._queue_log is not None:
            self._queue_log.left(len(batch), time.time_ns())
        self._core.messages_left(self.neighbour, len(batch), time.monotonic_ns())
        return b"".join(frames_of(batch))

    def _pump_shaped(self, connection: Connection, shaper: Shaper) -> None:
        now, waiting = self._loop.time(), self.queue.messages
        while waiting and connection.is_writable and (budget := shaper.budget(now)) > 0:
            shaper.send(self._take(min(budget, WRITE_BYTES)), now)
        for data in shaper.arrived(now):
            connection.write(data)
        if self._timer is not None:
            self._timer.cancel()
        again = shaper.next_event(now, waiting=bool(waiting))
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
