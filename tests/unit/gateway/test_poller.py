"""The poller ends aloud: a page would show a picture that stands still, and call it live."""

import asyncio

import pytest

from octopis.gateway.live.asking import Watched
from octopis.gateway.live.poller import Poller
from octopis.gateway.live.stream import _pulses
from octopis.gateway.overlay_view import view_of_address
from octopis.gateway.problems import Problem
from octopis.gateway.readers.reader import Reader
from octopis.gateway.settings import GatewayLimits


class Strange(Watched):
    """A broker that answers what nobody has thought of."""

    async def ask(self) -> None:
        self.status = {"links": {"b,0": {}}}


def test_answer_that_nobody_understands_ends_streams_of_pulses(caplog: pytest.LogCaptureFixture):
    async def run() -> None:
        poller = Poller(view_of_address("octopis://127.0.0.1:1"), 100)
        poller._watched = [Strange("a,0", "127.0.0.1:1")]
        poller.start()
        try:
            async with asyncio.timeout(10):
                with pytest.raises(Problem, match="log has more"):
                    await anext(_pulses(poller, Reader(GatewayLimits(), "drop_oldest")))
        finally:
            await poller.close()

    asyncio.run(run())
    assert "KeyError" in caplog.text
