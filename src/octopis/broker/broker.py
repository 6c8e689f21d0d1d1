"""A live broker: the routing core, driven by sockets and the wall clock.

It keeps to what `octopis.core.routing.broker` demands of a driver: effects are carried out in order
before the core is told anything else, and the core hears of every message that leaves a queue.
"""

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from socket import socket

from octopis.broker.backpressure import Congestion
from octopis.broker.connection import LogLimit
from octopis.broker.dialler import Dialler
from octopis.broker.intake import BATCH_MAX, Intake
from octopis.broker.link import NeighbourLink
from octopis.broker.reception import Reception, dials
from octopis.broker.recording import Recording
from octopis.broker.session import ClientSession
from octopis.broker.settings import OverlayConfiguration
from octopis.broker.status import status_of
from octopis.client.address import Address
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId
from octopis.core.routing import (
    Broker,
    Deliver,
    Effect,
    Enqueue,
    Message,
)
from octopis.core.wire.client import SubscribeRequest, UnsubscribeRequest
from octopis.core.wire.control import Notice
from octopis.core.wire.published import Published
from octopis.errors import InvalidConfiguration, InvalidFilter, InvalidSubscription, OperationFailed

_TICK_S = 0.5
_STILL_S = 0.05
"""A broker that stops waits until nothing has come for so long: neighbours empty queues, too."""

_log = logging.getLogger(__name__)


