"""A broker with a disk for tests of Spark, in a thread, and what they do with its subscriptions."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from octopis.broker.settings import Durability
from octopis.client.sync_client import SyncClient, connect_sync
from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm
from octopis.core.wire.durable import DurableInfo
from support.live import in_a_thread, line, overlay


@contextmanager
def broker_with_disk(folder: Path, **options: Any) -> Iterator[str]:
    """Run one broker; yield where to connect."""
    durability = Durability(str(folder), **options)
    configuration = overlay(line(1), Algorithm.TNR, durability=durability)
    with in_a_thread(configuration) as urls:
        yield urls["a,0"]


class Desk:
    """Somebody who publishes, and looks after durable subscriptions."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client

    def publish(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._client.publish_many([dict(row) for row in rows])

    def make(self, name: str, condition: str = "n >= 0", policy: Any = None) -> DurableInfo:
        work = self._client._client.open_durable(name, parse_filter(condition, "sql"), policy)
        return self._client.wait(work)

    def info(self, name: str) -> DurableInfo:
        return {each.name: each for each in self._client.wait(self._durables())}[name]

    async def _durables(self) -> list[DurableInfo]:
        return await self._client._client.durables()

    def read(self, name: str, count: int) -> list[Mapping[str, Any]]:
        """Return so many of what is kept, and make sure that there are no more."""
        found: list[Mapping[str, Any]] = []
        while len(found) < count:
            batch = self._client.wait(self._client._client.read(name, len(found), wait_s=20))
            assert batch.notifications, f"only {len(found)} of {count} have come"
            found += [each.attributes for each in batch.notifications]
        assert self.info(name).end == count
        return found

    def ack(self, name: str, position: int) -> None:
        epoch = self.info(name).epoch
        self._client.wait(self._client._client.ack(name, epoch, position))

    def drop(self, name: str) -> None:
        self._client.wait(self._client._client.drop_durable(name))


@contextmanager
def desk(url: str, **options: Any) -> Iterator[Desk]:
    """Connect to a broker."""
    with connect_sync(url, **options) as client:
        yield Desk(client)
