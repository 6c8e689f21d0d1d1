"""The client library without async, for scripts and notebooks: the same names, blocking.

An event loop in a thread of its own does the work.
"""

import asyncio
import threading
from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop

from octopis.client.client import SETTLED_S, Client
from octopis.client.publishing import Publication, check_several
from octopis.client.streams import Gap, Notifications, Received
from octopis.core.model import BrokerId, Value
from octopis.errors import NotOpen

if TYPE_CHECKING:
    from octopis.core.filters import Filter

_Result = TypeVar("_Result")


class SyncClient:
    """A client that blocks. Use it as `with octopis.connect_sync(address) as client`.

    Or call `open` first and `close` at the end.
    """

    def __init__(self, address: str, **options: Any) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._client = self.wait(_made(address, options))
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> "SyncClient":
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Connect, or raise ConnectionFailed; see Client.open."""
        try:
            self.wait(self._client.open())
        except BaseException:
            self._stop()
            raise

    @property
    def id(self) -> str:
        """The client's name."""
        return self._client.id

    @property
    def broker(self) -> BrokerId | None:
        """The broker that the client is connected to, once it is."""
        return self._client.broker

    def publish(
        self,
        attributes: Mapping[str, Value],
        payload: bytes = b"",
        *,
        intended_ns: int | None = None,
    ) -> None:
        """Publish a notification; see Client.publish."""
        self.wait(self._client.publish(attributes, payload, intended_ns=intended_ns))

    def publish_many(self, publications: Iterable[Publication]) -> int:
        """Publish many; see Client.publish_many."""
        check_several(publications)
        return self.wait(self._client.publish_many(list(publications)))

    def subscribe(
        self,
        *filters: "str | Filter",
        dialect: str = "sql",
        on_gap: Callable[[Gap], None] | None = None,
        names: Sequence[str] | None = None,
        timeout_s: float | None = None,
    ) -> "SyncNotifications":
        """Return a stream of what any of the filters matches; see Client.subscribe.

        Iterating ends where nothing has come for `timeout_s` seconds; without it, it waits.
        `on_gap` is called in the client's own thread.
        """
        stream = self._client.subscribe(*filters, dialect=dialect, on_gap=on_gap, names=names)
        return SyncNotifications(self, stream, timeout_s)

    def status(self) -> dict[str, Any]:
        """Ask the broker how it is."""
        return self.wait(self._client.status())

    def settled(self, *, timeout_s: float = SETTLED_S) -> None:
        """Wait until every living broker knows all subscriptions; see Client.settled."""
        self.wait(self._client.settled(timeout_s=timeout_s))

    def close(self) -> None:
        """Say goodbye."""
        if self._thread.is_alive():
            self.wait(self._client.close())
            self._stop()

    def wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Return what the work comes to, on the client's event loop."""
        if self._loop.is_closed():
            work.close()
            raise NotOpen("the client is closed: make another with octopis.connect_sync(...)")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncNotifications:
    """A stream of notifications, for `with` and `for`; or `open` it, and `close` it at the end."""

    def __init__(self, client: SyncClient, stream: Notifications, timeout_s: float | None) -> None:
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


def connect_sync(address: str, **options: Any) -> SyncClient:
    """Return a blocking client of the broker at `address`, for `with`; see `connect`."""
    return SyncClient(address, **options)


async def _made(address: str, options: dict[str, Any]) -> Client:
    return Client(address, **options)
