"""The client library without async, for scripts and notebooks: the same names, blocking.

An event loop in a thread of its own does the work.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import uvloop

from octopis.client.asking import SETTLED_S
from octopis.client.client import Client
from octopis.client.durable import Batch, DurableNotifications, Start
from octopis.client.publishing import Publication, check_several
from octopis.client.streams import Gap
from octopis.client.sync_streams import SyncDurableNotifications, SyncNotifications
from octopis.core.model import BrokerId, Value
from octopis.core.wire.durable import READ_MAX, DurableInfo
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
    def bytes_max(self) -> int:
        """How many bytes a notification may have, all told, where this client is connected."""
        return self._client.bytes_max

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

    @overload
    def subscribe(
        self,
        *filters: "str | Filter",
        dialect: str = "sql",
        on_gap: Callable[[Gap], None] | None = None,
        names: Sequence[str] | None = None,
        durable: None = None,
        timeout_s: float | None = None,
    ) -> SyncNotifications: ...

    @overload
    def subscribe(
        self,
        *filters: "str | Filter",
        dialect: str = "sql",
        on_gap: Callable[[Gap], None] | None = None,
        durable: str,
        start: Start = None,
        policy: str | None = None,
        acks: Literal["auto", "manual"] = "auto",
        timeout_s: float | None = None,
    ) -> SyncDurableNotifications: ...

    def subscribe(
        self, *filters: "str | Filter", timeout_s: float | None = None, **options: Any
    ) -> SyncNotifications | SyncDurableNotifications:
        """Return a stream of what any of the filters matches; see Client.subscribe.

        Iterating ends where nothing has come for `timeout_s` seconds; without it, it waits.
        `on_gap` is called in the client's own thread.
        """
        stream = self._client.subscribe(*filters, **options)
        if isinstance(stream, DurableNotifications):
            return SyncDurableNotifications(self, stream, timeout_s)
        return SyncNotifications(self, stream, timeout_s)

    # Durable subscriptions

    def read(
        self, durable: str, after_position: int, max_count: int = READ_MAX, *, wait_s: float = 0.0
    ) -> Batch:
        """Return what a durable subscription has after a position; see Client.read."""
        return self.wait(self._client.read(durable, after_position, max_count, wait_s=wait_s))

    def ack(self, durable: str, epoch: int, position: int) -> None:
        """Release all that a durable subscription has up to a position, for good."""
        self.wait(self._client.ack(durable, epoch, position))

    def durables(self) -> list[DurableInfo]:
        """Return the durable subscriptions that live at the broker of this client."""
        return self.wait(self._client.durables())

    def drop_durable(self, name: str) -> None:
        """End a durable subscription, with all that is kept for it."""
        self.wait(self._client.drop_durable(name))

    # The broker

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


def connect_sync(address: str, **options: Any) -> SyncClient:
    """Return a blocking client of the broker at `address`, for `with`; see `connect`."""
    return SyncClient(address, **options)


async def _made(address: str, options: dict[str, Any]) -> Client:
    return Client(address, **options)
