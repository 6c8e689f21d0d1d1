import asyncio

import pytest

from octopis.client.client import Client
from octopis.errors import InvalidNotification
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until

(HERE,) = line(1).brokers


def with_client(work, **limits) -> None:
    """Run work(client, live broker) with one broker."""

    async def whole() -> None:
        async with ready(overlay(line(1), **limits)) as live, client_of(live[HERE]) as client:
            await work(client, live[HERE])

    run_live(whole())


def test_sequence_rises_by_one_whatever_is_refused_between():
    async def work(client: Client, broker) -> None:
        async with client.subscribe("x > 0") as notifications:
            await client.publish({"x": 1})
            with pytest.raises(InvalidNotification):
                await client.publish({"x": None})  # type: ignore[dict-item]
            await client.publish_many([{"x": 2}, ({"x": 3}, b"three")])
            found = [await anext(notifications) for _ in range(3)]
            assert [each.sequence for each in found] == [1, 2, 3]
            assert found[2].payload == b"three"
            assert broker.intake.published == 3

    with_client(work)


def test_those_before_a_bad_one_are_published_and_then_it_raises():
    async def work(client: Client, broker) -> None:
        many = [({"x": 1}, bytes(40_000)), ({"x": 2}, bytes(40_000)), {"x": float("nan")}]
        with pytest.raises(InvalidNotification, match="compares with nothing"):
            await client.publish_many(many)
        assert broker.intake.published == 2

    with_client(work)


def test_publisher_keeps_to_the_window():
    async def work(client: Client, broker) -> None:
        broker.intake.close()  # nothing is accepted for now
        publishing = asyncio.create_task(
            client.publish_many(({"x": number}, bytes(1_000)) for number in range(4_000))
        )
        session = broker.clients[client.id]
        await until(lambda: session.publications_bytes > 500_000)
        await asyncio.sleep(0.05)
        assert session.publications_bytes <= broker.overlay.limits.publish_window
        assert not publishing.done()
        broker.intake.open()
        assert await publishing == 4_000

    with_client(work)


def test_notification_larger_than_the_window_passes_alone():
    async def work(client: Client, _) -> None:
        async with client.subscribe("x > 0") as notifications:
            await client.publish({"x": 1}, bytes(5_000_000))
            assert len((await anext(notifications)).payload) == 5_000_000

    with_client(work)


def test_notification_that_no_frame_can_carry_is_refused_here():
    async def work(client: Client, _) -> None:
        with pytest.raises(InvalidNotification, match="at most 8,388,608 bytes here"):
            await client.publish({"x": 1}, bytes(9_000_000))

    with_client(work)


def test_many_at_a_time_may_publish():
    async def work(client: Client, broker) -> None:
        async with client.subscribe("x >= 0") as notifications:
            await tables_hold({broker.id: broker}, 1)
            await asyncio.gather(*(client.publish({"x": number}) for number in range(500)))
            found = {(await anext(notifications)).attributes["x"] for _ in range(500)}
            assert found == set(range(500))

    with_client(work)
