"""What one client can do to a broker within the protocol, and what others notice of it."""

import asyncio
import gc
import resource
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise

import pytest
from msgspec.structs import replace

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import ClientPolicy, ClientQueues
from octopis.core.wire.client import (
    AnswerItem,
    Consumed,
    SubscribeRequest,
    decode_to_client,
    encode_publish,
    encode_request,
)
from octopis.core.wire.frames import FrameKind
from octopis.core.wire.published import PUBLISH_MAX, encode_published
from octopis.errors import ConnectionFailed, InvalidSubscription
from octopis.overlay.status import ask_all
from support.live import (
    LIMITS,
    RawPeer,
    client_of,
    line,
    overlay,
    raw_client,
    ready,
    run_live,
    until,
)

(A,) = line(1).brokers


def attack(work: Callable[[LiveBroker], Awaitable[object]], **options: object) -> None:
    """Attack one broker, while a publisher and a subscriber use it before and after."""

    async def whole() -> None:
        async with (
            ready(overlay(line(1), **options)) as live,
            client_of(live[A]) as client,
            client.subscribe("witness > 0") as notifications,
        ):
            for number in (1, 2):
                await client.publish({"witness": number})
                assert (await anext(notifications)).attributes == {"witness": number}
                if number == 1:
                    await work(live[A])
            assert notifications.gaps == 0

    run_live(whole())


async def answer(peer: RawPeer, data: bytes) -> AnswerItem:
    await peer.send(data)
    while True:
        for frame in await peer.next_frames():
            if frame.kind == FrameKind.ANSWERS:
                (item,) = decode_to_client(frame)  # type: ignore[misc]
                assert isinstance(item, AnswerItem)
                return item


@asynccontextmanager
async def stalled(broker: LiveBroker) -> AsyncIterator[RawPeer]:
    """Subscribe to everything, and read nothing of it."""
    async with raw_client(broker) as peer:
        request = SubscribeRequest(1, 1, "raw/1", "x >= 0", "sql", 0)
        await answer(peer, encode_request(request))
        yield peer


PAUSE = ClientQueues(capacity=10_000, high_water=100, policy=ClientPolicy.PAUSE)


def test_saying_again_how_much_was_consumed_is_no_progress():
    async def work(broker: LiveBroker) -> None:
        async with stalled(broker) as peer, client_of(broker) as publisher:
            publishing = asyncio.create_task(publisher.publish_many({"x": n} for n in range(2_000)))
            await until(lambda: broker.backpressure.brokers)
            while "raw" in broker.clients:
                await peer.send(encode_request(Consumed(0)))
                await asyncio.sleep(0.05)
            assert await publishing == 2_000

    attack(work, client_queues=PAUSE, limits=replace(LIMITS, stall_s=0.6))


def test_slow_but_steady_subscriber_is_not_taken_for_stalled():
    async def work(broker: LiveBroker) -> None:
        async with client_of(broker) as reader, client_of(broker) as publisher:
            async with reader.subscribe("x >= 0") as notifications:
                publishing = asyncio.create_task(
                    publisher.publish_many({"x": n} for n in range(12_000))
                )
                await until(lambda: broker.backpressure.brokers)
                for _ in range(40):  # far fewer than a quarter of its window
                    await anext(notifications)
                    await asyncio.sleep(0.08)
                assert notifications.gaps == 0
                assert reader.id in broker.clients
                async for notification in notifications:
                    if notification.attributes["x"] == 11_999:
                        break
            await publishing

    attack(work, client_queues=PAUSE, limits=replace(LIMITS, stall_s=2.0))


def test_stalled_subscriber_holds_nobody_back_by_default():
    async def work(broker: LiveBroker) -> None:
        async with stalled(broker), client_of(broker) as publisher:
            await publisher.publish_many({"x": n} for n in range(30_000))
            assert broker.clients["raw"].queue.has_backpressure
            assert not broker.backpressure.brokers

    attack(work)


def test_nothing_stays_of_a_client_that_has_left():
    async def work(broker: LiveBroker) -> None:
        async with raw_client(broker) as peer:
            await peer.send((5_000_000).to_bytes(4, "big") + b"\x22" + bytes(1_000_000))
            session = broker.clients["raw"]
            await until(lambda: broker.memory.bytes > 900_000)
            references = [weakref.ref(session), weakref.ref(session.connection)]
            del session
        gc.disable()  # nothing may wait for the collector
        try:
            await until(lambda: "raw" not in broker.clients)
            await until(lambda: not any(reference() for reference in references))
        finally:
            gc.enable()
        assert broker.memory.bytes == 0

    attack(work)


@pytest.mark.parametrize("count", [PUBLISH_MAX + 1, 2_000_000])
def test_request_with_too_many_notifications_is_refused_before_it_is_read(count: int):
    async def work(broker: LiveBroker) -> None:
        one = encode_published({}, b"", "raw", 1, 1)
        async with raw_client(broker) as peer:
            data = encode_publish(7, [one] * min(count, 1_400_000))
            found = await answer(peer, data)
            assert found.refusal is not None
            assert "at most 4,096 notifications" in found.refusal.message
            assert broker.intake.published == 1  # the witness's

    attack(work)


def test_who_holds_the_most_is_sent_away_when_all_hold_too_much():
    async def work(broker: LiveBroker) -> None:
        async with raw_client(broker, "small") as small, raw_client(broker, "large") as large:
            await small.send((5_000_000).to_bytes(4, "big") + b"\x22" + bytes(300_000))
            await large.send((5_000_000).to_bytes(4, "big") + b"\x22" + bytes(800_000))
            frames = await large.frames()
            assert frames[-1].kind == FrameKind.GOODBYE
            assert b"the most of all" in bytes(frames[-1].body)
            assert "small" in broker.clients

    attack(work, limits=replace(LIMITS, client_bytes=1_000_000))


