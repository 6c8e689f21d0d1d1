"""An overlay whose brokers can be hurt, with clients that write down what happens to them."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from octopis.benchmarks.channels.clients import (
    ClientProcess,
    Clients,
    Publisher,
    Subscriber,
    client_process,
)
from octopis.benchmarks.channels.logs import (
    Accepted,
    Got,
    Verdict,
    judge,
    read_accepted,
    read_got,
)
from octopis.benchmarks.kills.brokers import MortalBrokers, mortal_brokers
from octopis.core.model import BrokerId
from octopis.overlay.status import totals

_LOOK_S = 0.1
_SAMPLE_S = 0.5
_PATIENCE_S = 30.0
"""What has not come when nothing came for so long, will not come."""


class Memory(msgspec.Struct):
    """What brokers had in memory, in MB: the largest process, and all together."""

    largest_mb: float
    all_mb: float


class Stage:
    """Brokers in processes of their own, one process of publishers, and one of subscribers."""

    def __init__(
        self,
        brokers: MortalBrokers,
        folder: Path,
        publishers: Sequence[Publisher],
        subscribers: Sequence[Subscriber],
    ) -> None:
        self.brokers = brokers
        self._folder = folder
        self._publishers = publishers
        self._subscribers = subscribers
        self._samples: list[tuple[float, dict[BrokerId, float]]] = []
        self.publishing: ClientProcess
        self.reading: ClientProcess

    def clients(
        self, publishers: Sequence[Publisher] = (), subscribers: Sequence[Subscriber] = ()
    ) -> AbstractAsyncContextManager[ClientProcess]:
        """Run a process of clients."""
        addresses = {broker.short: url for broker, url in self.brokers.addresses.items()}
        folder = str(self._folder)
        return client_process(Clients(addresses, folder, list(publishers), list(subscribers)))

    async def figures(self) -> dict[str, int]:
        """Return what channels count, summed over all brokers that live."""
        found = totals(await self.brokers.status())["delivery"]
        return {name: count for name, count in found.items() if isinstance(count, int)}

    async def finish(self) -> None:
        """Let publishers stop, and wait for all that was accepted; not for what does not come."""
        await self.publishing.tell("stop")
        accepted = self.accepted()
        due = {
            each.name: sum(
                len(each.wants.of(name, np.array(log.numbers, dtype=np.int64)))
                for name, log in accepted.items()
            )
            for each in self._subscribers
        }
        counts: dict[str, int] = {}
        moved = time.monotonic()
        while time.monotonic() - moved < _PATIENCE_S:
            before, counts = counts, await self.reading.tell("look")
            if all(counts[name] >= count for name, count in due.items()):
                break
            if counts != before:
                moved = time.monotonic()
            await asyncio.sleep(_LOOK_S)
        await asyncio.sleep(_LOOK_S)  # more than was due would come now
        await self.reading.tell("look")

    def accepted(self) -> dict[str, Accepted]:
        """Return the logs of publishers."""
        return {
            each.name: read_accepted(self._folder / f"{each.name}.log") for each in self._publishers
        }

    def got(self) -> dict[str, Got]:
        """Return the logs of subscribers."""
        return {
            each.name: read_got(self._folder / f"{each.name}.log") for each in self._subscribers
        }

    def verdict(self) -> Verdict:
        """Return what the logs say."""
        wants = {each.name: each.wants for each in self._subscribers}
        return judge(wants, self.accepted(), self.got())

    def memory(self, start: float, end: float) -> Memory:
        """Return the most that brokers had between two times."""
        found = [by.values() for at, by in self._samples if start <= at < end and by]
        return Memory(
            largest_mb=max((max(each) for each in found), default=0.0),
            all_mb=max((sum(each) for each in found), default=0.0),
        )

    async def watch(self) -> None:
        """Look at the memory of all brokers now and then."""
        while True:
            self._samples.append((time.monotonic(), self.brokers.memory_mb()))
            await asyncio.sleep(_SAMPLE_S)


@asynccontextmanager
async def stage(
    overlay: str,
    folder: Path,
    publishers: Sequence[Publisher],
    subscribers: Sequence[Subscriber],
    settings: Mapping[str, Any] | None = None,
) -> AsyncIterator[Stage]:
    """Run brokers, with such `settings` of theirs, and clients; publishers wait for `go`."""
    async with mortal_brokers(overlay, "tnr", folder / "brokers.log", settings) as brokers:
        found = Stage(brokers, folder, publishers, subscribers)
        async with (
            found.clients(subscribers=subscribers) as found.reading,
            found.clients(publishers=publishers) as found.publishing,
        ):
            await found.brokers.settled()
            watching = asyncio.create_task(found.watch())
            try:
                yield found
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
