"""How much an address may do in a second."""

import asyncio

from octopis.gateway.context import Rates

HERE, THERE = {"client": ("10.0.0.1", 1)}, {"client": ("10.0.0.2", 1)}


def test_what_comes_together_is_taken_together_and_made_up_for():
    async def run() -> None:
        loop = asyncio.get_running_loop()
        rates = Rates(20)
        assert not await rates.wait(HERE, 24), "there is something left"
        assert not rates.take(HERE)
        assert rates.take(THERE), "others have their own"
        started = loop.time()
        assert await rates.wait(HERE, 1)
        assert loop.time() - started > 0.2, "4 were made up for, and one was to be there"

    asyncio.run(run())


def test_nobody_gathers_more_than_the_share_of_a_second():
    async def run() -> None:
        rates = Rates(5)
        await asyncio.sleep(0.1)
        assert [rates.take(HERE) for _ in range(6)] == [True] * 5 + [False]

    asyncio.run(run())
