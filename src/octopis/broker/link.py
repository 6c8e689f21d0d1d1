"""A link to a neighbour: its queue, its connection while there is one, and what goes between."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from octopis.broker.connection import WRITE_BYTES, Connection, LogLimit
from octopis.broker.queue import OutputQueue, Shaper
from octopis.broker.settings import LinkPolicy, OverlayConfiguration
from octopis.core.model import BrokerId
from octopis.core.routing import Broker, Message, NotificationMessage
from octopis.core.wire.control import Goodbye, Notice, Ping, Pong, encode_control
from octopis.core.wire.frames import Frame, FrameKind
from octopis.core.wire.link import LinkDecoder, encode_message, frames_of
from octopis.errors import ProtocolError

SYSTEM_BUFFER_BYTES = 256 * 1024
"""What the system may hold of a link, unseen by the link status table, in each direction."""

_log = logging.getLogger(__name__)


class LinkHome(Protocol):
    """The broker at this end, as its links see it."""

    id: BrokerId
    overlay: OverlayConfiguration
    core: Broker
    warnings: LogLimit

    def link_is_up(self, neighbour: BrokerId) -> None:
        """The link has come up."""

    def link_is_down(self, neighbour: BrokerId) -> None:
        """The link has gone down."""

    def messages_arrived(self, neighbour: BrokerId, messages: Sequence[Message]) -> None:
        """A neighbour has sent messages."""

    def messages_left(self, neighbour: BrokerId, count: int) -> None:
        """Messages have left the queue."""

    def messages_dropped(self, neighbour: BrokerId, count: int) -> None:
        """The full queue has dropped messages."""

    def notice_arrived(self, neighbour: BrokerId, notice: Notice) -> None:
        """A neighbour passes a congestion notice on."""

    def congestion_changed(self, output: object, *, congested: bool) -> None:
        """A queue has passed its high-water mark, or come back."""


class NeighbourLink:
    """One end of a link. It is a connection's Peer while the connection stands."""

    def __init__(self, home: LinkHome, neighbour: BrokerId) -> None:
        self.neighbour = neighbour
        self.name = str(neighbour)
        self.queue = OutputQueue(home.overlay.queues)
        self.connection: Connection | None = None
        self.dropped = 0
        self.lost = 0
        self.reconnects = -1
        self._home = home
        self._policy = home.overlay.link_policy
        self._loop = asyncio.get_running_loop()
        shape = home.overlay.shapes.get((home.id, neighbour))
        self._shaper = None if shape is None else Shaper(shape, self._loop.time())
        self._timer: asyncio.TimerHandle | None = None
        self._decoder = LinkDecoder()
        self._said_congested = False
        self._goodbye: str | None = None

    @property
    def is_up(self) -> bool:
        """Whether a connection stands."""
        return self.connection is not None

    @property
    def is_busy(self) -> bool:
        """Whether anything waits or is held back on its way."""
        return bool(self.queue) or (self._shaper is not None and self._shaper.is_carrying)

    def up(self, connection: Connection) -> None:
        """Take a connection whose greeting is over."""
        assert self.connection is None, f"the link to {self.neighbour} is up already"
        _log.info("%s: the link to %s is up", self._home.id, self.neighbour)
        connection.greeted(self)
        connection.set_buffers(SYSTEM_BUFFER_BYTES)
        self.connection = connection
        self.reconnects += 1
        self._decoder = LinkDecoder()
        self._goodbye = None
        self._home.link_is_up(self.neighbour)

    def enqueue(self, messages: list[Message]) -> None:
        """Put messages on the queue; `pump` then lets them go."""
        self.queue.put([encode_message(message) for message in messages])
        if self.queue.is_over_bound:
            self._overflow()
        self._tell_congestion()

    def close(self, reason: str) -> None:
        """Say goodbye and close the connection, if there is one."""
        if self.connection is not None:
            self._goodbye = reason
            self.connection.close(reason)

    def control(self, message: Ping | Pong | Goodbye | Notice) -> None:
        """Send a control message past the queue."""
        if self.connection is not None:
            self.connection.write(encode_control(message))

    def pump(self) -> None:
        """Let messages go from the queue to the socket, as far as both allow."""
        if self._shaper is not None:
            self._pump_shaped(self._shaper)
        else:
            connection = self.connection
            while self.queue and connection is not None and connection.is_writable:
                connection.write(self._take(WRITE_BYTES))
        self._tell_congestion()

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
                self._home.notice_arrived(self.neighbour, said)
            elif isinstance(said, Goodbye):
                self._goodbye = said.reason
        if messages:
            self._home.messages_arrived(self.neighbour, messages)

    def may_write(self, connection: Connection) -> None:  # noqa: ARG002 - Peer's interface
        """Go on."""
        self.pump()

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
            self._home.id,
            self.neighbour,
            self._goodbye or reason,
            thrown,
        )
        self._tell_congestion()
        self._home.link_is_down(self.neighbour)

    def _take(self, bytes_max: float) -> bytes:
        batch = self.queue.take(bytes_max)
        self._home.messages_left(self.neighbour, len(batch))
        return b"".join(frames_of(batch))

    def _pump_shaped(self, shaper: Shaper) -> None:
        now = self._loop.time()
        connection = self.connection
        if connection is None:
            return
        while self.queue and connection.is_writable and (budget := shaper.budget(now)) > 0:
            shaper.send(self._take(min(budget, WRITE_BYTES)), now)
        for data in shaper.arrived(now):
            connection.write(data)
        if self._timer is not None:
            self._timer.cancel()
        again = shaper.next_event(now, waiting=bool(self.queue))
        self._timer = None if again is None else self._loop.call_at(again, self.pump)

    def _overflow(self) -> None:
        if self._policy is LinkPolicy.DROP_OLDEST:
            dropped = self.queue.drop_oldest()
        else:
            dropped = self.queue.drop_newest()
        self.dropped += dropped
        self._home.messages_dropped(self.neighbour, dropped)
        if self._policy is LinkPolicy.DISCONNECT and self.connection is not None:
            self.connection.close(f"the queue to {self.neighbour} is over its bound")
        self._home.warnings.say(
            self._loop.time(),
            "full queues",
            "%s: the queue to %s is full: dropped %d notifications, %d so far",
            self._home.id,
            self.neighbour,
            dropped,
            self.dropped,
        )

    def _check(self, messages: list[Message]) -> None:
        """Refuse what the core must never see, whoever claims to be the neighbour."""
        scot, here = self._home.overlay.scot, self._home.id
        others = (1 << len(scot.clusters)) - 1 & ~(1 << here.cluster)
        for message in messages:
            if not self._home.core.speaks(message):
                algorithm = self._home.overlay.algorithm
                raise ProtocolError(f"{type(message).__name__} is not spoken under {algorithm}")
            if isinstance(message, NotificationMessage):
                if message.cbv_p & ~others:
                    raise ProtocolError(f"{message.cbv_p} names clusters that cannot be pending")
                if message.bids >> len(scot.brokers):
                    raise ProtocolError("a notification is for brokers that are not there")

    def _tell_congestion(self) -> None:
        if self.queue.is_congested != self._said_congested:
            self._said_congested = self.queue.is_congested
            self._home.congestion_changed(self, congested=self._said_congested)
