"""A broker's disk: what is accepted waits until it is there, and only then goes anywhere.

Accepting is quick: what was published is matched, numbered and handed to the store. When the store
says that it is synced, it is delivered and passed on, and its publishers are answered.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from octopis.broker.clients.session import ClientSession
from octopis.broker.disk.codec import WireCodec
from octopis.broker.effects import Effects
from octopis.broker.settings import OverlayConfiguration
from octopis.core.delivery.lasting.channels import LastingChannels
from octopis.core.model import BrokerId
from octopis.core.routing import Broker
from octopis.core.routing.algorithms.target_routing import Accepted
from octopis.core.wire.link import overlay_digest
from octopis.core.wire.published import Published
from octopis.errors import StoreFailed, StoreFull
from octopis.store import Store

_UNSYNCED_BYTES = 64 * 2**20
"""So much may wait for the disk before publishers do."""

_SEGMENT_BYTES = 64 * 2**20
_SEGMENTS_MIN = 16
"""Room is had back by whole segments: a quota has so many at least."""

_WARN_S = 10.0
_log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """A request whose client waits for an answer."""

    session: ClientSession
    request: int


class _Waiting(NamedTuple):
    ticket: int
    size: int
    accepted: Accepted | None
    answers: list[Answer]


class _Action(NamedTuple):
    ticket: int
    action: Callable[[], None]
    asked: Sequence[Answer]


def folder_of(folder: str, broker: BrokerId) -> Path:
    """Return where in an overlay's folder a broker keeps its own."""
    return Path(folder) / quote(broker.short, safe=",")


