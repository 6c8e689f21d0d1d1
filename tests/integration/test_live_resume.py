"""A client whose connection breaks goes on where it was, while its broker keeps its session."""

import asyncio

import pytest
from msgspec.structs import replace

import octopis
from octopis.broker.settings import ClientQueues
from octopis.client.streams import Gap
from octopis.core.routing import Algorithm
from octopis.errors import ConnectionLost
from support.cutting import Cut, cut, cut_off_reader, cutting_proxy, let_in, numbers
from support.live import (
    LIMITS,
    client_of,
    line,
    overlay,
    ready,
    run_live,
    tables_hold,
    until,
)

A, B, C = line(3).brokers
SHORT = replace(LIMITS, session_s=0.3)


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_cuts_are_not_noticed_under_any_algorithm(algorithm: Algorithm):
    async def work() -> None:
        async with (
            ready(overlay(line(3), algorithm)) as live,
            cutting_proxy(live[A]) as to_writer,
            cutting_proxy(live[C]) as to_reader,
            octopis.connect(to_writer.url) as writer,
            octopis.connect(to_reader.url, window=50) as reader,
            reader.subscribe("n >= 0") as notifications,
        ):
            await tables_hold(live, 1)
            to_writer.arm(*(Cut(3_000 * step, up=bool(step % 2)) for step in range(3)))
            to_reader.arm(*(Cut(5_000 * step, up=not step % 2) for step in range(3)))
            reading = asyncio.create_task(numbers(notifications, 1_000))
            for start in range(0, 1_000, 20):
                await writer.publish_many({"n": start + n} for n in range(20))
            found = await reading
            assert sorted(found) == list(range(1_000))
            assert found == list(range(1_000)) or algorithm in (Algorithm.DNR, Algorithm.TNR)
            assert notifications.gaps == 0
            assert to_writer.cuts_done + to_reader.cuts_done >= 4

    run_live(work())


def test_what_is_published_while_a_subscriber_is_cut_off_waits_for_it():
    async def work() -> None:
        gaps: list[Gap] = []
        async with cut_off_reader(gaps) as (broker, proxy, writer, reader, notifications):
            await writer.publish_many({"n": n} for n in range(500))
            shown = broker.status()["clients"][reader.id]
            assert (shown["connected"], shown["queue_length"]) == (False, 500)
            assert broker.status()["clients"][writer.id]["connected"]
            proxy.is_shut = False
            assert await numbers(notifications, 500) == list(range(500))
            assert not gaps
            assert broker.status()["clients"][reader.id]["connected"]

    run_live(work())


def test_blocking_client_goes_on_too():
    async def work() -> None:
        async with ready(overlay(line(1))) as live, cutting_proxy(live[A]) as proxy:

            def blocking() -> tuple[list[int], int]:
                with (
                    octopis.connect_sync(proxy.url) as client,
                    client.subscribe("n >= 0", timeout_s=20) as notifications,
                ):
                    proxy.arm(Cut(500), Cut(1_000), Cut(0, up=True))
                    client.publish_many({"n": n} for n in range(200))
                    return [next(notifications).attributes["n"] for _ in range(200)], (
                        notifications.gaps
                    )

            assert await asyncio.to_thread(blocking) == (list(range(200)), 0)
            assert proxy.cuts_done == 3

    run_live(work())


def test_publications_that_wait_in_a_kept_session_go_on_and_are_answered_later():
    async def work() -> None:
        async with (
            ready(overlay(line(1))) as live,
            cutting_proxy(live[A]) as proxy,
            octopis.connect(proxy.url) as writer,
        ):
            intake = live[A].intake
            intake.is_open = False  # held up
            intake._batch_max = 3
            publishing = asyncio.create_task(writer.publish_many({"n": n} for n in range(10)))
            session = live[A].clients[writer.id]
            await until(lambda: session.publications)
            await cut(proxy, live[A], writer)
            intake.is_open = True
            intake._publish()  # the request is half taken
            assert intake._begun[session].taken == 3
            intake.is_open = False
            proxy.is_shut = False
            await until(lambda: not session.is_kept)
            intake.open()
            assert await publishing == 10
            assert intake.published == 10

    run_live(work())


def test_publication_that_was_answered_into_a_broken_connection_is_answered_again():
    async def work() -> None:
        async with (
            ready(overlay(line(1))) as live,
            cutting_proxy(live[A]) as proxy,
            octopis.connect(proxy.url) as writer,
        ):
            proxy.arm(Cut(0))  # nothing comes back
            assert await writer.publish_many({"n": n} for n in range(10)) == 10
            assert (proxy.cuts_done, live[A].intake.published) == (1, 10)

    run_live(work())