class LiveBroker:
    """One broker of an overlay on this machine: `listen`, then `start`, then `stop`."""

    def __init__(
        self, broker: BrokerId, overlay: OverlayConfiguration, recording: Recording | None = None
    ) -> None:
        self.id = broker
        self.overlay = overlay
        self.address = Address()
        self.warnings = LogLimit(_log)
        self.ready = asyncio.Event()
        self.core = Broker(
            broker,
            overlay.scot,
            overlay.algorithm,
            congestion_threshold=overlay.congestion_threshold,
            window_ms=overlay.window_ms,
            links_up=False,
        )
        self.links = {
            neighbour: NeighbourLink(self, neighbour)
            for neighbour in overlay.scot.neighbours(broker)
        }
        self.clients: dict[str, ClientSession] = {}
        # Numbers go on rising after a restart, as long as the machine's clock does.
        number = time.time_ns() // 1000
        self.congestion = Congestion(broker, overlay, self.links, number, self._wake)
        self.published = 0
        self.undelivered = 0
        self.client_drops = 0
        self.started_at = time.time()
        self._loop = asyncio.get_running_loop()
        self._is_synced = False
        self.intake = Intake(
            self,
            batch_max=min(BATCH_MAX, self.core.batch_max),
            bytes_max=overlay.limits.frame_max // 2,
        )
        self._reception = Reception(self)
        self._dirty: dict[NeighbourLink | ClientSession, None] = {}
        self._server: asyncio.Server | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._recording = recording or Recording()
        self._timers: list[asyncio.TimerHandle] = []
        self._moved_at = 0.0
        self._is_stopping = False
        self.drain_until = 0.0
        """When a stop no longer waits for queues to empty."""

    # Life

    async def listen(self, sock: socket | None = None) -> Address:
        """Open the door, and return where it is; at `sock`, where that is open already.

        Raises InvalidConfiguration where the address is not allowed, OperationFailed where it
        is taken.
        """
        address = self.overlay.address(self.id)
        make = self._reception.make_connection
        try:
            if sock is not None:
                self._server = await self._loop.create_server(make, sock=sock)
            else:
                self._server = await self._loop.create_server(make, *address, reuse_address=True)
        except OSError as failure:
            raise OperationFailed(f"{self.id} cannot listen at {address}: {failure}") from failure
        place = self._server.sockets[0].getsockname()
        self.address = Address(place[0], place[1])
        return self.address

    def start(self, addresses: dict[BrokerId, Address]) -> None:
        """Dial the neighbours that this broker has to dial, and begin to keep time."""
        for neighbour, link in self.links.items():
            if dials(self, self.id, neighbour):
                self._keep_doing(Dialler(self, link, addresses[neighbour]).run())
        self._keep_doing(self._windows())
        self._keep_doing(self._ticks())
        self._timers.append(self._loop.call_later(self.overlay.limits.sync_s, self._end_sync))
        self._look_at_sync()

    def _keep_doing(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """Say where work that should never end has ended all the same."""
        if not task.cancelled() and task.exception() is not None:
            _log.critical("%s does not work any more", self.id, exc_info=task.exception())

    def begin_stop(self) -> None:
        """Take no more clients and publications; what is under way goes on."""
        if not self._is_stopping:
            self._is_stopping = True
            self._moved_at = self._loop.time()
            self.drain_until = self._moved_at + self.overlay.limits.drain_s
            if self._server is not None:
                self._server.close()

    async def stop(self) -> None:
        """Begin to stop, let queues empty for a while, say goodbye and close."""
        self.begin_stop()
        await self._drained()
        connections = [link.connection for link in self.links.values() if link.connection]
        connections += [session.connection for session in self.clients.values()]
        connections += self._reception.connections
        for link in self.links.values():
            link.close(f"{self.id} stops")
        for connection in connections:
            connection.close(f"{self.id} stops")
        for timer in self._timers:
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if connections:
            await asyncio.wait([connection.closed for connection in connections], timeout=2)
        dropped = self.client_drops + sum(session.dropped for session in self.clients.values())
        self._recording.finish(self.core, dropped + self.undelivered)
        _log.info("%s has stopped", self.id)

    async def _drained(self) -> None:
        """Wait until queues are empty and nothing has come for a moment, but not for ever."""
        while self._loop.time() < self.drain_until:
            if not self.queued and self._loop.time() - self._moved_at > _STILL_S:
                return
            await asyncio.sleep(0.01)
        if self.queued:
            _log.warning("%s stops although %d messages wait in its queues", self.id, self.queued)

    @property
    def is_ready(self) -> bool:
        """Whether the broker knows what its neighbours know, and takes requests."""
        return self._is_synced

    @property
    def may_publish(self) -> bool:
        """Whether publications may be taken in now."""
        return self.is_ready and not self._is_stopping and not self.congestion.holds

    @property
    def may_change(self) -> bool:
        """Whether changes of subscriptions may be taken in now."""
        has_room = not any(link.queue.is_full for link in self.links.values())
        return self.is_ready and not self._is_stopping and has_room

    def status(self) -> dict[str, object]:
        """Say how the broker is, in values as JSON has them."""
        return status_of(self)

    @property
    def has_all_links(self) -> bool:
        """Whether every neighbour is connected."""
        return all(link.is_up for link in self.links.values())

    @property
    def queued(self) -> int:
        """How many messages wait in queues; one at least for a link that holds some back."""
        links = sum(max(len(link.queue), link.is_busy) for link in self.links.values())
        return links + sum(len(session.queue) for session in self.clients.values())

    # What clients ask for

    def client_arrived(self, session: ClientSession) -> None:
        """Take a client in. One of the same name is the same client, whose line was cut."""
        older = self.clients.get(session.client)
        if older is not None:
            older.connection.close("the client has connected anew")
            older.connection_lost(older.connection, "the client has connected anew")
        self.clients[session.client] = session
        session.log = self._recording.deliveries()
        _log.debug("%s: %s is here", self.id, session.name)

    def client_left(self, session: ClientSession, reason: str) -> None:
        """End the subscriptions of a client that is gone."""
        if self.clients.get(session.client) is not session:
            return
        del self.clients[session.client]
        self._dirty.pop(session, None)
        self.intake.forget(session)
        self.undelivered += session.undelivered
        self.client_drops += session.dropped
        _log.debug("%s: %s has left: %s", self.id, session.name, reason)
        self._carry_out(self.core.client_leaves(session.client, time.monotonic_ns()))
        self.flush()

    def requests_wait(self, session: ClientSession) -> None:
        """Let a session's requests have their turn."""
        self.intake.add(session)

    def publish(self, batch: list[Published]) -> None:
        """Route notifications of own clients."""
        self.published += len(batch)
        self._recording.published(batch)
        self._carry_out(self.core.client_publishes(batch, time.monotonic_ns()))

    def change(
        self, session: ClientSession, request: SubscribeRequest | UnsubscribeRequest
    ) -> None:
        """Subscribe or unsubscribe, and answer."""
        self._dirty[session] = None
        try:
            if isinstance(request, UnsubscribeRequest):
                self._unsubscribe(session, request)
            else:
                self._subscribe(session, request)
        except (InvalidFilter, InvalidSubscription, InvalidConfiguration) as refusal:
            session.answer(request.request, refusal)
        else:
            session.answer(request.request)

    def _subscribe(self, session: ClientSession, request: SubscribeRequest) -> None:
        if session.numbers.get(request.id, request.number) != request.number:
            reason = f"the subscription {request.id!r} has another number already"
            raise InvalidSubscription(reason, request.id)
        filter_ = parse_filter(request.filter, request.dialect)
        client, now_ns = session.client, time.monotonic_ns()
        effects = self.core.client_subscribes(client, request.id, filter_, request.epoch, now_ns)
        if request.id not in session.numbers:
            self._recording.subscribed(client, request.id)
        session.numbers[request.id] = request.number
        self._carry_out(effects)

    def _unsubscribe(self, session: ClientSession, request: UnsubscribeRequest) -> None:
        now_ns = time.monotonic_ns()
        session.numbers.pop(request.id, None)  # also where the subscription has moved away
        self._carry_out(self.core.client_unsubscribes(session.client, request.id, now_ns))

    # What links tell

    def link_is_up(self, neighbour: BrokerId) -> None:
        """Bring a neighbour up to date."""
        self._carry_out(self.core.link_up(neighbour, time.monotonic_ns()))
        self.congestion.tell(neighbour)
        self.flush()

    def link_is_down(self, neighbour: BrokerId) -> None:
        """Stop using a link."""
        self._dirty.pop(self.links[neighbour], None)
        self._recording.link_down(neighbour)
        self.core.link_down(neighbour)

    def messages_arrived(self, neighbour: BrokerId, messages: Sequence[Message]) -> None:
        """Take in what a neighbour has sent."""
        self._moved_at = self._loop.time()
        step = self.core.batch_size(messages)
        for start in range(0, len(messages), step):
            part = messages[start : start + step]
            self._carry_out(self.core.messages_arrived(neighbour, part, time.monotonic_ns()))
            self.flush()
        if not self._is_synced:
            self._look_at_sync()

    def messages_left(self, neighbour: BrokerId, count: int) -> None:
        """Tell the core what went over a link."""
        self._recording.left(neighbour, count)
        self.core.messages_left(neighbour, count, time.monotonic_ns())

    def messages_dropped(self, neighbour: BrokerId, count: int) -> None:
        """Tell the core what a full queue has lost."""
        self._recording.dropped(neighbour, count)
        self.core.messages_dropped(neighbour, count, time.monotonic_ns())

    def notice_arrived(self, neighbour: BrokerId, notice: Notice) -> None:
        """Take a notice of congestion in."""
        self.congestion.heard(neighbour, notice)

    def congestion_changed(self, output: object, *, congested: bool) -> None:
        """Note that a queue is congested, or no longer so."""
        self.congestion.output_changed(output, congested=congested)

    # Effects

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                session = self.clients[effect.client]
                session.deliver(effect.notification, effect.subscriptions)
                self._dirty[session] = None
            elif isinstance(effect, Enqueue):
                link = self.links[effect.link]
                self._recording.enqueued(effect.link, effect.messages, effect.reasons)
                link.enqueue(effect.messages)
                self._dirty[link] = None
            else:
                self._recording.stored(effect.subscription)

    def flush(self) -> None:
        """Let go what was put on queues since the last time."""
        dirty, self._dirty = self._dirty, {}
        for output in dirty:
            output.pump()

    # Time

    async def _windows(self) -> None:
        window_s = self.overlay.window_ms / 1000
        due = self._loop.time()
        while True:
            due += window_s
            now = self._loop.time()
            due = max(due, now)  # where the machine was busy, the window was longer, not several
            await asyncio.sleep(due - now)
            self.core.link_status.roll(time.monotonic_ns())
            self._recording.window(self.core)

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            now = self._loop.time()
            for link in self.links.values():
                if link.connection is not None:
                    link.connection.look_after(now)
            for session in list(self.clients.values()):
                session.look_after(now)
            self.congestion.say()
            self.congestion.expire()
            self._wake()

    # Start

    def _look_at_sync(self) -> None:
        if not self._is_synced and not self.core.unheard:
            _log.info("%s is ready: it has heard of all neighbours", self.id)
            self._begin()

    def _end_sync(self) -> None:
        if not self._is_synced:
            missing = ", ".join(map(str, self.core.unheard))
            _log.warning("%s goes on without having heard of %s", self.id, missing)
            self._begin()

    def _begin(self) -> None:
        self._is_synced = True
        self.ready.set()
        self._wake()

    def _wake(self) -> None:
        self.intake.wake()
