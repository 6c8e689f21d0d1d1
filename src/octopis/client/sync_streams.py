"""Streams of notifications without async: they block, and end where nothing comes in time."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from octopis.client.durable import DurableNotifications
from octopis.client.streams import Notifications, Received

if TYPE_CHECKING:
    from octopis.core.filters import Filter

_Result = TypeVar("_Result")


class Waiter(Protocol):
    """The client, as its streams see it."""

    def wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Return what the work comes to, on the client's event loop."""


class SyncNotifications:
    """A stream of notifications, for `with` and `for`; or `open` it, and `close` it at the end."""

    def __init__(self, client: Waiter, stream: Notifications, timeout_s: float | None) -> None:
        self._client = client
        self._stream = stream
        self._timeout_s = timeout_s
        self._batches: AsyncIterator[list[Received]] = stream.batches()
        self._ready: deque[Received] = deque()

    def __enter__(self) -> "SyncNotifications":
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Subscribe; returns when the host broker has accepted all filters."""
        self._client.wait(self._stream.open())

    def close(self) -> None:
        """Unsubscribe, and end the stream."""
        self._client.wait(self._stream.close())

    def __iter__(self) -> Iterator[Received]:
        return self

    def __next__(self) -> Received:
        if not self._ready and not self._fill(self._timeout_s):
            raise StopIteration
        return self._ready.popleft()

    def next(self, timeout: float | None = None) -> Received | None:
        """Return the next notification, or None where none has come for `timeout` seconds.

        None also where the stream has ended. Without `timeout` it waits.
        """
        return self._ready.popleft() if self._ready or self._fill(timeout) else None

    def batches(self) -> Iterator[list[Received]]:
        """Yield everything that has arrived since the last time, in one list: for speed."""
        while self._ready or self._fill(self._timeout_s):
            batch = list(self._ready)
            self._ready.clear()
            yield batch

    def _fill(self, timeout_s: float | None) -> bool:
        """Wait for something to read; False where nothing came in time, or nothing more will."""
        try:
            self._ready += self._client.wait(self._batch(timeout_s))
        except (TimeoutError, StopAsyncIteration):
            self._batches = self._stream.batches()
            return False
        return True

    @property
    def subscriptions(self) -> "dict[str, Filter]":
        """The filters by their subscriptions' ids."""
        return self._stream.subscriptions

    @property
    def gaps(self) -> int:
        """How many gaps there were so far."""
        return self._stream.gaps

    async def _batch(self, timeout_s: float | None) -> list[Received]:
        async with asyncio.timeout(timeout_s):
            return await anext(self._batches)


class SyncDurableNotifications:
    """A stream of a durable subscription, for `with` and `for`; see DurableNotifications.

    Unless `acks` is "manual", a notification is acknowledged when the next one is asked for, and
    the last one when the stream is left without an error.
    """

    def __init__(
        self, client: Waiter, stream: DurableNotifications, timeout_s: float | None
    ) -> None:
        self._client = client
        self._stream = stream
        self._timeout_s = timeout_s
        self._ready: deque[Received] = deque()

    def __enter__(self) -> "SyncDurableNotifications":
        self.open()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(ack=kind is None and self._stream.acks_itself)

    def open(self) -> None:
        """Begin; returns when the broker has the subscription on disk."""
        self._client.wait(self._stream.open())

    def close(self, *, ack: bool = False) -> None:
        """End the stream, not the subscription; with `ack`, acknowledge all that was taken."""
        self._ready.clear()
        self._client.wait(self._stream.close(ack=ack))

    def ack(self, position: int | None = None) -> None:
        """Acknowledge all up to a position, the last that was taken by default.

        Returns when the broker has that on disk.
        """
        self._client.wait(self._stream.ack(position))

    @property
    def name(self) -> str:
        """The name of the durable subscription."""
        return self._stream.name

    @property
    def position(self) -> int:
        """The position of the last notification that was taken."""
        return self._stream.position

    @property
    def acked(self) -> int:
        """All up to this position is acknowledged, as far as this stream knows."""
        return self._stream.acked

    @property
    def epoch(self) -> int:
        """Another one where a subscription of the same name was made anew."""
        return self._stream.epoch

    @property
    def gaps(self) -> int:
        """How many gaps there were so far."""
        return self._stream.gaps

    def __iter__(self) -> Iterator[Received]:
        return self

    def __next__(self) -> Received:
        found = self.next(self._timeout_s)
        if found is None:
            raise StopIteration
        return found

    def next(self, timeout: float | None = None) -> Received | None:
        """Return the next notification, or None where none has come for `timeout` seconds."""
        self._acknowledge_taken()
        if not self._ready and not self._fill(timeout):
            return None
        found = self._ready.popleft()
        self._stream.position = found.position
        return found

    def batches(self) -> Iterator[list[Received]]:
        """Yield everything that has arrived since the last time, in one list: for speed."""
        self._acknowledge_taken()
        while self._ready or self._fill(self._timeout_s):
            batch = list(self._ready)
            self._ready.clear()
            self._stream.position = batch[-1].position
            yield batch
            self._acknowledge_taken()

    def _acknowledge_taken(self) -> None:
        if upto := self._stream.to_acknowledge():
            self._client.wait(self._stream.tell_acked(upto))

    def _fill(self, timeout_s: float | None) -> bool:
        """Wait for something to read; False where nothing came in time."""
        try:
            self._client.wait(self._fetch(timeout_s))
        except TimeoutError:
            return False
        return True

    async def _fetch(self, timeout_s: float | None) -> None:
        async with asyncio.timeout(timeout_s):
            # Here, on the client's loop: whoever is interrupted while waiting loses nothing.
            self._ready += await self._stream.fetch()
