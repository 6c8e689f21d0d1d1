"""Live brokers with disks on one event loop, each of which can be stopped and started again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from octopis.broker.settings import Durability, Limits
from octopis.client.client import Client
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT
from octopis.overlay.deployment import open_listeners, planned, running
from support.live import Brokers, client_of, overlay

QUICK = Limits(redial_s_max=0.05, drain_s=0.01, sync_s=5.0)
"""Who stops leaves what is under way where it is."""


class Restarting:
    """An overlay on disk whose brokers keep their ports and folders."""

    def __init__(self, scot: SCOT, folder: Path) -> None:
        self.live: Brokers = {}
        self._runs: dict[BrokerId, AsyncExitStack] = {}
        durability = Durability(str(folder), quota_bytes=2**26)
        made = overlay(scot, Algorithm.TNR, durability=durability, limits=QUICK)
        listeners = open_listeners(planned(made, 0))
        places = {broker: each.getsockname() for broker, each in listeners.items()}
        for each in listeners.values():
            each.close()
        self._configuration = made.at(
            {b: made.address(b)._replace(port=p[1]) for b, p in places.items()}
        )

    async def start(self, *brokers: BrokerId) -> None:
        for broker in brokers:
            run = self._runs[broker] = AsyncExitStack()
            self.live |= await run.enter_async_context(running(self._configuration, [broker]))
        for broker in brokers:
            await self.live[broker].ready.wait()

    async def stop(self, broker: BrokerId) -> None:
        await self._runs.pop(broker).aclose()
        del self.live[broker]

    async def restart(self, broker: BrokerId) -> None:
        await self.stop(broker)
        await self.start(broker)

    @asynccontextmanager
    async def clients(self, **options: Any) -> AsyncIterator[dict[str, Client]]:
        """Connect to every broker that runs."""
        async with AsyncExitStack() as stack:
            found = {
                broker.short: await stack.enter_async_context(client_of(each, **options))
                for broker, each in self.live.items()
            }
            yield found


@asynccontextmanager
async def restarting(scot: SCOT, folder: Path) -> AsyncIterator[Restarting]:
    """Run all brokers of an overlay on disk."""
    found = Restarting(scot, folder)
    await found.start(*scot.brokers)
    try:
        yield found
    finally:
        await asyncio.gather(*(found.stop(each) for each in list(found.live)))
