"""Who waits with `settled` before publishing loses nothing, and is told whom it waits for."""

import asyncio

import pytest

from octopis.broker.settings import Shape
from octopis.client.sync_client import connect_sync
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration, NotSettled
from support.live import client_of, fall_silent, line, overlay, ready, run_live, until

ALGORITHMS = pytest.mark.parametrize("algorithm", Algorithm, ids=lambda each: each.value)


@ALGORITHMS
def test_what_is_published_after_settled_reaches_whoever_subscribed_before(algorithm: Algorithm):
    async def work() -> None:
        scot = from_catalogue("figure-3").scot
        async with ready(overlay(scot, algorithm)) as live:
            here, there = live[scot.broker("a,0")], live[scot.broker("f,2")]
            async with client_of(here) as publisher, client_of(there) as subscriber:
                for number in range(10):
                    async with subscriber.subscribe(f"x = {number}") as notifications:
                        await publisher.settled()
                        assert all(len(broker.core.table) == 1 for broker in live.values())
                        await publisher.publish({"x": number})
                        assert (await anext(notifications)).attributes == {"x": number}
                await publisher.settled()
                assert not any(len(broker.core.table) for broker in live.values())

    run_live(work())


def test_a_subscription_that_waits_in_a_slow_queue_is_waited_for():
    async def work() -> None:
        scot = line(3)
        slow = {(scot.broker("b,0"), scot.broker("a,0")): Shape(bandwidth_bytes_per_s=20_000.0)}
        async with ready(overlay(scot, shapes=slow)) as live:
            a, b, c = live.values()
            async with (
                client_of(a) as first,
                client_of(b) as busy,
                client_of(c) as last,
                first.subscribe("x >= 0"),
            ):
                await last.settled()
                await busy.publish_many([{"x": each, "text": "x" * 100} for each in range(100)])
                async with last.subscribe("y = 1"):
                    assert len(b.links[a.id].queue) > 50
                    await last.settled()
                    assert len(a.core.table) == 2

    run_live(work())


def test_a_broker_that_does_not_answer_is_named():
    async def work() -> None:
        async with ready(overlay(line(3))) as live:
            a, _, c = live.values()
            fall_silent(c)
            async with client_of(a) as client:
                with pytest.raises(NotSettled, match="no word in time from c,0") as caught:
                    await client.settled(timeout_s=0.2)
                assert caught.value.brokers == ("c,0",)

    run_live(work())


def test_a_broker_that_stops_meanwhile_is_no_longer_waited_for():
    async def work() -> None:
        async with ready(overlay(line(3))) as live:
            a, _, c = live.values()
            fall_silent(c)
            async with client_of(a) as client:
                settled = asyncio.create_task(client.settled(timeout_s=20))
                await asyncio.sleep(0.1)
                assert not settled.done()
                await c.stop()
                await settled

    run_live(work())


def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            a, b = live.values()
            fall_silent(b)
            async with client_of(a) as client:
                waiting = asyncio.create_task(client.settled(timeout_s=600))
                await until(lambda: a.inquiries._settling.next_ns is not None)
            await asyncio.gather(waiting, return_exceptions=True)
            await until(lambda: a.inquiries._settling.next_ns is None)
            assert not a.inquiries._asked

    run_live(work())


def test_timeouts_that_make_no_sense_are_refused():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            (only,) = live.values()
            async with client_of(only) as client:
                await client.settled(timeout_s=1)
                for wrong in (-1, 10**6):
                    with pytest.raises(InvalidConfiguration, match="between 0 and 3600"):
                        await client.settled(timeout_s=wrong)

    run_live(work())


def test_the_blocking_client_has_it_too():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            a, _ = live.values()
            await asyncio.to_thread(use, f"octopis://{a.address}")

    def use(address: str) -> None:
        with connect_sync(address) as client, client.subscribe("x = 1") as notifications:
            client.settled(timeout_s=5)
            client.publish({"x": 1})
            assert notifications.next(timeout=5) is not None

    run_live(work())
