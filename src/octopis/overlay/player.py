"""Plays a scenario through a running overlay: real clients do what its tables say, at its times.

The overlay should have no other traffic meanwhile: what its brokers count is taken as the play's.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from octopis.client.client import Client
from octopis.client.credentials import Given
from octopis.client.publishing import Publication
from octopis.client.streams import Gap, Notifications
from octopis.errors import InvalidConfiguration, OctopisError, OperationFailed
from octopis.overlay.status import Statuses, ask_all, totals
from octopis.scenario.folder import Scenario
from octopis.scenario.tables import Publisher, Subscriber

PROGRESS_S = 30.0
"""An overlay in which nothing changes for so long will not get any further."""

_LOOK_S = 0.1
_WATCH_S = 0.2
"""How often somebody who watches is told while notifications are published."""

_AHEAD = 10_000
_BATCH = 1_000

Progress = Callable[[str, int, int], None]
"""Told the phase, and how many of how many are done."""

Watch = Callable[[Statuses], None]
"""Told how every broker is, a few times a second."""


@dataclass
class Played:
    """What came of a play. A delivery is known by publisher, sequence and subscription."""

    notifications: int = 0
    deliveries: list[tuple[str, int, str]] = field(default_factory=list)
    delivered_ns: list[int] = field(default_factory=list)
    delays_ns: list[int] = field(default_factory=list)
    """From the intended time of a notification until a subscriber's program had it."""

    begin_ns: int = 0
    """When the scenario's time was 0, in nanoseconds since 1970."""

    gaps: list[str] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    """What all brokers together have counted: IMs by kind, and so on."""


class _Author:
    """A publisher: what is due waits for it, in order."""

    def __init__(self, publisher: Publisher, client: Client) -> None:
        self.name = publisher.name
        self.sequences: list[int] = []
        """The scenario's numbers of its notifications, in the order of publishing."""

        self._client = client
        self._due: asyncio.Queue[Publication | None] = asyncio.Queue(_AHEAD)

    async def publish(self, sequence: int, publication: Publication) -> None:
        self.sequences.append(sequence)
        await self._due.put(publication)

    async def finish(self) -> None:
        await self._due.put(None)

    async def run(self) -> None:
        more = True
        while more:
            batch = [await self._due.get()]
            while len(batch) < _BATCH and not self._due.empty():
                batch.append(self._due.get_nowait())
            more = None not in batch
            await self._client.publish_many([each for each in batch if each is not None])


