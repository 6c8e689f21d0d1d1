"""A live broker: the routing core, driven by sockets and the wall clock.

It is put together, started and stopped here. Links and clients' intake tell the core what happens;
`effects` carries out what it says.
"""

import asyncio
import logging
import secrets
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from socket import socket

from octopis.broker.clients.intake import Intake
from octopis.broker.clients.session import ClientSession
from octopis.broker.clients.shares import SharesOf
from octopis.broker.connection import LogLimit
from octopis.broker.disk.committing import Committing
from octopis.broker.disk.desk import Desk
from octopis.broker.disk.keeping import Keeping
from octopis.broker.effects import Effects
from octopis.broker.handshake import Dialler, Reception, dials
from octopis.broker.links.backpressure import Backpressure
from octopis.broker.links.link import NeighbourLink
from octopis.broker.links.posting import Posting
from octopis.broker.links.settling import Inquiries
from octopis.broker.listening import Listening, guard_of
from octopis.broker.memory import Memory
from octopis.broker.metrics.delays import Delays, index_of
from octopis.broker.pace import Pace
from octopis.broker.recorder import Recorder
from octopis.broker.settings import OverlayConfiguration
from octopis.broker.start_up import StartUp
from octopis.broker.status import status_of
from octopis.client.address import Address
from octopis.core.delivery.channels import Channels
from octopis.core.delivery.posts import Post
from octopis.core.delivery.receiver import Missed
from octopis.core.model import BrokerId
from octopis.core.routing.algorithms.spreading import LIFE_BITS
from octopis.errors import NotPermitted, ProtocolError
from octopis.security.identity import Identity

_TICK_S = 0.5
_COMPARE_S = 1.0
"""Neighbours compare so often what they have heard of hosts, where that has changed."""

_MISSED_S = 60.0
_MISSED_MAX = 256
"""Who comes back within so long is told what was missed here meanwhile, so many at most."""

_SWITCH_S = 0.0005
_WINDOW_NS_MIN = 1_000_000
"""Windows are recorded no more often than this, however short they are."""

_STILL_S = 0.05
"""A broker that stops waits until nothing has come for so long: neighbours empty queues, too."""

_log = logging.getLogger(__name__)


@cache
def _builder() -> ThreadPoolExecutor:
    """Return who builds large parts of matching indexes, for all brokers of this process.

    By default a thread at work keeps others waiting for 5 ms each time: too long for a broker.
    """
    sys.setswitchinterval(_SWITCH_S)
    return ThreadPoolExecutor(1, thread_name_prefix="index")


