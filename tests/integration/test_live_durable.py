"""Durable subscriptions on live brokers: kept while nobody reads, read by position, released."""

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.settings import Durability
from octopis.client.streams import Gap
from octopis.core.routing import Algorithm
from octopis.errors import InvalidConfiguration, InvalidSubscription
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until

A, B, C = line(3).brokers
MINE, OTHER = "mine", "other"


def on_disk(folder: Path, regions: int = 3, **options: Any) -> Any:
    durability = Durability(str(folder), **options)
    return overlay(line(regions), Algorithm.TNR, durability=durability)


async def taken(stream: Any, count: int) -> list[int]:
    found: list[int] = []
    async for each in stream:
        found.append(each.attributes["n"])
        if len(found) == count:
            break
    return found


def test_what_is_published_while_nobody_reads_is_kept_and_goes_on_behind_the_last_acknowledged(
    tmp_path: Path,
):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live:
            async with client_of(live[A]) as writer, client_of(live[C]) as reader:
                async with reader.subscribe("n >= 0", durable="risk") as stream:
                    await tables_hold(live, 1)
                    await writer.publish_many({"n": n} for n in range(100))
                    assert await taken(stream, 50) == list(range(50))
                assert stream.acked == 50
                await writer.publish_many({"n": n} for n in range(100, 200))
                (info,) = await reader.durables()
                assert (info.name, info.acked, info.filter) == ("risk", 50, "n >= 0")
            async with (
                client_of(live[C]) as again,
                again.subscribe("n >= 0", durable="risk") as stream,
            ):
                assert await taken(stream, 150) == list(range(50, 200))

    run_live(work())


def test_all_brokers_go_down_and_nothing_accepted_is_lost_or_comes_twice(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live:
            async with client_of(live[A]) as writer, client_of(live[C]) as reader:
                async with reader.subscribe("n >= 0", durable="risk"):
                    await tables_hold(live, 1)
                await writer.publish_many({"n": n} for n in range(300))
        async with ready(on_disk(tmp_path)) as live:
            assert all(len(broker.core.table) == 1 for broker in live.values())
            async with client_of(live[A]) as writer, client_of(live[C]) as reader:
                await writer.publish_many({"n": n} for n in range(300, 400))
                async with reader.subscribe(durable="risk") as stream:
                    assert await taken(stream, 400) == list(range(400))

    run_live(work())


def test_a_range_that_is_read_again_is_the_same_until_it_is_released(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path, regions=1)) as live:
            async with client_of(live[A]) as client:
                async with client.subscribe("n >= 0", durable="risk", acks="manual") as stream:
                    await client.publish_many({"n": n} for n in range(100))
                    first = await client.read("risk", 10, 30, wait_s=5)
                    assert [each.position for each in first.notifications] == list(range(11, 41))
                    assert await client.read("risk", 10, 30) == first
                    await stream.ack(20)
                    rest = await client.read("risk", 10, 30)
                    assert rest.missing == 10
                    assert [each.position for each in rest.notifications] == list(range(21, 51))
                    assert (await client.read("risk", 100)).notifications == []
                    with pytest.raises(InvalidSubscription, match="ends at 100"):
                        await client.read("risk", 101)

    run_live(work())