class Play:
    """One play of a scenario, through brokers at `addresses`, `speed` times as fast."""

    def __init__(  # noqa: PLR0913 - named options of one play
        self,
        scenario: Scenario,
        addresses: Mapping[str, str],
        *,
        speed: float = 1.0,
        progress: Progress = lambda *_: None,
        watch: Watch | None = None,
        credentials: Given = None,
    ) -> None:
        """Raises InvalidConfiguration where the scenario is for another overlay."""
        wanted = {broker.short for broker in scenario.topology.scot.brokers}
        if wanted != set(addresses):
            raise InvalidConfiguration(
                f"{scenario.folder} is for {scenario.topology.name} with {len(wanted)} brokers, "
                f"not for this overlay with {len(addresses)}: start one of the same topology"
            )
        self._scenario = scenario
        self._addresses = addresses
        self._credentials = credentials
        self._speed = speed
        self._progress = progress
        self._watch = watch
        self._authors: dict[str, _Author] = {}
        self._played = Played()

    async def run(self) -> Played:
        """Play the scenario, wait until the overlay is at rest, and return what came of it.

        Raises OperationFailed where a broker is lost on the way, or others publish, too.
        """
        try:
            return await self._run()
        except* OctopisError as failures:
            failure: BaseException = failures
            while isinstance(failure, BaseExceptionGroup):  # the first says it; others follow
                failure = failure.exceptions[0]
        raise failure

    async def _run(self) -> Played:
        before = await self._ask()
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as readers:
            streams = await self._subscribe(stack)
            for publisher in self._scenario.publishers:
                client = await self._client(stack, publisher.name, publisher.broker.short)
                self._authors[publisher.name] = _Author(publisher, client)
            await self._settled(before)
            reading = [readers.create_task(self._read(stream)) for stream in streams]
            async with self._watched():
                await self._publish()
            after = await self._at_rest(before)
            for task in reading:
                task.cancel()
        earlier = totals(before)["counters"]
        for name, count in totals(after)["counters"].items():
            self._played.counters[name] = count - earlier.get(name, 0)
        return self._played

    async def _client(self, stack: AsyncExitStack, name: str, broker: str) -> Client:
        address = f"octopis://{self._addresses[broker]}"
        return await stack.enter_async_context(
            Client(address, client_id=name, reconnect_s=0, credentials=self._credentials)
        )

    async def _subscribe(self, stack: AsyncExitStack) -> list[Notifications]:
        held: dict[tuple[str, str], list[Subscriber]] = {}
        for each in self._scenario.subscribers:
            held.setdefault((each.client, each.broker.short), []).append(each)
        streams = []
        for (name, broker), subscribers in held.items():
            client = await self._client(stack, f"{name}@{broker}", broker)
            stream = client.subscribe(
                *(each.filter for each in subscribers),
                names=[each.subscription for each in subscribers],
                on_gap=self._note,
            )
            streams.append(await stack.enter_async_context(stream))
            self._progress("clients", len(streams), len(held))
        return streams

    async def _publish(self) -> None:
        begin_ns = self._played.begin_ns = time.time_ns() + 10_000_000
        names = [publisher.name for publisher in self._scenario.publishers]
        total = self._scenario.notification_count
        async with asyncio.TaskGroup() as group:
            for author in self._authors.values():
                group.create_task(author.run())
            for batch in self._scenario.publications():
                for number, sequence, intended_ns, attributes in zip(*batch, strict=True):
                    due_ns = begin_ns + int(intended_ns / self._speed)
                    while (early_ns := due_ns - time.time_ns()) > 0:
                        await asyncio.sleep(early_ns / 1e9)  # it may wake us a little early
                    author = self._authors[names[number]]
                    await author.publish(sequence, (attributes, b"", due_ns))
                    self._played.notifications += 1
                self._progress("notifications", self._played.notifications, total)
            for author in self._authors.values():
                await author.finish()

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Ask every broker again and again meanwhile, where somebody watches."""

        async def look() -> None:
            while True:
                await self._ask()
                await asyncio.sleep(_WATCH_S)

        async with asyncio.TaskGroup() as group:
            looking = group.create_task(look()) if self._watch is not None else None
            yield
            if looking is not None:
                looking.cancel()

    async def _read(self, stream: Notifications) -> None:
        played = self._played
        async for batch in stream.batches():
            now_ns = time.time_ns()
            for each in batch:
                author = self._authors.get(each.publisher)
                if author is None:
                    raise OperationFailed(
                        f"{each.publisher} publishes, too: a play needs the overlay for itself"
                    )
                sequence = author.sequences[each.sequence - 1]
                for subscription in each.subscriptions:
                    played.deliveries.append((each.publisher, sequence, subscription))
                    played.delivered_ns.append(now_ns)
                    played.delays_ns.append(now_ns - each.intended_ns)

    async def _settled(self, before: Statuses) -> None:
        """Wait until every broker knows every subscription."""
        count = len(self._scenario.subscribers)
        wanted = {name: status["subscriptions"] + count for name, status in before.items()}

        def holds(now: Statuses) -> bool:
            known = {name: status["subscriptions"] for name, status in now.items()}
            least = min(known[name] - wanted[name] + count for name in known)
            self._progress("subscriptions", least, count)
            return known == wanted

        await self._until(holds, "not every broker knows every subscription")

    async def _at_rest(self, before: Statuses) -> Statuses:
        """Wait until no queue holds anything and every delivery has been read; return how it is."""
        earlier = totals(before)["counters"]["deliveries"]

        def holds(now: Statuses) -> bool:
            total = totals(now)
            lost = total["drops"]["clients"] + total["drops"]["clients_left"]
            delivered = total["counters"]["deliveries"] - earlier
            waits = sum(
                client["queue_length"] + client["publications_waiting"]
                for status in now.values()
                for client in status["clients"].values()
            )
            read = len(self._played.deliveries)
            self._progress("deliveries", read, delivered)
            return not total["queued"] and not waits and read + lost >= delivered

        # Twice: between two queues a message is nowhere to be seen.
        await self._until(holds, "notifications are still under way")
        return await self._until(holds, "notifications are still under way")

    async def _until(self, holds: Callable[[Statuses], bool], otherwise: str) -> Statuses:
        last: object = None
        deadline = time.monotonic() + PROGRESS_S
        while True:
            await asyncio.sleep(_LOOK_S)
            now = await self._ask()
            if holds(now):
                return now
            seen = (totals(now), len(self._played.deliveries))
            if seen != last:
                last, deadline = seen, time.monotonic() + PROGRESS_S
            elif time.monotonic() > deadline:
                raise OperationFailed(f"{otherwise}, and nothing has changed for {PROGRESS_S:g} s")

    async def _ask(self) -> Statuses:
        found = await ask_all(self._addresses, credentials=self._credentials)
        for broker, status in found.items():
            if "error" in status:
                raise OperationFailed(f"{broker}: {status['error']}")
        if self._watch is not None:
            self._watch(found)
        return found

    def _note(self, gap: Gap) -> None:
        self._played.gaps.append(gap.reason)
