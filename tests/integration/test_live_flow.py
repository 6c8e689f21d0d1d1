"""Under overload nothing is lost and nothing grows without bound; what is dropped is counted."""

import asyncio
import time

import pytest
from msgspec.structs import replace

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import ClientPolicy, ClientQueues, LinkPolicy, LinkQueues, Shape
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.wire.client import (
    Consumed,
    Delivery,
    GapNotice,
    SubscribeRequest,
    decode_to_client,
    encode_request,
)
from octopis.core.wire.control import Goodbye
from octopis.errors import ConnectionLost
from support.live import (
    LIMITS,
    Brokers,
    RawPeer,
    client_of,
    line,
    overlay,
    quiet,
    raw_client,
    ready,
    run_live,
    tables_hold,
    until,
)

A, B, C, D = line(4).brokers
SMALL = LinkQueues(capacity=2_000, high_water=200)
PAYLOAD = bytes(200)


async def watch_queue(broker: LiveBroker, neighbour: BrokerId, longest: list[int]) -> None:
    """Note how long a queue gets."""
    while True:
        longest.append(len(broker.links[neighbour].queue))
        await asyncio.sleep(0)


@pytest.mark.parametrize("slow", [(A, B), (C, D)], ids=["at the publisher", "further on"])
def test_publisher_faster_than_a_link_loses_nothing_and_is_slowed_down(slow):
    async def work() -> None:
        shapes = {slow: Shape(600_000)}
        async with ready(overlay(line(4), queues=SMALL, shapes=shapes)) as live:
            longest = [0]
            watching = asyncio.create_task(watch_queue(live[slow[0]], slow[1], longest))
            async with (
                client_of(live[A]) as writer,
                client_of(live[D]) as reader,
                reader.subscribe("x >= 0") as notifications,
            ):
                await tables_hold(live, 1)
                start = time.monotonic()
                await writer.publish_many(({"x": number}, PAYLOAD) for number in range(8_000))
                assert time.monotonic() - start > 2  # 600 kB/s for 2 MB: it had to wait
                found = [(await anext(notifications)).attributes["x"] for _ in range(8_000)]
                assert found == list(range(8_000))
            watching.cancel()
            assert SMALL.high_water < max(longest) < SMALL.capacity
            for broker in live.values():
                drops = broker.status()["drops"]
                assert drops == {"links": 0, "links_cut": 0, "clients": 0, "clients_left": 0}
                assert not broker.backpressure.brokers

    run_live(work())


def test_backpressure_is_told_to_all_and_subscribers_are_not_disturbed():
    async def work() -> None:
        shapes = {(C, D): Shape(200_000)}
        async with ready(overlay(line(4), queues=SMALL, shapes=shapes)) as live:
            async with (
                client_of(live[A]) as writer,
                client_of(live[A]) as other,
                client_of(live[D]) as reader,
                reader.subscribe("x >= 0"),
            ):
                await tables_hold(live, 1)
                publishing = asyncio.create_task(
                    writer.publish_many(({"x": n}, PAYLOAD) for n in range(3_000))
                )
                await until(lambda: all(each.backpressure.brokers == [C] for each in live.values()))
                status = await other.status()
                assert status["backpressure"] == ["c,0"]
                async with other.subscribe("y > 0"):  # only publications wait
                    assert not publishing.done()
                assert await publishing == 3_000
                await until(lambda: not any(each.backpressure.brokers for each in live.values()))

    run_live(work())


def test_notice_of_a_broker_that_is_gone_is_forgotten():
    async def work() -> None:
        shapes = {(B, C): Shape(1_000)}
        async with ready(overlay(line(3), queues=SMALL, shapes=shapes)) as live:
            async with (
                client_of(live[A]) as writer,
                client_of(live[C]) as reader,
                reader.subscribe("x >= 0"),
            ):
                await tables_hold(live, 1)
                publishing = asyncio.create_task(
                    writer.publish_many(({"x": n}, PAYLOAD) for n in range(3_000))
                )
                await until(lambda: live[A].backpressure.brokers == [B])
                for task in live[B]._tasks:
                    task.cancel()  # it renews nothing any more, and dials nobody
                live[B].listening.close()
                live[A].links[B].connection.abort("cut by the test")
                await until(lambda: live[A].backpressure.brokers == [])
                assert await publishing == 3_000
                assert live[A].core.counters.lost_on_down_links > 0

    run_live(work())


BOUND = {"capacity": 100, "high_water": 100}


