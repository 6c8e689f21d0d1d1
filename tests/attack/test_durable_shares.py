"""Durable subscriptions are matched whether anybody reads them or not: each owner has a share."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from octopis.broker.settings import Durability
from octopis.client.client import Client
from octopis.client.moving import Move
from octopis.core.routing import Algorithm
from octopis.errors import InvalidSubscription
from support.live import LIMITS, client_of, line, overlay, ready, run_live

A, B = line(2).brokers
MINE, ANOTHER = {"secret": "mine"}, {"secret": "another"}
DEAR = " OR ".join(f"t LIKE '%{n:03d}%'" for n in range(100))


def on_disk(folder: Path, regions: int = 1, **limits: Any) -> Any:
    configuration = overlay(line(regions), Algorithm.TNR, durability=Durability(str(folder)))
    return replace(configuration, limits=replace(LIMITS, **limits))


async def make(client: Client, name: str, condition: str) -> None:
    async with client.subscribe(condition, durable=name):
        pass


def test_an_owner_has_a_share_of_terms_over_all_its_connections_and_after_a_restart(tmp_path: Path):
    configuration = on_disk(tmp_path, terms_per_client=3)

    async def work() -> None:
        async with ready(configuration) as live:
            async with client_of(live[A], **MINE) as client:
                await make(client, "first", "x = 1 AND y = 1")
            async with client_of(live[A], **MINE) as client:
                await make(client, "second", "x = 1")
                with pytest.raises(InvalidSubscription, match="at most 3 terms"):
                    await make(client, "third", "x = 1")
                await make(client, "first", "x = 1 AND y = 1")  # it is there: nothing is added
            async with client_of(live[A], **ANOTHER) as other:
                await make(other, "theirs", "x = 1 AND y = 1 AND z = 1")
        async with ready(configuration) as live, client_of(live[A], **MINE) as client:
            with pytest.raises(InvalidSubscription, match="at most 3 terms"):
                await make(client, "third", "x = 1")
            await client.drop_durable("second")
            await make(client, "third", "x = 1")

    run_live(work())


def test_an_owner_has_so_many_subscriptions(tmp_path: Path):
    async def work() -> None:
        configuration = on_disk(tmp_path, subscriptions_per_client=2)
        async with ready(configuration) as live, client_of(live[A]) as client:
            await make(client, "first", "x = 1")
            await make(client, "second", "x = 1")
            with pytest.raises(InvalidSubscription, match=r"an owner .* at most 2 subscriptions"):
                await make(client, "third", "x = 1")

    run_live(work())


def test_patterns_of_an_owner_have_a_share_of_time(tmp_path: Path):
    async def work() -> None:
        configuration = on_disk(tmp_path, matching_ms_per_client=20.0)
        async with ready(configuration) as live, client_of(live[A]) as client:
            for number in range(6):  # of 3.3 ms each
                await make(client, f"dear {number}", f"x = {number} OR {DEAR}")
            with pytest.raises(InvalidSubscription, match="20 ms of LIKE patterns"):
                await make(client, "dearest", DEAR)
            await make(client, "plain", "x = 1 AND y = 1")

    run_live(work())


def test_what_moves_here_counts_and_stays_where_it_was_if_it_is_too_much(tmp_path: Path):
    async def work() -> None:
        configuration = on_disk(tmp_path, 2, terms_per_client=3)
        async with ready(configuration) as live, AsyncExitStack() as stack:
            clients = {
                each: await stack.enter_async_context(client_of(live[each], **MINE))
                for each in (A, B)
            }
            await make(clients[A], "wide", "x = 1 AND y = 1")
            await make(clients[B], "there", "x = 1 AND y = 1")
            await clients[A].settled()
            by_name = {each.short: client for each, client in clients.items()}
            with pytest.raises(InvalidSubscription, match="at most 3 terms"):
                async for _ in Move(by_name, "wide", B.short).run():
                    pass
            assert [each.name for each in await clients[A].durables()] == ["wide"]
            await clients[B].drop_durable("there")
            await clients[B].settled()
            async for _ in Move(by_name, "wide", B.short).run():
                pass
            await make(clients[A], "in its place", "x = 1 AND y = 1 AND z = 1")
            with pytest.raises(InvalidSubscription, match="at most 3 terms"):
                await make(clients[B], "more", "x = 1 AND y = 1")

    run_live(work())
