"""Durable subscriptions move between live brokers: exact, in order, whoever dies meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from octopis.client.client import Client
from octopis.client.moving import Move, Progress, Stage
from octopis.errors import InvalidSubscription, OperationFailed
from support.live import client_of, line, run_live
from support.restarting import Restarting, restarting

A, B, C = line(3).brokers
FROM, TO = B.short, C.short
MINE = {"secret": "mine"}


class Publishing:
    """Publishers at several brokers that go on all the time; what each has had accepted."""

    def __init__(self) -> None:
        self.accepted: dict[str, int] = {}
        self._is_over = False

    async def publish(self, client: Client, who: str) -> None:
        self.accepted[who] = 0
        while not self._is_over:
            first = self.accepted[who]
            await client.publish_many({"who": who, "n": first + each} for each in range(20))
            self.accepted[who] += 20
            await asyncio.sleep(0.002)

    def stop(self) -> None:
        self._is_over = True


@asynccontextmanager
async def publishing(overlay: Restarting) -> AsyncIterator[Publishing]:
    """Publish at every broker meanwhile."""
    found = Publishing()
    async with overlay.clients(reconnect_s=20) as clients:
        tasks = [asyncio.create_task(found.publish(each, who)) for who, each in clients.items()]
        try:
            yield found
        finally:
            found.stop()
            await asyncio.gather(*tasks)


async def move(overlay: Restarting, to: str = TO, **options: Any) -> list[Progress]:
    async with overlay.clients() as clients:
        return [each async for each in Move(clients, "risk", to, **options).run()]


async def stop_after(overlay: Restarting, stage: Stage) -> None:
    """Begin a move, and end its program after a step."""
    async with overlay.clients() as clients:
        steps = Move(clients, "risk", TO).run()
        async for each in steps:
            if each.stage is stage:
                break
        await steps.aclose()


async def make(overlay: Restarting, at: Any = B, **options: Any) -> None:
    async with client_of(overlay.live[at], **options) as client:
        async with client.subscribe("n >= 0", durable="risk"):
            await client.settled()


async def everything(overlay: Restarting, at: Any, accepted: dict[str, int]) -> list[Any]:
    """Read all that is there, and check that it is all that was accepted, once and in order."""
    total, found = sum(accepted.values()), []
    async with client_of(overlay.live[at]) as client:
        while len(found) < total:
            batch = await client.read("risk", len(found), wait_s=10)
            assert batch.notifications, f"{len(found)} of {total}"
            found += batch.notifications
        (info,) = await client.durables()
    assert [each.position for each in found] == list(range(1, total + 1))
    for who, count in accepted.items():
        numbers = [each.attributes["n"] for each in found if each.attributes["who"] == who]
        assert numbers == list(range(count))
    assert (info.end, info.joins, info.moved_to) == (total, False, "")
    return found


def test_it_moves_while_everybody_publishes_and_its_reader_goes_on(tmp_path: Path):
    async def work() -> None:
        async with restarting(line(3), tmp_path) as overlay:
            await make(overlay)
            seen: list[Any] = []
            async with (
                client_of(overlay.live[B]) as near,
                client_of(overlay.live[C]) as far,
                near.subscribe("n >= 0") as here,
                far.subscribe("n >= 0") as there,
            ):
                await near.settled()
                await far.settled()
                async with publishing(overlay) as published:

                    async def read() -> None:
                        async with near.subscribe(durable="risk") as stream:
                            async for batch in stream.batches():
                                seen.extend(batch)

                    reading = asyncio.create_task(read())
                    while len(seen) < 200:
                        await asyncio.sleep(0.01)
                    stages = [each.stage for each in await move(overlay)]
                    with pytest.raises(InvalidSubscription, match="lives at c,0 now"):
                        await reading
                    await asyncio.sleep(0.1)
                assert stages[:5] == list(Stage)[:5]
                assert stages[-2:] == [Stage.MERGED, Stage.MOVED]
                total = sum(published.accepted.values())
                for ordinary in (here, there):
                    got = [await anext(ordinary) for _ in range(total)]
                    for who, count in published.accepted.items():
                        numbers = [e.attributes["n"] for e in got if e.attributes["who"] == who]
                        assert numbers == list(range(count))
            async with client_of(overlay.live[C]) as client:
                async with client.subscribe(durable="risk") as stream:
                    first = stream.acked
                    assert 0 < first <= len(seen)
                    rest = [await anext(stream) for _ in range(total - first)]
                (info,) = await client.durables()
            assert (info.end, info.acked, info.moves) == (total, total, 1)
            again = seen[first:]
            assert [each.position for each in again] == [e.position for e in rest[: len(again)]]
            assert [each.attributes for each in again] == [e.attributes for e in rest[: len(again)]]
            for who, count in published.accepted.items():
                every = [*seen[:first], *rest]
                numbers = [e.attributes["n"] for e in every if e.attributes["who"] == who]
                assert numbers == list(range(count))
            async with client_of(overlay.live[B]) as client:
                assert await client.durables() == []
                with pytest.raises(InvalidSubscription, match="lives at c,0"):
                    await client.read("risk", 0)

    run_live(work())


@pytest.mark.parametrize("stage", list(Stage)[:-1], ids=lambda stage: stage.name.lower())
def test_whoever_dies_after_a_step_it_is_run_again_and_nothing_is_lost(
    tmp_path: Path, stage: Stage
):
    async def work() -> None:
        async with restarting(line(3), tmp_path) as overlay:
            await make(overlay)
            async with publishing(overlay) as published:
                await asyncio.sleep(0.05)
                await stop_after(overlay, stage)
                await asyncio.gather(*map(overlay.restart, (A, B, C)))
                await asyncio.sleep(0.05)
                stages = [each.stage for each in await move(overlay)]
                assert stages[-1] is Stage.MOVED
                await asyncio.sleep(0.05)
            await everything(overlay, C, published.accepted)
            await overlay.restart(C)
            await everything(overlay, C, published.accepted)

    run_live(work())


def test_it_moves_on_and_back_and_keeps_its_positions(tmp_path: Path):
    async def work() -> None:
        async with restarting(line(3), tmp_path) as overlay:
            await make(overlay)
            async with publishing(overlay) as published:
                for to in (C.short, A.short, B.short, A.short):
                    await move(overlay, to)
                await overlay.restart(A)
                await asyncio.sleep(0.05)
            await everything(overlay, A, published.accepted)
            with pytest.raises(InvalidSubscription, match="'risk' lives at a,0"):
                await move(overlay, A.short)

    run_live(work())


def test_a_broker_that_is_away_stops_it_and_nothing_is_changed(tmp_path: Path):
    async def work() -> None:
        async with restarting(line(3), tmp_path) as overlay:
            await make(overlay)
            async with overlay.clients(reconnect_s=1) as clients:
                await overlay.stop(A)
                with pytest.raises(OperationFailed, match="a,0 does not answer"):
                    async for _ in Move(clients, "risk", TO, timeout_s=0.5).run():
                        pass
                (info,) = await clients[FROM].durables()
                assert (info.moved_to, info.moves) == ("", 0)
                assert await clients[TO].durables() == []
                await clients[FROM].publish({"who": FROM, "n": 0})
                await overlay.start(A)
            await move(overlay)
            await everything(overlay, C, {FROM: 1})

    run_live(work())


def test_what_was_begun_is_taken_back_until_it_has_left(tmp_path: Path):
    async def work() -> None:
        async with restarting(line(3), tmp_path) as overlay:
            await make(overlay)
            async with publishing(overlay) as published:
                await stop_after(overlay, Stage.ARRIVED)
                with pytest.raises(InvalidSubscription, match="on its way to c,0"):
                    await move(overlay, A.short)
                async with overlay.clients() as clients:
                    with pytest.raises(InvalidSubscription, match="is on its way here"):
                        await clients[TO].read("risk", 0)
                    await Move(clients, "risk", TO).abort()
                    assert await clients[TO].durables() == []
                    with pytest.raises(InvalidSubscription, match="is not on its way"):
                        await Move(clients, "risk", TO).abort()
                await stop_after(overlay, Stage.LEFT)
                async with overlay.clients() as clients:
                    with pytest.raises(InvalidSubscription, match="has left b,0"):
                        await Move(clients, "risk", TO).abort()
                await move(overlay)
            await everything(overlay, C, published.accepted)

    run_live(work())


def test_only_its_owner_moves_it_and_only_to_a_broker(tmp_path: Path):
    async def work() -> None:
        async with restarting(line(3), tmp_path) as overlay:
            await make(overlay, **MINE)
            for options in ({"secret": "other"}, {}):
                async with overlay.clients(**options) as clients:
                    with pytest.raises(InvalidSubscription, match="is another's"):
                        async for _ in Move(clients, "risk", TO).run():
                            pass
                    assert await clients[TO].durables() == []
            async with overlay.clients(**MINE) as clients:
                with pytest.raises(InvalidSubscription, match="no broker z,0"):
                    Move(clients, "risk", "z,0")
                with pytest.raises(InvalidSubscription, match="at any broker"):
                    async for _ in Move(clients, "nothing", TO).run():
                        pass
                assert [each async for each in Move(clients, "risk", TO).run()]
                with pytest.raises(InvalidSubscription, match="no # stands in a name"):
                    async with clients[TO].subscribe("n > 0", durable="risk#1"):
                        pass

    run_live(work())