@pytest.mark.parametrize("policy", [LinkPolicy.DROP_NEWEST, LinkPolicy.DROP_OLDEST])
def test_full_link_queue_drops_by_its_policy_and_counts(policy: LinkPolicy, caplog):
    async def work() -> None:
        shapes = {(A, B): Shape(200_000)}
        options = {"queues": LinkQueues(**BOUND, policy=policy), "shapes": shapes}
        async with ready(overlay(line(2), **options)) as live:
            link = live[A].links[B]
            async with (
                client_of(live[A]) as writer,
                client_of(live[B]) as reader,
                reader.subscribe("x >= 0") as notifications,
            ):
                await tables_hold(live, 1)
                await writer.publish_many(({"x": n}, PAYLOAD) for n in range(1_000))
                await until(lambda: not link.queue)
                await quiet(live)
                dropped = link.dropped
                assert dropped > 0
                assert live[A].status()["drops"]["links"] == dropped
                assert live[A].core.link_status[B].queue_length == 0
                found = [await anext(notifications) for _ in range(1_000 - dropped)]
                assert notifications.oldest is None
                last = max(each.attributes["x"] for each in found)
                assert (last == 999) is (policy is LinkPolicy.DROP_OLDEST)

    run_live(work())
    assert "B(a, 0): the queue to B(b, 0) is full: dropped" in caplog.text


def test_full_link_queue_may_cut_the_link_which_comes_back():
    async def work() -> None:
        shapes = {(A, B): Shape(200_000)}
        queues = LinkQueues(**BOUND, policy=LinkPolicy.DISCONNECT)
        options = {"queues": queues, "shapes": shapes}
        async with (
            ready(overlay(line(2), **options)) as live,
            client_of(live[A]) as writer,
            client_of(live[B]) as reader,
            reader.subscribe("x >= 0") as notifications,
        ):
            await tables_hold(live, 1)
            await writer.publish_many(({"x": n}, PAYLOAD) for n in range(1_000))
            await until(lambda: live[A].links[B].reconnects > 0 and live[A].links[B].is_up)
            assert live[A].status()["drops"]["links"] > 0
            assert live[A].status()["drops"]["links_cut"] > 0
            await quiet(live)
            await writer.publish({"x": 5_000})
            async for each in notifications:
                if each.attributes["x"] == 5_000:
                    break

    run_live(work())


async def stall(live: Brokers, peer: RawPeer) -> None:
    """Subscribe to everything, and read nothing of it (the window is 100)."""
    await peer.send(encode_request(SubscribeRequest(1, 1, "raw/1", "x >= 0", "sql", 0)))
    await until(lambda: len(live[A].core.table) == 2)


CLIENT_BOUND = {"capacity": 500, "high_water": 100}
CLIENT_BOUNDS = ClientQueues(**CLIENT_BOUND, policy=ClientPolicy.PAUSE)


def test_stalled_subscriber_loses_its_oldest_and_hears_how_many():
    async def work() -> None:
        queues = ClientQueues(**CLIENT_BOUND, policy=ClientPolicy.DROP_OLDEST)
        async with (
            ready(overlay(line(1), client_queues=queues)) as live,
            client_of(live[A]) as client,
            client.subscribe("x >= 0") as notifications,
            raw_client(live[A]) as peer,
        ):
            await stall(live, peer)
            for start in range(0, 3_000, 100):
                await client.publish_many({"x": start + n} for n in range(100))
                for n in range(100):  # the other subscriber misses nothing
                    assert (await anext(notifications)).attributes["x"] == start + n
            session = live[A].clients["raw"]
            assert session.dropped == 3_000 - 100 - 500
            assert live[A].status()["drops"]["clients"] == session.dropped
            await peer.send(encode_request(Consumed(100)))
            found: list[object] = []
            while not any(isinstance(each, GapNotice) for each in found):
                for frame in await peer.next_frames():
                    said = decode_to_client(frame)
                    found += said if isinstance(said, list) else [said]
            at = next(at for at, each in enumerate(found) if isinstance(each, GapNotice))
            assert found[at] == GapNotice(session.dropped)
            before = [each for each in found[:at] if isinstance(each, Delivery)]
            assert [each.notification.attributes["x"] for each in before] == list(range(100))
            after = [each for each in found[at:] if isinstance(each, Delivery)]
            assert after[0].notification.attributes["x"] == 2_500

    run_live(work())


def test_stalled_subscriber_may_be_disconnected():
    async def work() -> None:
        queues = ClientQueues(**CLIENT_BOUND, policy=ClientPolicy.DISCONNECT)
        async with ready(overlay(line(1), client_queues=queues)) as live:
            async with client_of(live[A]) as client, raw_client(live[A]) as peer:
                async with client.subscribe("x < 0"):
                    await stall(live, peer)
                    await client.publish_many({"x": n} for n in range(3_000))
                    said = [decode_to_client(frame) for frame in await peer.frames()]
                    assert isinstance(said[-1], Goodbye)
                    assert "does not keep up" in said[-1].reason
                    await tables_hold(live, 1)
                    assert live[A].status()["drops"]["clients_left"] > 0

    run_live(work())


