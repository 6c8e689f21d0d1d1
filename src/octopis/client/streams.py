"""What a subscriber reads: notifications in order, and word of what is missing between them.

A client may have several streams. Deliveries are numbered as they arrive and handed to the streams
that they are for. The broker is told the number of the oldest one that nobody has read yet, so that
it never sends more than the window ahead of the slowest stream.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from octopis.core.model import BrokerId, Value
from octopis.core.wire.client import Delivery
from octopis.errors import InvalidSubscription, NotOpen, OctopisError

if TYPE_CHECKING:
    from octopis.core.filters import Filter

_REPORT_S = 1.0
"""What was consumed is reported so often at least, while anything is."""

_log = logging.getLogger(__name__)


class Received(msgspec.Struct, frozen=True, gc=False):
    """A notification as a subscriber gets it.

    `sequence` numbers the notifications of `publisher`; `intended_ns` is when it was meant to
    be published (nanoseconds since 1970); `subscriptions` are those of this stream that match.
    `position` is its place in a durable subscription, and 0 elsewhere.
    """

    attributes: dict[str, Value]
    payload: bytes
    publisher: str
    sequence: int
    intended_ns: int
    subscriptions: tuple[str, ...]
    position: int = 0


class Gap(msgspec.Struct, frozen=True):
    """Notifications may be missing here. `dropped` is how many, where that is known.

    They were dropped because this client was too slow, or missed while it was not connected; or
    they were published at `host`, which could not bring them here.
    """

    reason: str
    dropped: int | None = None
    host: BrokerId | None = None

    @classmethod
    def missed(cls, host: BrokerId, count: int | None) -> "Gap":
        """Return the gap where notifications published at a host will not come."""
        if count is None:
            reason = f"{host} has started anew, and what it had accepted before may be missing"
        else:
            reason = f"{host} could not bring {count:,} notifications to the broker of this client"
        return cls(reason, count, host)


class StreamHome(Protocol):
    """The client, as its streams see it."""

    async def open_stream(self, stream: "Notifications") -> None:
        """Subscribe."""

    async def close_stream(self, stream: "Notifications") -> None:
        """Unsubscribe."""

    def consumed(self) -> None:
        """Note that a stream has let go of deliveries."""


class Notifications:
    """A stream of notifications that match any of its filters, each once.

    Use it as `async with client.subscribe(...) as notifications`, and then as
    `async for notification in notifications`. It subscribes on entering and unsubscribes on
    leaving. When notifications may be missing, `on_gap` is called with a Gap at that place of
    the stream, before the next notification; without it, the log says so.
    """

    def __init__(
        self,
        home: StreamHome,
        filters: "dict[int, tuple[str, Filter]]",
        on_gap: Callable[[Gap], None] | None,
    ) -> None:
        self.subscriptions = dict(filters.values())
        """The filters by their subscriptions' ids."""

        self.gaps = 0
        """How many gaps there were so far."""

        self._home = home
        self._on_gap = on_gap
        self.names = {number: name for number, (name, _) in filters.items()}
        """The subscriptions' ids by the numbers under which deliveries name them."""

        self._buffer: deque[tuple[int, Delivery | Gap]] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._is_open = self._is_ended = False
        self._failure: OctopisError | None = None

    async def __aenter__(self) -> "Notifications":
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Subscribe; returns when the host broker has accepted all filters."""
        await self._home.open_stream(self)
        self._is_open = True

    async def close(self) -> None:
        """Unsubscribe, and end the stream."""
        self.end()
        await self._home.close_stream(self)

    def __aiter__(self) -> "Notifications":
        return self

    async def __anext__(self) -> Received:
        while True:
            while self._buffer:
                found = self._pop()
                if found is not None:
                    self._home.consumed()
                    return found
            if not await self._more():
                raise StopAsyncIteration

    async def batches(self) -> AsyncIterator[list[Received]]:
        """Yield what has arrived since the last time, up to a gap, in one list: for speed."""
        while True:
            while not self._buffer:
                if not await self._more():
                    return
            batch = self._pop_to_gap()
            self._home.consumed()
            if batch:
                yield batch

    # What the client calls

    @property
    def oldest(self) -> int | None:
        """The number of the oldest delivery that nobody has read yet."""
        return self._buffer[0][0] if self._buffer else None

    def push(self, items: Sequence[tuple[int, Delivery | Gap]]) -> None:
        """Append numbered deliveries, and gaps."""
        if not self._is_ended:
            self._buffer += items
            self._wake_up()

    def end(self, failure: OctopisError | None = None) -> None:
        """Let nothing more come; what has arrived can still be read.

        Then iterating stops, or raises `failure` where the end was not wanted.
        """
        if not self._is_ended:
            self._is_ended = True
            self._failure = failure
        self._wake_up()

    def clear(self) -> None:
        """Throw away what nobody has read."""
        self._buffer.clear()

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _more(self) -> bool:
        """Wait for something to read; False where nothing more will come."""
        if self._is_ended:
            if self._failure is not None:
                raise self._failure
            return False
        if not self._is_open:
            raise NotOpen(
                "the stream is not open: use `async with client.subscribe(...) as notifications`, "
                "or `await notifications.open()` first (without `async` in the blocking client)"
            )
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None
        return True

    def _pop_to_gap(self) -> list[Received]:
        """Remove all before the next gap; one that comes first is told."""
        batch: list[Received] = []
        while self._buffer and not (batch and isinstance(self._buffer[0][1], Gap)):
            found = self._pop()
            if found is not None:
                batch.append(found)
        return batch

    def _pop(self) -> Received | None:
        """Remove the oldest item; return it, unless it is a gap, which is told."""
        item = self._buffer.popleft()[1]
        if isinstance(item, Gap):
            self.gaps += 1
            if self._on_gap is not None:
                self._on_gap(item)
            else:
                _log.warning("notifications may be missing: %s", item.reason)
            return None
        names, body = self.names, item.notification
        return Received(
            body.attributes,
            body.payload,
            body.publisher,
            body.sequence,
            body.intended_ns,
            tuple([names[number] for number in item.numbers if number in names]),
        )


class Streams:
    """The open streams of a client."""

    def __init__(self, window: int) -> None:
        self._report_every = max(1, window // 4)
        self._streams: dict[Notifications, None] = {}
        self._by_number: dict[int, Notifications] = {}
        self._arrived = 0
        self._reported = 0
        self._reported_at = 0.0
        self._base = self._next_base = 0
        self._gap: Gap | None = None

    def __iter__(self) -> Iterator[Notifications]:
        return iter(list(self._streams))

    def __contains__(self, stream: Notifications) -> bool:
        return stream in self._streams

    def add(self, stream: Notifications) -> None:
        """Let a stream get what its numbers name."""
        self._streams[stream] = None
        self._by_number |= dict.fromkeys(stream.names, stream)

    def remove(self, stream: Notifications) -> None:
        """Let a stream get nothing more, and forget what it has not read."""
        self._streams.pop(stream, None)
        for number in stream.names:
            self._by_number.pop(number, None)
        stream.clear()

    def dial(self) -> tuple[int, int]:
        """Return how many deliveries wait to be read, and how many this session has brought.

        The first is where a new session begins to count, the second where an old one goes on.
        """
        self._next_base = self._oldest()
        return self._arrived - self._next_base, self._arrived - self._base

    def welcomed(self, *, resumed: bool) -> None:
        """Go on counting in the session that there was, or count anew."""
        if resumed:
            self._gap = None  # it comes again, before the delivery that it belongs to
        else:
            self._tell_gap_before()
            self._base = self._next_base
        self._reported, self._reported_at = self._base, 0.0

    def deliver(self, deliveries: list[Delivery]) -> None:
        """Hand deliveries to the streams that they are for."""
        if self._gap is not None:
            self._tell_gap_before()
        numbered = list(enumerate(deliveries, self._arrived))
        self._arrived += len(deliveries)
        known = self._by_number
        if len(self._streams) == 1:  # the usual case, and fast
            (stream,) = self._streams
            stream.push([each for each in numbered if not known.keys().isdisjoint(each[1].numbers)])
            return
        found: dict[Notifications, list[tuple[int, Delivery | Gap]]] = {}
        for each in numbered:
            for stream in dict.fromkeys(known[n] for n in each[1].numbers if n in known):
                found.setdefault(stream, []).append(each)
        for stream, items in found.items():
            stream.push(items)

    def gap_before_next(self, gap: Gap) -> None:
        """Tell every stream of a gap together with the next delivery.

        Not earlier: where the connection breaks between them, the broker tells both again.
        """
        self._tell_gap_before()
        self._gap = gap

    def _tell_gap_before(self) -> None:
        if self._gap is not None:
            self.tell_gap(self._gap)
            self._gap = None

    def tell_gap(self, gap: Gap) -> None:
        """Tell every stream of a gap: what is missing may have been for any."""
        for stream in self._streams:
            stream.push([(self._arrived, gap)])

    def lose(self, number: int, reason: str) -> None:
        """End the stream that a subscription belongs to: it is another connection's now."""
        stream = self._by_number.get(number)
        if stream is not None:
            stream.end(InvalidSubscription(reason, stream.names[number]))

    def end(self, failure: OctopisError | None) -> None:
        """Let nothing more come on any stream, because of `failure` if it was not wanted."""
        for stream in self._streams:
            stream.end(failure)

    def to_report(self, now: float) -> int | None:
        """Return how many deliveries of this session are consumed, where it is time to say.

        It is after many, and after a while: a broker takes who reports nothing for stalled.
        """
        is_due = now - self._reported_at >= _REPORT_S
        if not is_due and self._arrived - self._reported < self._report_every:
            return None
        oldest = self._oldest()
        if oldest - self._reported < (1 if is_due else self._report_every):
            return None
        self._reported, self._reported_at = oldest, now
        return oldest - self._base

    def _oldest(self) -> int:
        waiting = [stream.oldest for stream in self._streams if stream.oldest is not None]
        return min(waiting, default=self._arrived)