class Keeping:
    """The disk of one broker: opened and recovered when it is made, then `begin`, then `close`."""

    def __init__(self, broker: BrokerId, overlay: OverlayConfiguration, life: int) -> None:
        """Open and recover the broker's folder. Raises StoreFailed where that cannot be."""
        options = overlay.durability
        self._id = broker
        self.name = str(broker)
        self._wait_s = options.wait_s
        begun = time.monotonic()
        self.store = Store(
            folder_of(options.folder, broker),
            # Broker b,2 of another overlay has other neighbours, and numbers them differently.
            f"{broker.short} of the overlay {overlay_digest(overlay.scot)}",
            segment_bytes=min(_SEGMENT_BYTES, options.quota_bytes // _SEGMENTS_MIN),
            sync=options.sync,
            interval_s=options.interval_ms / 1000,
        )
        self.quota_bytes = quota = options.quota_bytes
        """What may be in use on disk."""

        about = broker, overlay.scot, life, overlay.delivery
        bounds = quota, options.queries_max
        self.channels = LastingChannels(*about, self.store, WireCodec(), *bounds)
        try:
            self.channels.recover(self.store.recover(), time.monotonic_ns())
        except BaseException:
            self.store.close()
            raise
        self.failure: StoreFailed | None = None
        self._blocked_at: float | None = None
        self._warned_at = -_WARN_S
        self._waiting: deque[_Waiting] = deque()
        self.unsynced = 0
        """How many bytes of publications wait for the disk."""

        self._actions: deque[_Action] = deque()
        self._loop = asyncio.get_running_loop()
        self._say_recovered(time.monotonic() - begun)

    def _say_recovered(self, took_s: float) -> None:
        kept, durables = self.channels.sender.kept, len(list(self.channels.durables))
        _log.info(
            "%s has recovered in %.1f s: %d records, %d publications to send, %d durable "
            "subscriptions",
            *(self._id, took_s, self.store.records, kept, durables),
        )
        for damage in self.store.damages:
            _log.error("%s has lost records: %s", self._id, damage)
        for there in self.channels.staging.undone:
            _log.error(
                "%s does not go on with a batch that was committed: of it only %s are not damaged; "
                "it has to be written again",
                *(self._id, there),
            )

    def begin(
        self, core: Broker, effects: Effects, stir: Callable[[], None], wake: Callable[[], None]
    ) -> None:
        """Let the core begin with what is remembered, and start to write.

        `stir` is called when channels have something to say, `wake` when publishers may go on.
        """
        self._core, self._effects, self._stir, self._wake = core, effects, stir, wake
        channels = self.channels
        core.watch_durables(channels.durables_changed)
        core.restore(channels.own_subscriptions(), channels.hosts.known(), time.monotonic_ns())
        self.store.start(self._loop, self._synced, self._failed)

    def when_synced(self, action: Callable[[], None], asked: Sequence[Answer] = ()) -> None:
        """Do something as soon as all is on disk that is known now.

        If the disk fails it is never done, and those who have `asked` for it are told.
        """
        if self.failure is not None:
            self._answer(asked, self.failure)
            return
        self.channels.hosts.write()
        self._actions.append(_Action(self.store.ticket, action, asked))
        self._act()

    def _act(self) -> None:
        while self._actions and self._actions[0].ticket <= self.store.synced:
            self._actions.popleft().action()

    def check(self) -> None:
        """Raise StoreFailed where nothing can be written any more."""
        if self.failure is not None:
            raise self.failure

    # Publications

    @property
    def is_behind(self) -> bool:
        """Whether publishers have to wait for the disk."""
        return self.unsynced > _UNSYNCED_BYTES

    def refusal(self) -> StoreFailed | None:
        """Return why nothing is accepted, if that is so for longer than publishers wait."""
        if self.failure is not None:
            return self.failure
        if self._blocked_at is None or self._loop.time() - self._blocked_at < self._wait_s:
            return None
        return StoreFull(str(self._id), self._why_blocked())

    def staging_refusal(self) -> StoreFailed | None:
        """Return why nothing may be staged: it has its own room, where publishers have none."""
        return StoreFull(self.name, self._why_blocked()) if self.channels.is_full else None

    def _why_blocked(self) -> str:
        if not self.store.has_room:
            return "its disk is full"
        return f"its {self.store.used_bytes:,} bytes on disk are all that its quota allows"

    def take(self, batch: list[Published], answers: list[Answer]) -> None:
        """Accept publications; they go on their way, and are answered, when they are on disk."""
        if self.failure is not None:
            self._answer(answers, self.failure)
            return
        fresh = [each for each in batch if not self.channels.has(each)]
        accepted = self._core.accept(fresh, time.monotonic_ns()) if fresh else None
        size = sum(len(each.encoded) for each in fresh)
        self.unsynced += size
        self._waiting.append(_Waiting(self.store.ticket, size, accepted, answers))
        if self.store.synced >= self.store.ticket:  # it was all there before
            self._synced(self.store.ticket)

    def _synced(self, ticket: int) -> None:
        now_ns = time.monotonic_ns()
        self.channels.synced(ticket, now_ns)
        was_behind = self.is_behind
        while self._waiting and self._waiting[0].ticket <= ticket:
            waiting = self._waiting.popleft()
            self.unsynced -= waiting.size
            if waiting.accepted is not None:
                for effects in self._core.release(waiting.accepted, now_ns):
                    self._effects.carry_out(effects)
                    self._effects.flush()
            self._answer(waiting.answers)
        self._act()
        self._effects.flush()
        self._look_at_room()
        self._stir()
        if was_behind and not self.is_behind:
            self._wake()

    def _answer(self, answers: Sequence[Answer], failure: StoreFailed | None = None) -> None:
        unheard = len(self._core.unheard)
        for session, request in answers:
            session.syncing.discard(request)
            session.answer(request, failure, 0, unheard)
            self._effects.add(session)

    def _failed(self, failure: StoreFailed) -> None:
        """Write nothing more: nobody knows what is on disk. What was there before can be read."""
        _log.critical("%s keeps nothing any more: %s; restart it", self._id, failure)
        self.failure = failure
        self.channels.fail()
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            self._answer(each.answers, failure)
        actions, self._actions = self._actions, deque()
        for action in actions:
            self._answer(action.asked, failure)
        self._effects.flush()
        self._wake()

    # Time

    def tidy(self) -> None:
        """Have room back that nobody needs."""
        if self.failure is None:
            self.channels.tidy()
            self._look_at_room()
            self._stir()

    def _look_at_room(self) -> None:
        """Note when there is no room, and say so now and then."""
        now = self._loop.time()
        if not self.channels.is_blocked:
            self._blocked_at = None
            return
        if self._blocked_at is None:
            self._blocked_at = now
        if self.refusal() is not None:
            self._wake()  # who waits is told
        if now - self._warned_at >= _WARN_S:
            self._warned_at = now
            _log.warning("%s takes no publications: %s", self._id, self._why_blocked())

    async def close(self) -> None:
        """Write what is left, and let go of the folder."""
        if self.failure is None:
            self.channels.hosts.write()
        await asyncio.to_thread(self.store.close)

    def status(self) -> dict[str, object]:
        """Say how the disk is, in values as JSON has them."""
        times = self.store.sync_ns
        return {
            "state": self._state(),
            "bytes": self.store.used_bytes,
            "live_bytes": self.store.live_bytes,
            "records": self.store.records,
            "unsynced_bytes": self.unsynced,
            "syncs": times.count,
            "sync_ms_mean": round(times.mean / 1e6, 3),
            "sync_ms_max": round(times.max / 1e6, 3),
            "damages": len(self.store.damages) + self.channels.damaged,
        }

    def _state(self) -> str:
        if self.failure is not None:
            return "failed"
        return "full" if self.channels.is_blocked else "ok"
