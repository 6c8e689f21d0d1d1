"""What waits for one reader, an event stream or a socket: bounded, and what is dropped is told.

What a feed brings is encoded once and shared by all readers that have it: their queues hold the
same bytes. A reader that is slower than what comes loses its oldest, is ended, or makes the feed
wait, as brokers do with slow clients (`client_queues.policy`).
"""

import asyncio
from collections import deque
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from octopis.gateway.documents import NotificationOut
from octopis.gateway.settings import GatewayLimits

BATCH_MAX = 256
"""Notifications that are encoded, and dropped, together."""

_PASS_BYTES = 256 * 1024
_encode = msgspec.json.Encoder().encode


class GapNote(Struct, frozen=True, omit_defaults=True):
    """Notifications may be missing here; `dropped` is how many, where that is known."""

    reason: str
    dropped: int | None = None


class Batch:
    """Notifications that came together, encoded once."""

    __slots__ = ("bodies", "count", "notifications", "size", "sse_frames")

    def __init__(self, notifications: Sequence[NotificationOut], bodies: list[bytes]) -> None:
        self.notifications = notifications
        self.bodies = bodies
        self.count = len(bodies)
        self.size = sum(map(len, bodies))
        self.sse_frames = b""
        """All of them as server-sent events, once somebody has asked for that."""


class KeptBatch(Batch):
    """Notifications that nobody drops: of a durable subscription, which waits until `taken`."""

    __slots__ = ("taken",)

    def __init__(
        self,
        notifications: Sequence[NotificationOut],
        bodies: list[bytes],
        taken: asyncio.Event | None = None,
    ) -> None:
        super().__init__(notifications, bodies)
        self.taken = taken or asyncio.Event()


def encode_batch(notifications: Sequence[NotificationOut]) -> Batch:
    """Return a batch of notifications."""
    return Batch(notifications, list(map(_encode, notifications)))


Item = tuple[str, Batch | GapNote]
"""For a subscription of the reader, by its name there: notifications, or a gap."""


class Reader:
    """What waits for a reader. `take` it, as long as it is not over."""

    def __init__(self, limits: GatewayLimits, policy: str) -> None:
        self.ending = ""
        """Why the reader is to end; empty as long as it is not."""

        self.dropped = 0
        self.waiting = 0
        """How many notifications wait."""

        self.policy = policy
        self._count_max, self._bytes_max = limits.reader_notifications, limits.reader_bytes
        self._stall_s = limits.stall_s
        self._bytes = 0
        self._items: deque[Item] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._lost: dict[str, int] = {}
        """How many were dropped, by subscription; told before all that waits."""

        self._unsure: dict[str, GapNote] = {}
        """The last gap of unknown size among what was dropped, by subscription."""

    @property
    def is_over_bound(self) -> bool:
        """Whether more waits than may."""
        return self.waiting > self._count_max or self._bytes > self._bytes_max

    def push(self, name: str, batch: Batch) -> None:
        """Let notifications wait; what has no room goes by the policy."""
        if self.ending:
            return
        self._items.append((name, batch))
        if not isinstance(batch, KeptBatch):
            self.waiting += batch.count
            self._bytes += batch.size
            if self.is_over_bound:
                self._overflow()
        self.wake()

    def gap(self, name: str, note: GapNote) -> None:
        """Tell of notifications that may be missing at this place."""
        if not self.ending:
            if self._items and self._items[-1] == (name, note):
                return  # it has just been told
            self._items.append((name, note))
            if len(self._items) > self._count_max:
                self.end("there were more gaps than it could hear of")
            self.wake()

    def forget(self, name: str) -> None:
        """Let nothing wait any more for a subscription that has ended: its name may come again."""
        kept: deque[Item] = deque()
        for each in self._items:
            if each[0] != name:
                kept.append(each)
            elif isinstance(each[1], Batch):
                self._left(each[1])
        self._items = kept
        self._lost.pop(name, None)
        self._unsure.pop(name, None)
        if not self.is_over_bound:
            self._make_room()

    def end(self, reason: str) -> None:
        """Let nothing more come; what waits is not sent."""
        self.ending = self.ending or reason
        self._items.clear()
        self.waiting = self._bytes = 0
        self.wake()
        self._make_room()

    def wake(self) -> None:
        """Let whoever waits for more look again."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def more(self, timeout_s: float | None = None) -> bool:
        """Wait for something, an end included; False where nothing came within that time."""
        if not (self._items or self.ending or self._lost or self._unsure):
            self._wake = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._wake
            except TimeoutError:
                return False
            finally:
                self._wake = None
        return True

    async def woken(self) -> None:
        """Wait until `wake` is called, or the end: whether anything waits or not."""
        if not self.ending:
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None

    def take(self, count_max: int | None = None) -> list[Item]:
        """Return what waits, the oldest first: so many notifications at most, a batch at least."""
        found: list[Item] = []
        if self._lost or self._unsure:
            reason = "the gateway dropped {:,} for this slow reader"
            found += [(name, GapNote(reason.format(n), n)) for name, n in self._lost.items()]
            found += self._unsure.items()
            self._lost, self._unsure = {}, {}
        size = count = 0
        while self._items and size < _PASS_BYTES:
            name, item = self._items[0]
            if isinstance(item, Batch):
                if count_max is not None and count + item.count > count_max:
                    head = count_max - count
                    if head > 0:
                        found.append((name, self._split(head)))
                    break
                self._left(item)
                size += item.size
                count += item.count
            self._items.popleft()
            found.append((name, item))
        if not self.is_over_bound:
            self._make_room()
        return found

    async def room(self) -> None:
        """Wait until there is room; a reader that makes none for too long is ended."""
        while self.is_over_bound and not self.ending:
            self._room = self._room or asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(self._stall_s):
                    await asyncio.shield(self._room)
            except TimeoutError:
                self.end(f"it has taken nothing for {self._stall_s:g} s, and others wait for it")

    def _split(self, count: int) -> Batch:
        """Return the first of the oldest batch, and let the rest wait."""
        name, batch = self._items.popleft()
        assert isinstance(batch, Batch)
        rest = batch.notifications[count:], batch.bodies[count:]
        head = Batch(batch.notifications[:count], batch.bodies[:count])
        if isinstance(batch, KeptBatch):
            self._items.appendleft((name, KeptBatch(*rest, batch.taken)))
        else:
            self._items.appendleft((name, Batch(*rest)))
            self._left(head)
        return head

    def _left(self, batch: Batch) -> None:
        if isinstance(batch, KeptBatch):
            batch.taken.set()
        else:
            self.waiting -= batch.count
            self._bytes -= batch.size

    def _overflow(self) -> None:
        if self.policy == "disconnect":
            self.end("it was too slow")
        elif self.policy == "drop_oldest":
            kept: list[Item] = []
            while self.is_over_bound and len(self._items) > 1:
                name, item = self._items.popleft()
                if isinstance(item, KeptBatch):
                    kept.append((name, item))
                elif isinstance(item, Batch):
                    self._left(item)
                    self.dropped += item.count
                    self._lost[name] = self._lost.get(name, 0) + item.count
                elif item.dropped is not None:
                    self._lost[name] = self._lost.get(name, 0) + item.dropped
                else:
                    self._unsure[name] = item
            self._items.extendleft(reversed(kept))

    def _make_room(self) -> None:
        if self._room is not None:
            if not self._room.done():
                self._room.set_result(None)
            self._room = None
