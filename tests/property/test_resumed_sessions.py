"""Wherever connections are cut: each notification arrives once and in order, without a gap."""

import asyncio

from hypothesis import example, given, settings
from hypothesis import strategies as st

import octopis
from octopis.client.client import Client
from octopis.client.streams import Notifications
from support.cutting import Cut, cutting_proxy
from support.live import line, overlay, ready, run_live

(HERE,) = line(1).brokers
TOTAL = 400
PAYLOAD = bytes(300)

bytes_until = st.integers(0, 400) | st.integers(400, 60_000)
"""Answers and greetings are short, deliveries and publications long."""

cuts = st.lists(st.builds(Cut, bytes_until, st.booleans(), st.booleans()), max_size=5)


async def publish(client: Client) -> None:
    """Publish in requests of 1, 2, 3... notifications, each by itself and then many at a time."""
    number, size = 0, 1
    while number < TOTAL // 2:
        await client.publish_many(({"n": n}, PAYLOAD) for n in range(number, number + size))
        number, size = number + size, size + 1
    await asyncio.gather(
        *(client.publish({"n": n}, PAYLOAD) for n in range(number, number + 50)),
        client.publish_many(({"n": n}, PAYLOAD) for n in range(number + 50, TOTAL)),
    )


async def read(notifications: Notifications) -> list[int]:
    return [(await anext(notifications)).attributes["n"] for _ in range(TOTAL)]


@settings(max_examples=30, deadline=None)
@given(cuts, cuts, st.sampled_from([7, 100, 10_000]))
@example([Cut(0), Cut(5), Cut(60), Cut(100), Cut(120, up=True)], [Cut(0, up=True)], 100)
@example([], [Cut(10), Cut(200, up=True), Cut(130), Cut(40_000, up=True)], 100)
@example([Cut(20_000, unaware=True)] * 3, [Cut(20_000, up=True, unaware=True)] * 3, 10_000)
def test_nothing_is_lost_twice_or_out_of_order_wherever_connections_are_cut(
    of_reader: list[Cut], of_writer: list[Cut], window: int
):
    async def work() -> None:
        async with (
            ready(overlay(line(1))) as live,
            cutting_proxy(live[HERE]) as to_reader,
            cutting_proxy(live[HERE]) as to_writer,
            octopis.connect(to_reader.url, window=window) as reader,
            octopis.connect(to_writer.url) as writer,
            reader.subscribe("n >= 0") as notifications,
        ):
            to_reader.arm(*of_reader)
            to_writer.arm(*of_writer)
            reading = asyncio.create_task(read(notifications))
            await publish(writer)
            assert await reading == list(range(TOTAL))
            assert notifications.oldest is None
            assert notifications.gaps == 0
            assert live[HERE].intake.published == TOTAL

    run_live(work())