def test_a_name_belongs_to_its_owner(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live:
            async with (
                client_of(live[A], secret=MINE) as one,
                client_of(live[A], secret=OTHER) as other,
                client_of(live[A]) as nobody,
                client_of(live[B], secret=MINE) as elsewhere,
            ):
                async with one.subscribe("n > 1", durable="risk"):
                    for thief in (other, nobody):
                        with pytest.raises(InvalidSubscription, match="another's"):
                            await thief.read("risk", 0)
                        with pytest.raises(InvalidSubscription, match="another's"):
                            await thief.drop_durable("risk")
                        with pytest.raises(InvalidSubscription, match="another's"):
                            async with thief.subscribe("n > 1", durable="risk"):
                                pass
                    await tables_hold(live, 1)
                    with pytest.raises(InvalidSubscription, match="lives at a,0"):
                        async with elsewhere.subscribe("n > 1", durable="risk"):
                            pass
                    with pytest.raises(InvalidSubscription, match="asks for 'n > 1'"):
                        async with one.subscribe("n > 2", durable="risk"):
                            pass
                await one.drop_durable("risk")
                assert await one.durables() == []
                with pytest.raises(InvalidSubscription, match="no filter to make it"):
                    async with one.subscribe(durable="risk"):
                        pass

    run_live(work())


def test_without_a_disk_it_is_said_what_to_do():
    async def work() -> None:
        async with ready(overlay(line(1), Algorithm.TNR)) as live, client_of(live[A]) as client:
            with pytest.raises(InvalidConfiguration, match="--durable"):
                async with client.subscribe("n > 1", durable="risk"):
                    pass

    run_live(work())


def test_a_quota_that_is_full_drops_the_oldest_and_says_so(tmp_path: Path):
    async def work() -> None:
        gaps: list[Gap] = []
        async with ready(on_disk(tmp_path, 1, quota_bytes=2**20)) as live:
            async with client_of(live[A]) as client:
                options: Any = {"durable": "risk", "policy": "drop_oldest", "on_gap": gaps.append}
                async with client.subscribe("n >= 0", **options) as stream:
                    for start in range(0, 6_000, 500):
                        await client.publish_many(
                            ({"n": n}, bytes(300)) for n in range(start, start + 500)
                        )
                        await asyncio.sleep(0.1)
                    last = 0
                    async for each in stream:
                        assert each.attributes["n"] == each.position - 1 > last - 1
                        last = each.position
                        if last == 6_000:
                            break
                    assert gaps
                    assert sum(gap.dropped or 0 for gap in gaps) > 0

    run_live(work())


def test_a_subscription_that_nobody_uses_ends_after_a_warning_and_one_that_is_read_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def work() -> None:
        async with (
            ready(on_disk(tmp_path, 1, expire_s=2.0)) as live,
            client_of(live[A]) as client,
        ):

            async def ends_ns(name: str) -> int | None:
                found = {each.name: each.ends_ns for each in await client.durables()}
                return found.get(name)

            for name in ("left", "read"):
                async with client.subscribe("n >= 0", durable=name):
                    pass
            reading = asyncio.create_task(_read_on(client, "read"))
            assert await ends_ns("left") == 0
            while not await ends_ns("left"):
                await asyncio.sleep(0.02)
            ends = await ends_ns("left")
            assert ends is not None
            assert 0 < ends - time.time_ns() < 0.5e9
            status = (await client.status())["durables"]
            assert abs(status["left"]["ends_ns"] - ends) < 1e8
            said = "nobody uses the durable subscription 'left'; it ends in 0 s"
            await until(lambda: said in caplog.text)
            while await ends_ns("left") is not None:
                await asyncio.sleep(0.02)
            assert time.time_ns() >= ends
            assert await ends_ns("read") == status["read"]["ends_ns"] == 0
            reading.cancel()

    with caplog.at_level(logging.WARNING):
        run_live(work())


async def _read_on(client: Any, name: str) -> None:
    while True:
        await client.read(name, 0, wait_s=0.1)


def test_a_broker_that_was_down_for_long_gives_time_to_use_a_subscription(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path, 1)) as live, client_of(live[A]) as client:
            async with client.subscribe("n >= 0", durable="left"):
                pass
        await asyncio.sleep(0.5)
        async with (
            ready(on_disk(tmp_path, 1, expire_s=0.4)) as live,
            client_of(live[A]) as client,
        ):
            (left,) = await client.durables()
            assert left.ends_ns > time.time_ns()
            durables = live[A].keeping.channels.durables  # type: ignore[union-attr]
            await until(lambda: durables.get("left") is None)

    run_live(work())
