"""Requests are counted by address."""

import asyncio

from octopis.gateway.context import Rates


def test_network_of_64_bits_has_one_rate():
    async def work() -> None:
        rates = Rates(3)
        found = [rates.take({"client": (f"2001:db8::{n:x}", 1)}) for n in range(5)]
        assert found == [True, True, True, False, False]
        assert rates.take({"client": ("2001:db8:0:1::1", 1)})
        assert rates.take({"client": ("192.0.2.1", 1)})

    asyncio.run(work())