def test_stream_that_is_closed_while_cut_off_is_unsubscribed_afterwards():
    async def work() -> None:
        async with cut_off_reader([]) as (broker, proxy, writer, reader, notifications):
            async with asyncio.timeout(5):
                await notifications.close()
            assert len(broker.core.table) == 1
            proxy.is_shut = False
            await until(lambda: not broker.core.table)
            async with reader.subscribe("n >= 0") as again:
                await writer.publish({"n": 1})
                assert await numbers(again, 1) == [1]

    run_live(work())


def test_request_that_waits_when_the_connection_breaks_fails_and_leaves_nothing():
    async def work() -> None:
        async with (
            ready(overlay(line(1))) as live,
            cutting_proxy(live[A]) as proxy,
            octopis.connect(proxy.url) as client,
            client.subscribe("n >= 0") as notifications,
        ):
            session = live[A].clients[client.id]
            live[A].intake.is_open = False
            opening = asyncio.create_task(client.subscribe("other > 0").open())
            asking = asyncio.create_task(client.settled())
            await until(lambda: len(session.changes) == 2)
            await cut(proxy, live[A], client)
            for failing in (opening, asking):
                with pytest.raises(ConnectionLost):
                    await failing
            proxy.is_shut = False
            await until(lambda: not session.is_kept)
            live[A].intake.open()
            await client.publish({"n": 1})
            assert await numbers(notifications, 1) == [1]
            await client.settled()
            assert live[A].clients[client.id] is session
            assert len(live[A].core.table) == 1
            assert notifications.gaps == 0

    run_live(work())


def test_session_that_began_with_unread_notifications_goes_on():
    async def work() -> None:
        gaps: list[Gap] = []
        async with cut_off_reader(gaps, window=20, limits=SHORT) as found:
            broker, proxy, writer, reader, notifications = found
            for arrived in (5, 10):  # two sessions that end with 5 each unread
                await until(lambda: reader.id not in broker.clients)
                await let_in(proxy, reader)
                await writer.publish_many({"n": n} for n in range(arrived - 5, arrived))
                await until(lambda: reader._streams._arrived == arrived)  # noqa: B023
                await cut(proxy, broker, reader)
            await until(lambda: reader.id not in broker.clients)
            assert await numbers(notifications, 3) == [0, 1, 2]
            await let_in(proxy, reader)
            proxy.arm(Cut(300), Cut(300), Cut(300))
            await writer.publish_many({"n": n} for n in range(10, 60))
            assert await numbers(notifications, 57) == list(range(3, 60))
            assert len(gaps) == 3
            assert proxy.cuts_done == 3

    run_live(work())


def test_gap_of_a_slow_subscriber_keeps_its_place_wherever_the_connection_breaks():
    async def work(after: int) -> None:
        gaps: list[Gap] = []
        queues = ClientQueues(capacity=20, high_water=10)
        async with cut_off_reader(gaps, client_queues=queues) as found:
            broker, proxy, writer, reader, notifications = found
            await writer.publish_many({"n": n} for n in range(100))
            assert broker.clients[reader.id].dropped == 80
            proxy.arm(Cut(after))
            proxy.is_shut = False
            assert await numbers(notifications, 20) == list(range(80, 100))
            assert [gap.dropped for gap in gaps] == [80]
            await writer.publish({"n": 100})
            assert await numbers(notifications, 1) == [100]
            assert len(gaps) == 1

    welcome = 120  # and a little; the gap notice has 14 bytes, and deliveries follow
    for after in (*range(welcome, welcome + 60, 4), 300, 600):
        run_live(work(after))


def test_silent_client_is_cut_off_and_goes_on_when_it_reads_again():
    async def work() -> None:
        limits = replace(LIMITS, client_silence_s=0.4)
        async with (
            ready(overlay(line(1), limits=limits)) as live,
            client_of(live[A]) as reader,
            reader.subscribe("n >= 0") as notifications,
        ):
            transport = reader._connection._transport
            transport.pause_reading()
            session = live[A].clients[reader.id]
            await until(lambda: session.is_kept)
            async with client_of(live[A]) as writer:
                await writer.publish({"n": 1})
            transport.resume_reading()
            assert await numbers(notifications, 1) == [1]
            assert notifications.gaps == 0

    run_live(work())