def test_publishers_wait_for_a_slow_subscriber():
    async def work() -> None:
        # The capacity has room for what is under way.
        bounds = ClientQueues(capacity=4_000, high_water=100, policy=ClientPolicy.PAUSE)
        async with (
            ready(overlay(line(2), client_queues=bounds)) as live,
            client_of(live[A]) as writer,
            client_of(live[B], window=50) as reader,
            reader.subscribe("x >= 0") as notifications,
        ):
            await tables_hold(live, 1)
            publishing = asyncio.create_task(writer.publish_many({"x": n} for n in range(5_000)))
            longest = 0
            for number in range(5_000):
                if number % 500 == 0:
                    await asyncio.sleep(0.02)
                assert (await anext(notifications)).attributes["x"] == number
                longest = max(longest, len(live[B].clients[reader.id].queue))
            assert await publishing == 5_000
            assert notifications.gaps == 0
            assert bounds.high_water < longest < bounds.capacity

    run_live(work())


def test_publishers_do_not_wait_for_ever_for_a_stalled_subscriber(caplog):
    async def work() -> None:
        limits = replace(LIMITS, stall_s=0.5)
        async with ready(overlay(line(1), client_queues=CLIENT_BOUNDS, limits=limits)) as live:
            async with client_of(live[A]) as client, raw_client(live[A]) as peer:
                async with client.subscribe("x < 0"):
                    await stall(live, peer)
                    publishing = asyncio.create_task(
                        client.publish_many({"x": n} for n in range(3_000))
                    )
                    await until(lambda: live[A].backpressure.brokers == [A])
                    assert not publishing.done()
                    assert await publishing == 3_000
                    assert "raw" not in live[A].clients

    run_live(work())
    assert "has consumed nothing for" in caplog.text


def test_client_that_never_reads_its_answers_is_closed():
    async def work() -> None:
        async with ready(overlay(line(1))) as live, raw_client(live[A]):
            session = live[A].clients["raw"]
            session.connection.is_writable = False
            for request in range(10_001):
                session.answer(request)
            await until(lambda: "raw" not in live[A].clients)

    run_live(work())


def test_one_slow_client_does_not_block_answers_to_itself():
    async def work() -> None:
        async with ready(overlay(line(1), client_queues=CLIENT_BOUNDS)) as live:
            async with client_of(live[A], window=10) as client:
                async with client.subscribe("x >= 0") as notifications:
                    for number in range(100):  # nobody reads them, and publish is answered
                        await client.publish({"x": number})
                    for number in range(100):
                        assert (await anext(notifications)).attributes["x"] == number

    run_live(work())


async def mean_delay_s(algorithm: Algorithm) -> tuple[float, dict[str, int]]:
    """Return the mean delay with an iCOL at a crawl, and the cases of the publisher's host."""
    scot = line(2, 3)
    host, slow = scot.brokers[0], scot.brokers[1]
    shapes = {(host, slow): Shape(8_000)}
    async with ready(overlay(scot, algorithm, shapes=shapes)) as live:
        writer = client_of(live[host])
        readers = [client_of(broker) for broker in live.values()]
        for client in (writer, *readers):
            await client.open()
        streams = [await reader.subscribe("x >= 0").__aenter__() for reader in readers]
        await tables_hold(live, len(readers))
        delays: list[float] = []

        async def read(stream) -> None:
            for _ in range(200):
                found = await anext(stream)
                delays.append((time.time_ns() - found.intended_ns) / 1e9)

        reading = [asyncio.create_task(read(stream)) for stream in streams]
        for number in range(200):
            await writer.publish({"x": number}, PAYLOAD)
            await asyncio.sleep(0.002)
        await asyncio.gather(*reading)
        for client in (writer, *readers):
            await client.close()
        return sum(delays) / len(delays), live[host].status()["cases"]


def test_with_an_icol_at_a_crawl_dnr_delivers_all_sooner_than_snr():
    async def work() -> None:
        snr, no_cases = await mean_delay_s(Algorithm.SNR)
        dnr, cases = await mean_delay_s(Algorithm.DNR)
        assert no_cases == {}
        assert cases
        assert dnr < snr / 2

    run_live(work())


def test_publication_whose_fate_is_unknown_raises_connection_lost():
    async def work() -> None:
        async with ready(overlay(line(1))) as live, client_of(live[A]) as client:
            live[A].intake.close()  # nothing is accepted
            publishing = asyncio.create_task(client.publish_many([{"x": 1}, {"x": 2}]))
            await until(lambda: live[A].clients[client.id].publications)
            live[A].clients[client.id].connection.abort("cut by the test")
            with pytest.raises(ConnectionLost, match="2 publications may or may not"):
                await publishing

    run_live(work())