class LiveBroker:
    """One broker of an overlay on this machine: `listen`, then `start`, then `stop`.

    All brokers of an event loop have one `pace`.
    """

    def __init__(
        self,
        broker: BrokerId,
        overlay: OverlayConfiguration,
        recorder: Recorder | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.id = broker
        self.pace = pace or Pace()
        self.overlay = overlay
        self.address = self.link_address = Address()
        self.warnings = LogLimit(_log)
        self.started_at = time.time()
        self.recorder = recorder or Recorder()
        routing, life = overlay.routing, secrets.randbits(LIFE_BITS)
        self.delays = Delays() if overlay.metrics.is_on else None
        """What is measured now and then, where metrics are shown."""

        self.keeping = Keeping(broker, overlay, life) if overlay.is_durable else None
        """The disk, where there is one."""

        channels: Channels | None = None
        if self.keeping is not None:
            channels = self.keeping.channels
        elif overlay.has_channels:
            channels = Channels(broker, overlay.scot, life, overlay.delivery)
        self.core = self.recorder.make_core(
            broker,
            overlay.scot,
            routing.algorithm,
            congestion_threshold=routing.congestion_threshold,
            window_ms=routing.window_ms,
            links_up=False,
            index=partial(index_of, self.delays, _builder().submit),
            life=life,
            channels=channels,
        )
        self.memory = Memory(overlay.limits.client_bytes)
        self.links: dict[BrokerId, NeighbourLink] = {}
        self.clients: dict[str, ClientSession] = {}
        self.effects = Effects(self.links, self.clients, self.recorder)
        self.backpressure = Backpressure(broker, overlay, self.links, self._wake)
        for neighbour in overlay.scot.neighbours(broker):
            self.links[neighbour] = NeighbourLink(self, neighbour)
        self.posting = None if channels is None else self._post(channels)
        first = time.time_ns() // 1000  # above what it has used before a restart, if the clock is
        self.inquiries = Inquiries(self.core, overlay.scot, self.links, self.effects, first)
        self.intake = self._take_in()
        self.committing: Committing | None = None
        self.desk = None if self.keeping is None else self._begin_to_keep(self.keeping)
        self.start_up = StartUp(self.core, overlay.limits.sync_s, self.intake.open)
        self.ready = self.start_up.ready
        """Set once the broker takes requests."""

        limits = overlay.limits
        self.users = SharesOf(limits, "a user with all its clients", limits.clients_per_user)
        """What the live subscriptions of those take who have logged in."""

        self.refusals = 0
        """How often the role of a client did not allow what it asked for."""

        self._missed: deque[tuple[float, BrokerId, int | None]] = deque(maxlen=_MISSED_MAX)
        self._loop = asyncio.get_running_loop()
        self.guard = guard_of(self)
        """Who is let in, and until when; None where that is anybody."""

        self._reception = Reception(self)
        self.listening = Listening(self, self._reception)
        self.broken: asyncio.Future[BaseException] = self._loop.create_future()
        """Why the broker does not work any more, once it does not: end its process then.

        Half of a broker, one that lets nobody out whose login has ended, say, is worse than none.
        """

        self._tasks: list[asyncio.Task[None]] = []
        self._stopping_at: float | None = None

    def _take_in(self) -> Intake:
        return Intake(
            self.core,
            self.effects,
            self.backpressure,
            self.recorder,
            self.inquiries,
            self.pace,
            clients=self.clients,
            limits=self.overlay.limits,
            posting=self.posting,
            keeping=self.keeping,
        )

    def _begin_to_keep(self, keeping: Keeping) -> Desk:
        assert self.posting is not None, "what is kept goes on channels"
        if self.delays is not None:
            keeping.store.on_syncs = self.delays.synced
        keeping.begin(self.core, self.effects, self.posting.stir, self._wake)
        self.inquiries.when_kept = keeping.when_synced
        limits, durability = self.overlay.limits, self.overlay.durability
        free = partial(self.intake.free, is_held=self.backpressure.is_held_for_batches)
        about = keeping, self.effects, limits.publish_window, free
        self.committing = Committing(*about, self.intake.rates, durability.staged_s)
        parts = keeping, self.core, self.effects, self.committing
        about_clients = self.recorder.read, durability.expire_s, limits, self.intake.rates
        return Desk(*parts, *about_clients)

    @property
    def store_name(self) -> str:
        """What clients know the disk by; empty where there is none, or nothing is kept there."""
        if self.keeping is None or self.keeping.failure is not None:
            return ""
        return f"{self.id.short}/{self.keeping.store.epoch:08x}"

    # Start

    async def listen(self, sock: socket | None = None, link_sock: socket | None = None) -> Address:
        """Listen for clients and neighbours, and return where clients connect; see Listening."""
        self.address, self.link_address = await self.listening.open(sock, link_sock)
        return self.address

    def start(self, addresses: dict[BrokerId, Address]) -> None:
        """Dial the neighbours that this broker has to dial, and begin to keep time."""
        for neighbour, link in self.links.items():
            if dials(self.overlay.scot, self.id, neighbour):
                self._keep_doing(Dialler(self, link, addresses[neighbour]).run())
        self._keep_doing(self._ticks())
        if self.guard is not None:
            self._keep_doing(self.guard.run())
        if self.recorder.wants_windows:
            self._keep_doing(self._windows())
        self.start_up.begin()

    def _keep_doing(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """Know that work has ended that never should; a fault of ours."""
        fault = None if task.cancelled() else task.exception()
        if fault is not None and not self.broken.done():
            _log.critical("%s does not work any more", self.id, exc_info=fault)
            self.broken.set_result(fault)

    # How it is

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
        links = sum(max(link.waiting, link.is_busy) for link in self.links.values())
        if self.posting is not None and self.keeping is None:  # what is on disk need not wait
            links += self.posting.channels.sender.kept
        return links + sum(len(session.queue) for session in self.clients.values())

    # Who may do what

    def roles_changed(self, current: Callable[[Identity], Identity | None]) -> int:
        """Send away whose role allows something else now; see Intake."""
        return self.intake.roles_changed(current)

    def refused(self, session: ClientSession, refusal: NotPermitted) -> None:
        """Note what a client's role did not allow."""
        self.refusals += 1
        self.warnings.say(
            self._loop.time(), "refusals", "%s: %s: %s", self.id, session.name, refusal
        )
        if self.guard is not None and session.identity is not None:
            user = session.identity.name
            self.guard.write("not_permitted", user=user, client=session.client, reason=str(refusal))

    def left(self, session: ClientSession, reason: str) -> None:
        """Note that somebody who has logged in is not here any more."""
        if self.guard is not None and session.identity is not None:
            user = session.identity.name
            self.guard.write("session_ended", user=user, client=session.client, reason=reason)

    # Stop

    @property
    def drain_until(self) -> float:
        """When a stop that has begun no longer waits for queues to empty."""
        assert self._stopping_at is not None, "nobody has begun to stop this broker"
        return self._stopping_at + self.overlay.limits.drain_s

    def begin_stop(self) -> None:
        """Take no more clients and publications; what is under way goes on."""
        if self._stopping_at is None:
            self._stopping_at = self._loop.time()
            self.intake.close()
            self.listening.close()

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
        self.start_up.cancel()
        self.inquiries.stop()
        if self.posting is not None:
            self.posting.stop()
        if self.guard is not None:
            self.guard.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if connections:
            await asyncio.wait([connection.closed for connection in connections], timeout=2)
        if self.keeping is not None:
            await self.keeping.close()
        dropped = self.intake.dropped + sum(session.dropped for session in self.clients.values())
        undelivered = self.intake.undelivered + self.effects.undelivered
        self.recorder.finish(self.core, dropped + undelivered)
        _log.info("%s has stopped", self.id)

    async def _drained(self) -> None:
        """Wait until queues are empty and nothing has come for a moment, but not for ever."""
        begun_at = self._stopping_at or 0.0
        while (now := self._loop.time()) < self.drain_until:
            moved_at = max([begun_at, *(link.heard_at for link in self.links.values())])
            if not self.queued and now - moved_at > _STILL_S:
                return
            await asyncio.sleep(0.01)
        if self.queued:
            _log.warning("%s stops although %d messages wait in its queues", self.id, self.queued)

    # Time

    async def _windows(self) -> None:
        """Let each window of the link status be recorded once, right after its end."""
        window_ns = max(round(self.overlay.routing.window_ms * 1_000_000), _WINDOW_NS_MIN)
        while True:
            end_ns = (time.monotonic_ns() // window_ns + 1) * window_ns
            while (early_ns := end_ns - time.monotonic_ns()) > 0:
                await asyncio.sleep(early_ns / 1e9)  # it may wake us a little early
            self.recorder.window(self.core)

    async def _ticks(self) -> None:
        compared_at = 0.0
        while True:
            slept_at = self._loop.time()
            await asyncio.sleep(_TICK_S)
            now = self._loop.time()
            links = [link.connection for link in self.links.values() if link.connection is not None]
            sessions = list(self.clients.values())
            if now - slept_at > 2 * _TICK_S:  # held up itself: what was said meanwhile is unread
                for connection in [*links, *(session.connection for session in sessions)]:
                    connection.wait_anew(now)
            for connection in links:
                connection.look_after(now)
            for session in sessions:
                session.look_after(now)
            self.backpressure.say()
            self.backpressure.expire()
            if self.keeping is not None and self.desk is not None:
                self.keeping.tidy()
                self.desk.look_after(now)
            self._wake()
            if now - compared_at >= _COMPARE_S:
                compared_at = now
                self.effects.carry_out(self.core.compare(time.monotonic_ns()))
                self.effects.flush()

    def _wake(self) -> None:
        self.intake.wake()
        if self.committing is not None and self.intake.is_open:
            self.committing.go_on()

    # Channels

    def _post(self, channels: Channels) -> Posting:
        held, missed = self.backpressure.windows_changed, self._tell_missed
        scot = self.overlay.scot
        return Posting(channels, self.core, scot, self.links, self.effects, held, missed)

    def take_posts(self, posts: list[Post]) -> None:
        """Take in what the ends of channels say to each other. Raises ProtocolError."""
        if self.posting is None:
            raise ProtocolError("there are no channels here")
        self.posting.heard(posts)

    def _tell_missed(self, missed: Missed) -> None:
        """Tell all subscribers here, and those who come back soon, what they will never get."""
        host = self.overlay.scot.brokers[missed.place]
        count = "some" if missed.count is None else f"{missed.count:,}"
        _log.warning("%s: %s notifications of %s are missing here", self.id, count, host)
        self._missed.append((self._loop.time(), host, missed.count))
        for session in self.clients.values():
            if session.numbers:
                session.missed(host, missed.count)
                self.effects.add(session)
        self.effects.flush()

    def missed_lately(self) -> list[tuple[BrokerId, int | None]]:
        """Return what subscribers here were told of late, for one who was away meanwhile."""
        since = self._loop.time() - _MISSED_S
        return [(host, count) for at, host, count in self._missed if at >= since]
