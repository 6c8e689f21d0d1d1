"""What members of a gateway ask brokers together, and their clients at durable homes."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from octopis.broker.settings import Durability
from octopis.client.client import Client
from octopis.core.routing import Algorithm
from octopis.gateway.members import homes
from octopis.gateway.members.homes import Homes
from octopis.gateway.members.lately import GOOD_S, Lately
from octopis.gateway.members.member import Member
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem
from octopis.gateway.settings import GatewayLimits
from octopis.overlay import asking
from support.live import Brokers, line, overlay, ready, run_live


class Counted(Client):
    """A client as any other; how many are open is counted."""

    opened = now = most = 0

    async def open(self) -> None:
        Counted.opened += 1
        Counted.now += 1
        Counted.most = max(Counted.most, Counted.now)
        await super().open()

    async def close(self) -> None:
        await super().close()
        Counted.now -= 1


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> type[Counted]:
    Counted.opened = Counted.now = Counted.most = 0
    monkeypatch.setattr(asking, "Client", Counted)
    monkeypatch.setattr(homes, "Client", Counted)
    return Counted


def view_of(live: Brokers) -> OverlayView:
    return OverlayView("here", {name.short: str(each.address) for name, each in live.items()})


def with_members(work: Any, count: int, at_once: int = 16, **options: Any) -> None:
    """Run work(live, members) with some members of one gateway."""

    async def whole() -> None:
        async with ready(overlay(line(3, 2), Algorithm.TNR, **options)) as live:
            room = asyncio.Semaphore(at_once)
            members = [Member(view_of(live), GatewayLimits(), room) for _ in range(count)]
            try:
                await work(live, members)
            finally:
                for each in members:
                    await each.close()

    run_live(whole())


def test_all_who_ask_at_a_time_for_the_status_share_one_answer(counted: type[Counted]):
    async def work(live: Brokers, members: list[Member]) -> None:
        found = await asyncio.gather(*(members[0].status() for _ in range(100)))
        assert all(each.keys() == {name.short for name in live} for each in found)
        assert not any("error" in status for each in found for status in each.values())
        await members[0].status()
        assert counted.opened == len(live)
        one = await asyncio.gather(*(members[0].status("b,1") for _ in range(100)))
        assert {status["broker"] for each in one for status in each.values()} == {"b,1"}
        assert counted.opened == len(live) + 1

    with_members(work, 1)


def test_all_members_together_have_few_connections_to_ask(counted: type[Counted]):
    async def work(live: Brokers, members: list[Member]) -> None:
        await asyncio.gather(*(each.status() for each in members))
        assert counted.opened == len(members) * len(live)
        assert counted.most <= 4

    with_members(work, 8, at_once=4)


def test_names_that_nobody_knows_are_looked_for_together(counted: type[Counted], tmp_path: Path):
    async def look(member: Member, name: str) -> None:
        async with member.at_home(name):
            pass

    async def work(live: Brokers, members: list[Member]) -> None:
        names = [f"nothing-{n}" for n in range(100)]
        found = await asyncio.gather(
            *(look(members[0], each) for each in names), return_exceptions=True
        )
        assert {each.status for each in found if isinstance(each, Problem)} == {404}
        assert counted.opened == len(live)

    with_members(work, 1, durability=Durability(str(tmp_path)))


def test_answer_is_shared_for_a_moment_and_then_asked_for_anew():
    asked = []

    async def answer() -> int:
        asked.append(len(asked))
        await asyncio.sleep(0.01)
        if len(asked) == 1:
            raise ValueError("the first time it fails")
        return asked[-1]

    async def run() -> None:
        lately = Lately(answer)
        with pytest.raises(ValueError, match="the first time"):
            await lately.get()
        assert await asyncio.gather(*(lately.get() for _ in range(5))) == [1] * 5
        assert await lately.get() == 1
        assert await lately.get(may_be_old=False) == 2
        pending = asyncio.create_task(lately.get(may_be_old=False))
        await asyncio.sleep(0)
        lately.forget()
        assert (await lately.get(), await pending) == (4, 4)
        await asyncio.sleep(GOOD_S + 0.1)
        assert await lately.get() == 5

    asyncio.run(run())


def test_client_at_a_home_is_never_closed_while_somebody_uses_it(counted: type[Counted]):
    async def whole() -> None:
        async with ready(overlay(line(5, 2), Algorithm.TNR)) as live:
            found, addresses = Homes(None), [str(each.address) for each in live.values()]

            async def use(seed: int) -> None:
                random_ = random.Random(seed)  # noqa: S311 - chooses a test case
                for _ in range(20):
                    async with found.at(random_.choice(addresses)) as client:
                        await asyncio.sleep(random_.choice([0, 0, 0.002]))
                        assert client.is_connected

            await asyncio.gather(*map(use, range(16)))
            assert len(found) == 8
            await found.close()
            assert counted.now == 0
            assert counted.opened > 10

    run_live(whole())
