"""Live overlays deliver what a linear look at the filters says, once, and SNR keeps the order."""

from collections import Counter, defaultdict
from random import Random

import pytest

from octopis.client.streams import Received
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from support.live import (
    Brokers,
    client_of,
    line,
    overlay,
    quiet,
    ready,
    run_live,
    tables_hold,
    until,
)
from support.scenarios import FILTERS, random_notification

FIGURE_3 = from_catalogue("figure-3").scot


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_delivered_set_equals_the_oracle_on_figure_3(algorithm: Algorithm):
    run_live(delivers_what_the_oracle_says(algorithm, seed=7))


async def delivers_what_the_oracle_says(algorithm: Algorithm, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    async with ready(overlay(FIGURE_3, algorithm)) as live:
        brokers = list(live.values())
        subscribers = [client_of(random.choice(brokers)) for _ in range(8)]
        publishers = [client_of(random.choice(brokers)) for _ in range(4)]
        for client in (*subscribers, *publishers):
            await client.open()
        streams = [
            await client.subscribe(*random.sample(FILTERS, random.randint(1, 4))).__aenter__()
            for client in subscribers
        ]
        await tables_hold(live, sum(len(stream.subscriptions) for stream in streams))

        wanted: Counter[tuple[int, str, bytes]] = Counter()
        for number in range(400):
            notification = random_notification(random, number)
            await random.choice(publishers).publish(notification.attributes, notification.payload)
            for at, stream in enumerate(streams):
                for name, each in stream.subscriptions.items():
                    if each.matches(notification.attributes):
                        wanted[at, name, notification.payload] += 1

        received = await all_received(
            live, streams, len({(at, payload) for at, _, payload in wanted})
        )
        found = Counter(
            (at, name, each.payload)
            for at, items in enumerate(received)
            for each in items
            for name in each.subscriptions
        )
        assert found == wanted
        if algorithm is not Algorithm.DNR:
            assert all(in_order(items) for items in received)
        for client in (*subscribers, *publishers):
            await client.close()


async def all_received(live: Brokers, streams, count: int) -> list[list[Received]]:
    """Wait for so many notifications in all, and then for any that come on top."""
    await until(lambda: sum(len(stream._buffer) for stream in streams) >= count)
    await quiet(live)
    found = []
    for stream in streams:
        items = []
        while stream._buffer:
            items.append(await anext(stream))
        found.append(items)
    return found


def in_order(items: list[Received]) -> bool:
    by_publisher = defaultdict(list)
    for each in items:
        by_publisher[each.publisher].append(each.sequence)
    return all(numbers == sorted(numbers) for numbers in by_publisher.values())


def test_order_of_each_publisher_holds_under_snr_at_full_speed():
    async def work() -> None:
        async with ready(overlay(line(3, 2))) as live:
            first, *_, last = live.values()
            async with (
                client_of(first) as one,
                client_of(first) as other,
                client_of(last) as reader,
                reader.subscribe("x >= 0") as notifications,
            ):
                await tables_hold(live, 1)
                for _ in range(5):
                    await one.publish_many({"x": number} for number in range(1_000))
                    await other.publish_many({"x": number} for number in range(1_000))
                items = [await anext(notifications) for _ in range(10_000)]
                assert in_order(items)
                assert len({(each.publisher, each.sequence) for each in items}) == 10_000

    run_live(work())


def test_notification_arrives_as_it_was_published():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            first, last = live.values()
            async with client_of(first) as writer, client_of(last) as reader:
                async with reader.subscribe("symbol = 'IBM'", "price > 50") as notifications:
                    await tables_hold(live, 2)
                    attributes = {"symbol": "IBM", "price": 84.5, "volume": -3, "halted": False}
                    await writer.publish(attributes, b"\x00payload", intended_ns=12)
                    found = await anext(notifications)
        assert found.attributes == attributes
        assert (found.payload, found.publisher) == (b"\x00payload", writer.id)
        assert (found.sequence, found.intended_ns) == (1, 12)
        assert set(found.subscriptions) == set(notifications.subscriptions)

    run_live(work())


def test_unsubscribed_stream_gets_nothing_more_and_leaves_no_entry():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            first, last = live.values()
            async with client_of(first) as writer, client_of(last) as reader:
                async with reader.subscribe("x = 1"):
                    await tables_hold(live, 1)
                await tables_hold(live, 0)
                await writer.publish({"x": 1})
                assert first.core.counters.notification_ims == 0

    run_live(work())
