"""Clients at every broker, some of which publish steadily: they see who gets what, and when."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from octopis.client.client import Client
from octopis.client.streams import Notifications
from octopis.core.model import BrokerId
from octopis.errors import OctopisError, OperationFailed

_LOOK_S = 0.02
_START_S = 60.0


@dataclass(slots=True)
class Witness:
    """A client of one broker, and what it got: publisher's broker and number, and when."""

    broker: BrokerId
    client: Client
    got: list[tuple[str, int, float]] = field(default_factory=list)
    number: int = 0
    """Of its next publication. It never begins anew: what comes late is not taken for new."""

    async def read(self, notifications: Notifications) -> None:
        """Note what comes."""
        async for batch in notifications.batches():
            now = time.monotonic()
            for each in batch:
                source, number = each.attributes["source"], each.attributes["number"]
                assert isinstance(source, str)
                assert isinstance(number, int)
                self.got.append((source, number, now))

    async def publish(self, stop: asyncio.Event, period_s: float) -> range:
        """Publish one notification in each period; return the numbers that were accepted."""
        first, due = self.number, time.monotonic()
        while not stop.is_set():
            await self.client.publish({"source": self.broker.short, "number": self.number})
            self.number += 1
            due += period_s
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        return range(first, self.number)


class Witnesses:
    """One witness at every broker."""

    def __init__(self, witnesses: dict[BrokerId, Witness]) -> None:
        self._witnesses = witnesses

    def __getitem__(self, broker: BrokerId) -> Witness:
        return self._witnesses[broker]

    def forget(self) -> None:
        """Begin anew."""
        for each in self._witnesses.values():
            each.got.clear()

    async def agree(self, limit_s: float = _START_S) -> float:
        """Wait until every broker has heard the same and knows all witnesses; say how long."""
        begun = time.monotonic()
        wanted: set[tuple[Any, ...]] = set()
        while time.monotonic() < begun + limit_s:
            found = await asyncio.gather(*map(_state, self._witnesses.values()))
            wanted = set(found)
            if len(wanted) == 1 and found[0][0] == len(self._witnesses):
                return time.monotonic() - begun
            await asyncio.sleep(_LOOK_S)
        raise OperationFailed(f"brokers do not agree within {limit_s:g} s: {sorted(wanted)}")

    async def has_come(
        self, published: dict[BrokerId, range], living: Collection[BrokerId], limit_s: float
    ) -> None:
        """Wait until the last that was published has come everywhere, but not for ever."""
        last = {(source.short, numbers[-1]) for source, numbers in published.items()}
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if all(
                last <= {(source, number) for source, number, _ in self[broker].got[-200:]}
                for broker in living
            ):
                return
            await asyncio.sleep(_LOOK_S)


async def _state(witness: Witness) -> tuple[Any, ...]:
    """Return how many subscriptions a broker knows, and what it has heard."""
    try:
        async with asyncio.timeout(1.0):
            status = await witness.client.status()
    except (OctopisError, TimeoutError):
        return -1, "", 0
    links = status["links"].values()
    return status["subscriptions"], status["heard"], sum(not link["up"] for link in links)


@asynccontextmanager
async def witnesses_at(addresses: dict[BrokerId, str]) -> AsyncIterator[Witnesses]:
    """Connect a witness to every broker, and wait until all brokers know them."""
    async with AsyncExitStack() as stack:
        found: dict[BrokerId, Witness] = {}
        readers: list[asyncio.Task[None]] = []
        for broker, address in addresses.items():
            client = Client(address, client_id=f"witness-{broker.short}", retry_s=_START_S)
            await stack.enter_async_context(client)
            witness = found[broker] = Witness(broker, client)
            stream = client.subscribe("number >= 0", on_gap=lambda _: None)
            notifications = await stack.enter_async_context(stream)
            readers.append(asyncio.create_task(witness.read(notifications)))
        try:
            yield Witnesses(found)
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)


def spread(brokers: Sequence[BrokerId], count: int, start: int) -> list[BrokerId]:
    """Return so many of the brokers, far apart; `start` says with which to begin."""
    step = max(1, len(brokers) // max(1, count))
    return [brokers[(start + number * step) % len(brokers)] for number in range(count)]
