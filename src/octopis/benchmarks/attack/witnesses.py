"""Unrelated publishers and subscribers: they number everything, and note when it came.

Each host has a publisher and a subscriber. Publishers keep to a timetable: where a broker keeps one
waiting, what has become due meanwhile is published together, and its delays count from when it was
due. All are of one process, so that one clock says when something was due and when it came.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import quantiles

import octopis
from octopis.benchmarks.attack.measures import Phase
from octopis.client.client import Client
from octopis.client.streams import Gap, Notifications
from octopis.errors import OctopisError

_AT_ONCE = 500
_AGAIN_S = 0.05
_LOOK_S = 0.05
Number = tuple[int, int]
"""Which publisher, and its how manieth."""


@dataclass(slots=True)
class Publication:
    """When it was due, and when the host broker accepted it, if it has."""

    due: float
    accepted: float | None = None
    failed: bool = False


@dataclass(slots=True)
class Reader:
    """What one subscriber has got, and when."""

    wants: tuple[int, ...]
    arrived: dict[Number, float] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    twice: list[float] = field(default_factory=list)


class Witnesses:
    """The unrelated clients of an overlay. `rate` is of all publishers together."""

    def __init__(self, urls: Sequence[str], rate: float, credentials: Path | None = None) -> None:
        count = len(urls)
        self._credentials = credentials
        self._urls = urls
        self._step_s = count / rate
        self._published: dict[Number, Publication] = {}
        self._publishers: list[asyncio.Task[None]] = []
        self._readers = [
            Reader(tuple(sorted({(number - 1) % count, (number - 2) % count})))
            for number in range(count)
        ]
        self.notes: list[str] = []
        """What brokers told them, each once."""

    @property
    def subscriptions(self) -> dict[str, str]:
        """Their filters by the subscriptions' ids, for somebody who would like to have them."""
        return {
            f"gauges/{number}": " OR ".join(f"gauge = {each}" for each in reader.wants)
            for number, reader in enumerate(self._readers)
        }

    @asynccontextmanager
    async def subscribed(self) -> AsyncIterator[list[Client]]:
        """Let the subscribers subscribe and read meanwhile."""
        async with AsyncExitStack() as stack:
            clients, tasks = [], []
            wanted = self.subscriptions.items()
            for number, (url, (name, filter_)) in enumerate(zip(self._urls, wanted, strict=True)):
                client = await stack.enter_async_context(
                    octopis.connect(
                        url,
                        client_id=f"witness-{number}",
                        connect_s=30.0,
                        credentials=self._credentials,
                    )
                )
                stream = client.subscribe(filter_, names=[name], on_gap=self._gap)
                await stream.open()
                tasks.append(asyncio.create_task(self._read(self._readers[number], stream)))
                clients.append(client)
            try:
                yield clients
            finally:
                await _cancel(tasks)

    def start(self, clients: Sequence[Client]) -> None:
        """Let the publishers begin."""
        self._publishers = [
            asyncio.create_task(self._publish(number, client))
            for number, client in enumerate(clients)
        ]

    async def finish(self, grace_s: float) -> None:
        """Let the publishers stop; wait until all has come that was accepted, but not for ever."""
        await _cancel(self._publishers)
        until = asyncio.get_running_loop().time() + grace_s
        while asyncio.get_running_loop().time() < until and any(self._missing()):
            await asyncio.sleep(_LOOK_S)

    def measured(self, start: float, end: float, memory_mb: float | None) -> Phase:
        """Return what became of what was due between two times."""
        due = {n: each for n, each in self._published.items() if start <= each.due < end}
        delays = [
            arrived - due[number].due
            for reader in self._readers
            for number, arrived in reader.arrived.items()
            if number in due
        ]
        accepted = [each.accepted for each in self._published.values() if each.accepted is not None]
        percentiles = quantiles(delays, n=100, method="inclusive") if len(delays) > 1 else None
        return Phase(
            rate=sum(start <= each < end for each in accepted) / (end - start),
            p50_ms=None if percentiles is None else percentiles[49] * 1000,
            p99_ms=None if percentiles is None else percentiles[98] * 1000,
            lost=sum(number in due for number in self._missing()),
            twice=sum(start <= each < end for reader in self._readers for each in reader.twice),
            failed=sum(each.failed for each in due.values()),
            pause_ms=max(_pause(reader.times, start, end) for reader in self._readers) * 1000,
            memory_mb=memory_mb,
        )

    def _missing(self) -> list[Number]:
        """Return what was accepted and has not come, once for each who lacks it."""
        return [
            number
            for reader in self._readers
            for number, each in self._published.items()
            if each.accepted is not None
            and number[0] in reader.wants
            and number not in reader.arrived
        ]

    async def _publish(self, publisher: int, client: Client) -> None:
        loop = asyncio.get_running_loop()
        start = loop.time() + self._step_s * publisher / len(self._urls)
        number = 0
        while True:
            await asyncio.sleep(start + number * self._step_s - loop.time())
            due = int((loop.time() - start) / self._step_s) + 1
            numbers = range(number, min(max(due, number + 1), number + _AT_ONCE))
            number = numbers.stop
            batch = [Publication(start + each * self._step_s) for each in numbers]
            for each, publication in zip(numbers, batch, strict=True):
                self._published[publisher, each] = publication
            try:
                await client.publish_many(
                    [{"gauge": publisher, "reading": each} for each in numbers]
                )
            except OctopisError as failure:
                for publication in batch:
                    publication.failed = True
                self._note(f"a publisher: {failure}")
                await asyncio.sleep(_AGAIN_S)
            else:
                for publication in batch:
                    publication.accepted = loop.time()

    async def _read(self, reader: Reader, stream: Notifications) -> None:
        loop = asyncio.get_running_loop()
        try:
            async for batch in stream.batches():
                now = loop.time()
                reader.times.append(now)
                for each in batch:
                    found = each.attributes
                    number = (int(found["gauge"]), int(found["reading"]))
                    if number in reader.arrived:
                        reader.twice.append(now)
                    reader.arrived.setdefault(number, now)
        except OctopisError as failure:
            self._note(f"a subscriber: {failure}")

    def _gap(self, gap: Gap) -> None:
        self._note(f"a subscriber: a gap, {gap.reason}")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _pause(times: Sequence[float], start: float, end: float) -> float:
    """Return the longest time between two of `times`, or from the start, or until the end."""
    inside = [start, *(each for each in times if start <= each < end), end]
    return max(after - before for before, after in pairwise(inside))


async def _cancel(tasks: Sequence["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
