"""What is said of a durable subscription that moves here is believed where that costs nothing."""

import sys
from array import array
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import Durability
from octopis.client.client import Client
from octopis.core.delivery.lasting.durables import Durable
from octopis.core.delivery.lasting.records import Policy
from octopis.core.filters import parse_filter as parsed
from octopis.core.routing import Algorithm
from octopis.core.wire.moving import BeginDurable, FinishDurable, JoinDurable, TakeDurable
from octopis.core.wire.published import encode_published
from octopis.errors import ConnectionLost, InvalidSubscription
from support.live import client_of, line, overlay, ready, run_live, until

SCOT = line(2)
A, B = SCOT.brokers
MINE = {"secret": "mine"}
MOST = 2**53


def on_disk(folder: Path) -> Any:
    return overlay(SCOT, Algorithm.TNR, durability=Durability(str(folder)))


async def ask(client: Client, request: type[Any], *facts: object) -> Any:
    return await client.ask_durable(request, "x", *facts, False)


@asynccontextmanager
async def joining(live: dict[Any, LiveBroker]) -> AsyncIterator[Client]:
    """Give a client of B, where a durable subscription of its own is on its way to from A."""
    async with client_of(live[A], **MINE) as at_a, client_of(live[B], **MINE) as at_b:
        there = await at_a.open_durable("x", parsed("x = 1"))
        assert live[B].keeping is not None
        hosts = live[B].keeping.channels.hosts
        await until(lambda: hosts.where("x"))
        about = A.short, Policy.REFUSE, there.epoch, 1, there.created_ns, there.filter
        await ask(at_b, JoinDurable, *about)
        yield at_b


def held(broker: LiveBroker) -> Durable:
    assert broker.keeping is not None
    found = broker.keeping.channels.durables.get("x")
    assert found is not None
    return found


def memory_of(durable: Durable) -> int:
    return sum(sys.getsizeof(each) for each in vars(durable).values() if isinstance(each, array))


def test_positions_that_are_said_to_be_empty_take_no_room_here_or_after_a_restart(tmp_path: Path):
    """Each request of 68 bytes made a broker hold 120 kB, and write down to hold them again."""

    async def work() -> None:
        configuration = on_disk(tmp_path)
        async with ready(configuration) as live, joining(live) as client:
            await ask(client, BeginDurable, 0, MOST, 0, Policy.REFUSE, {})
            for upto in range(10_000, 500_000, 10_000):
                await ask(client, TakeDurable, [], [], upto)
            await ask(client, TakeDurable, [], [], MOST - 1)
            assert held(live[B]).next == MOST
            assert memory_of(held(live[B])) < 2_000
        async with ready(configuration) as live:
            assert held(live[B]).next == MOST
            assert memory_of(held(live[B])) < 2_000

    run_live(work())


def test_what_is_between_gaps_is_read_and_all_else_is_told_as_missing(tmp_path: Path):
    bodies = [encode_published({"x": 1, "n": n}, b"", "me", n, 0) for n in range(3)]

    async def work() -> None:
        configuration = on_disk(tmp_path)
        async with ready(configuration) as live:
            async with joining(live) as client:
                await ask(client, BeginDurable, 5, 2_000_000, 0, Policy.REFUSE, {})
                await ask(client, TakeDurable, [7, 1_000_000], bodies[:2], 1_500_000)
                await ask(client, TakeDurable, [1_999_999], bodies[2:], 2_000_000)
                await ask(client, FinishDurable)
                found = await client.read("x", 5, 100)
                assert [each.position for each in found.notifications] == [7, 1_000_000, 1_999_999]
                assert (found.missing, found.end) == (1, 2_000_000)
        async with ready(configuration) as live, client_of(live[B], **MINE) as client:
            found = await client.read("x", 7, 1)
            assert [each.position for each in found.notifications] == [1_000_000]
            assert found.missing == 999_992
            await client.publish({"x": 1})
            await until(lambda: held(live[B]).end == 2_000_001)
            found = await client.read("x", 1_999_999, 100)
            assert [each.position for each in found.notifications] == [2_000_001]

    run_live(work())


@pytest.mark.parametrize(
    ("acked", "last"), [(0, 2**62), (2**62, 2**62), (MOST + 1, MOST + 1), (0, MOST + 1)]
)
def test_there_are_only_so_many_positions(tmp_path: Path, acked: int, last: int):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live, joining(live) as client:
            with pytest.raises(ConnectionLost):
                await ask(client, BeginDurable, acked, last, 0, Policy.REFUSE, {})
            assert held(live[B]).state.cut is None

    run_live(work())


def test_what_ends_before_it_begins_is_refused(tmp_path: Path):
    async def work() -> None:
        async with ready(on_disk(tmp_path)) as live, joining(live) as client:
            with pytest.raises(InvalidSubscription, match="ends at 5, before 9"):
                await ask(client, BeginDurable, 9, 5, 0, Policy.REFUSE, {})
            assert held(live[B]).state.cut is None

    run_live(work())