def test_dear_publications_are_matched_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(
        "octopis.broker.clients.turns.DEAR_S", 0.00001
    )  # so they are on any machine

    async def work(broker: LiveBroker) -> None:
        letters = "abcdefghijklmnopqrstuvwxyz"
        async with client_of(broker) as client, AsyncExitStack() as stack:
            for end in range(10):
                likes = (f"remark LIKE '%{a}{b}{end}%'" for a in letters for b in "abcde")
                await stack.enter_async_context(client.subscribe(" OR ".join(likes)))
            sizes = [broker.intake.published]
            publishing = asyncio.create_task(client.publish_many([{"remark": "none"}] * 1_000))
            while not publishing.done():
                await asyncio.sleep(0)
                sizes.append(broker.intake.published)
            await publishing
            assert sizes[-1] - sizes[0] == 1_000
            assert max(after - before for before, after in pairwise(sizes)) <= 100

    attack(work)


def test_large_frames_come_in_a_few_at_a_time():
    async def work(broker: LiveBroker) -> None:
        start = (5_000_000).to_bytes(4, "big") + b"\x22" + bytes(1_500_000)
        async with AsyncExitStack() as stack:
            peers = [
                await stack.enter_async_context(raw_client(broker, f"raw {n}")) for n in range(6)
            ]
            for peer in peers:
                await peer.send(start)
            await until(lambda: broker.memory.bytes > 4 * 1_500_000)
            frames = broker.memory.large_frames
            await until(lambda: len(frames._waiting) == 2)
            held = 0
            while held != (held := broker.memory.bytes):  # until all is read that may be
                await asyncio.sleep(0.2)
            waiting = next(iter(frames._waiting)).peer.client
            late = peers[int(waiting.split()[1])]
            late._writer.write(bytes(3_000_000))  # nobody reads it now
            await asyncio.sleep(0.1)
            assert broker.memory.bytes < held + 1_000_000
            for peer in peers:
                if peer is not late:
                    peer._writer.close()
            await late.send(bytes(499_999))  # and then its turn comes
            assert (await late.frames())[-1].kind == FrameKind.GOODBYE  # its zeros make no sense

    attack(work)


def test_what_waits_for_slow_subscribers_is_bounded_in_all():
    async def work(broker: LiveBroker) -> None:
        async with stalled(broker) as peer, client_of(broker) as publisher:
            await publisher.publish_many(({"x": n}, bytes(5_000)) for n in range(2_000))
            frames = await peer.frames()
            assert frames[-1].kind == FrameKind.GOODBYE
            assert broker.memory.bytes < 2_000_000

    attack(work, limits=replace(LIMITS, client_bytes=2_000_000))


def test_clients_have_a_share_of_subscriptions_and_terms():
    async def work(broker: LiveBroker) -> None:
        async with client_of(broker) as client:
            first = await client.subscribe("x = 1", "x = 2").__aenter__()
            with pytest.raises(InvalidSubscription, match="at most 3 subscriptions"):
                await client.subscribe("x = 3", "x = 4").open()
            await first.close()
            wide = " OR ".join(f"a{n} = 1" for n in range(9))
            async with client.subscribe(wide):
                with pytest.raises(InvalidSubscription, match="at most 10 terms"):
                    await client.subscribe("x = 1 AND y = 1").open()
                async with client.subscribe("x = 1"):
                    pass

    attack(work, limits=replace(LIMITS, subscriptions_per_client=3, terms_per_client=10))


def test_patterns_of_a_client_have_a_share_of_time():
    async def work(broker: LiveBroker) -> None:
        async with client_of(broker) as client:
            dear = " OR ".join(f"t LIKE '%{n:03d}%'" for n in range(100))
            with pytest.raises(InvalidSubscription, match="20 ms of LIKE patterns"):
                await client.subscribe(*(f"x = {n} OR {dear}" for n in range(40))).open()
            async with client.subscribe(*(f"x = {n} AND t LIKE 'a%'" for n in range(40))):
                pass

    attack(work, limits=replace(LIMITS, matching_ms_per_client=20.0))


def test_clients_of_one_host_have_a_share_of_connections():
    async def work(broker: LiveBroker) -> None:
        async with client_of(broker):
            with pytest.raises(ConnectionFailed, match=r"there are 2 clients of 127\.0\.0\.1 here"):
                await client_of(broker).open()
        await until(lambda: len(broker.clients) == 1)
        async with client_of(broker):
            pass

    attack(work, limits=replace(LIMITS, clients_per_host=2))


def test_broker_that_can_open_no_more_files_says_so(caplog):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def work(broker: LiveBroker) -> None:
        async with raw_client(broker):
            used = broker.clients["raw"].connection._transport.get_extra_info("socket").fileno()
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + 4, hard))
            try:
                async with raw_client(broker, "last"):
                    pass
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    attack(work)
    assert "may be sent away without a word; raise the limit" in caplog.text


def test_no_name_hides_a_client_from_the_status():
    async def work(broker: LiveBroker) -> None:
        async with client_of(broker, client_id="status-x"):
            found = await ask_all({"a,0": str(broker.address)})
            assert "status-x" in found["a,0"]["clients"]
            assert len(found["a,0"]["clients"]) == 2

    attack(work)


def test_observer_can_do_nothing_but_look():
    async def work(broker: LiveBroker) -> None:
        async with client_of(broker, observer=True, reconnect_s=0) as client:
            with pytest.raises(Exception, match="an observer only asks for the status"):
                await client.publish({"witness": 9})

    attack(work)
