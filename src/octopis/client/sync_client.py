"""The client library without async, for scripts and notebooks: the same names, blocking.

An event loop in a thread of its own does the work.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import uvloop

from octopis.client.client import Client
from octopis.client.publishing import Publication
from octopis.client.streams import Gap, Notifications, Received
from octopis.core.model import BrokerId, Value

if TYPE_CHECKING:
    from octopis.core.filters import Filter

_Result = TypeVar("_Result")


class SyncClient:
    """A client that blocks. Use it as `with octopis.connect_sync(address) as client`."""

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
        try:
            self.wait(self._client.open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        return self.wait(self._client.publish_many(list(publications)))

    def subscribe(
        self,
        *filters: "str | Filter",
        dialect: str = "sql",
        on_gap: Callable[[Gap], None] | None = None,
        timeout_s: float | None = None,
    ) -> "SyncNotifications":
        """Return a stream of what any of the filters matches; see Client.subscribe.

        Iterating ends where nothing has come for `timeout_s` seconds; without it, it waits.
        `on_gap` is called in the client's own thread.
        """
        stream = self._client.subscribe(*filters, dialect=dialect, on_gap=on_gap)
        return SyncNotifications(self, stream, timeout_s)

    def status(self) -> dict[str, Any]:
        """Ask the broker how it is."""
        return self.wait(self._client.status())

    def close(self) -> None:
        """Say goodbye."""
        if self._thread.is_alive():
            self.wait(self._client.close())
            self._stop()

    def wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Return what the work comes to, on the client's event loop."""
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
    """A stream of notifications, for `with` and `for`."""

    def __init__(self, client: SyncClient, stream: Notifications, timeout_s: float | None) -> None:
        self._client = client
        self._stream = stream
        self._timeout_s = timeout_s
        self._batches: AsyncIterator[list[Received]] = stream.batches()
        self._ready: deque[Received] = deque()

    def __enter__(self) -> "SyncNotifications":
        self._client.wait(self._stream.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._client.wait(self._stream.__aexit__())

    def __iter__(self) -> Iterator[Received]:
        return self

    def __next__(self) -> Received:
        if not self._ready:
            try:
                self._ready += self._client.wait(self._batch())
            except (TimeoutError, StopAsyncIteration):
                self._batches = self._stream.batches()
                raise StopIteration from None
        return self._ready.popleft()

    @property
    def subscriptions(self) -> "dict[str, Filter]":
        """The filters by their subscriptions' ids."""
        return self._stream.subscriptions

    @property
    def gaps(self) -> int:
        """How many gaps there were so far."""
        return self._stream.gaps

    async def _batch(self) -> list[Received]:
        async with asyncio.timeout(self._timeout_s):
            return await anext(self._batches)


def connect_sync(address: str, **options: Any) -> SyncClient:
    """Return a blocking client of the broker at `address`, for `with`; see `connect`."""
    return SyncClient(address, **options)


async def _made(address: str, options: dict[str, Any]) -> Client:
    return Client(address, **options)
