"""What ends a session that a broker keeps for a client, and who else cannot have it."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

import octopis
from octopis.broker.settings import ClientPolicy, ClientQueues
from octopis.client.streams import Gap
from octopis.core.wire.greeting import ClientHello, Welcome, decode_answer, encode_hello
from octopis.errors import ConnectionFailed, ConnectionLost
from support.cutting import cut, cut_off_reader, cutting_proxy, let_in, numbers
from support.live import (
    LIMITS,
    client_of,
    line,
    overlay,
    raw_client,
    raw_peer,
    ready,
    run_live,
    tables_hold,
    until,
)

A, B = line(2).brokers
SHORT = replace(LIMITS, session_s=0.3)
LONG = replace(LIMITS, session_s=1_000)
SECRET = secrets.token_hex(8)


def test_session_ends_after_its_time_and_the_gap_is_told():
    async def work() -> None:
        gaps: list[Gap] = []
        async with cut_off_reader(gaps, limits=SHORT) as found:
            broker, proxy, writer, reader, notifications = found
            await writer.publish({"n": 1})
            await until(lambda: reader.id not in broker.clients)
            assert broker.status()["drops"]["clients_left"] == 1
            await let_in(proxy, reader)
            await writer.publish({"n": 2})
            assert await numbers(notifications, 1) == [2]
            (gap,) = gaps
            assert "the connection was lost" in gap.reason

    run_live(work())


def test_no_session_is_kept_where_that_is_turned_off():
    async def work() -> None:
        async with cut_off_reader([], limits=replace(LIMITS, session_s=0)) as found:
            broker, _, _, reader, _ = found
            assert reader.id not in broker.clients

    run_live(work())


def test_client_that_says_goodbye_leaves_for_good():
    async def work() -> None:
        async with ready(overlay(line(1), limits=LONG)) as live:
            async with client_of(live[A]) as client, client.subscribe("n >= 0"):
                session = live[A].clients[client.id]
            await until(lambda: not live[A].clients)
            assert not session.token

    run_live(work())


def test_nobody_is_kept_who_could_not_come_back():
    async def work() -> None:
        async with ready(overlay(line(1), limits=LONG)) as live:
            async with raw_client(live[A]), raw_peer(live[A]) as peer:
                await peer.send(encode_hello(ClientHello("sees", 1, secret=SECRET, observer=True)))
                await peer.next_frames()
                assert len(live[A].clients) == 2
            await until(lambda: not live[A].clients)

    run_live(work())


@pytest.mark.parametrize("policy", [ClientPolicy.DISCONNECT, ClientPolicy.PAUSE])
def test_kept_session_ends_at_its_bound_and_nobody_waits_for_it(policy: ClientPolicy):
    async def work() -> None:
        gaps: list[Gap] = []
        queues = ClientQueues(capacity=200, high_water=50, policy=policy)
        async with cut_off_reader(gaps, client_queues=queues) as found:
            broker, proxy, writer, reader, notifications = found
            before = 50 if policy is ClientPolicy.PAUSE else 200
            await writer.publish_many({"n": n} for n in range(before))
            assert len(broker.clients[reader.id].queue) == before
            async with asyncio.timeout(LIMITS.stall_s / 2):
                await writer.publish_many({"n": n} for n in range(1_000))
            assert reader.id not in broker.clients
            assert not broker.backpressure.outputs
            await let_in(proxy, reader)
            await writer.publish({"n": 5_000})
            assert await numbers(notifications, 1) == [5_000]
            assert len(gaps) == 1

    run_live(work())


def test_stalled_client_whose_connection_breaks_lets_publishers_go_on():
    async def work() -> None:
        queues = ClientQueues(capacity=2_000, high_water=50, policy=ClientPolicy.PAUSE)
        async with (
            ready(overlay(line(1), client_queues=queues)) as live,
            cutting_proxy(live[A]) as proxy,
            client_of(live[A]) as writer,
            octopis.connect(proxy.url, window=10) as reader,
            reader.subscribe("n >= 0"),
        ):
            publishing = asyncio.create_task(writer.publish_many({"n": n} for n in range(5_000)))
            await until(lambda: live[A].backpressure.brokers)
            assert not publishing.done()
            async with asyncio.timeout(LIMITS.stall_s / 2):
                await cut(proxy, live[A], reader)
                assert await publishing == 5_000

    run_live(work())


def test_broker_that_stops_does_not_wait_for_kept_sessions():
    async def work() -> None:
        async with cut_off_reader([]) as (broker, _, writer, _, _):
            await writer.publish({"n": 1})
            broker.begin_stop()
            assert list(broker.clients) == [writer.id]
            assert broker.queued == 0

    run_live(work())


def test_broker_that_stops_keeps_nobody_who_is_cut_off_then():
    async def work() -> None:
        async with (
            ready(overlay(line(1))) as live,
            cutting_proxy(live[A]) as proxy,
            octopis.connect(proxy.url, reconnect_s=0.1) as client,
        ):
            live[A].begin_stop()
            await cut(proxy, live[A], client)
            assert not live[A].clients

    run_live(work())


# Another life, another client


@asynccontextmanager
async def moved_publication(*, resend: bool) -> AsyncIterator[tuple]:
    """Yield a publication without answer, its client, its stream and the broker that it goes to."""
    async with (
        ready(overlay(line(1))) as before,
        ready(overlay(line(1))) as after,
        cutting_proxy(before[A]) as proxy,
        octopis.connect(proxy.url, resend=resend) as client,
        client.subscribe("n >= 0") as notifications,
    ):
        before[A].intake.is_open = False
        publishing = asyncio.create_task(client.publish_many([{"n": 1}, {"n": 2}]))
        await until(lambda: before[A].clients[client.id].publications)
        proxy.target = after[A].address
        proxy.cut()
        yield publishing, notifications, after[A]


def test_broker_in_another_life_has_no_session_so_publications_are_lost_and_a_gap_is_told():
    async def work() -> None:
        async with moved_publication(resend=False) as (publishing, notifications, broker):
            with pytest.raises(ConnectionLost, match="2 publications may or may not"):
                await publishing
            await until(lambda: len(broker.core.table) == 1)
            assert broker.intake.published == 0
            notifications._pop()
            assert notifications.gaps == 1

    run_live(work())


def test_publications_are_sent_to_any_broker_where_the_user_wants_that():
    async def work() -> None:
        async with moved_publication(resend=True) as (publishing, notifications, broker):
            assert await publishing == 2
            assert broker.intake.published == 2
            assert await numbers(notifications, 2) == [1, 2]

    run_live(work())


def test_publications_without_answer_wait_no_longer_than_the_session_is_kept():
    async def work() -> None:
        async with (
            ready(overlay(line(1), limits=SHORT)) as live,
            cutting_proxy(live[A]) as proxy,
            octopis.connect(proxy.url) as writer,
        ):
            live[A].intake.is_open = False
            publishing = asyncio.create_task(writer.publish({"n": 1}))
            await until(lambda: live[A].clients[writer.id].publications)
            await cut(proxy, live[A], writer)
            async with asyncio.timeout(10):
                with pytest.raises(ConnectionLost, match="1 publications may or may not"):
                    await publishing  # though the proxy is still shut

    run_live(work())


def test_name_of_a_kept_session_is_only_for_who_has_its_secret():
    async def work() -> None:
        async with cut_off_reader([]) as (broker, proxy, writer, reader, notifications):
            for secret in ("", SECRET):
                thief = client_of(broker, client_id=reader.id, secret=secret)
                with pytest.raises(ConnectionFailed, match="is another client's here"):
                    await thief.open()
            token = broker.clients[reader.id].token
            async with raw_peer(broker) as peer:  # the token alone is not enough
                hello = ClientHello(reader.id, 10, secret=SECRET, session=token)
                await peer.send(encode_hello(hello))
                (frame,) = await peer.next_frames()
                assert not isinstance(decode_answer(frame), Welcome)
            await writer.publish({"n": 1})
            proxy.is_shut = False
            assert await numbers(notifications, 1) == [1]
            assert notifications.gaps == 0

    run_live(work())


def test_kept_sessions_count_among_the_clients_of_an_address():
    async def work() -> None:
        limits = replace(LIMITS, clients_per_host=2)
        async with cut_off_reader([], limits=limits) as (broker, proxy, _, reader, _):
            with pytest.raises(ConnectionFailed, match="there are 2 clients"):
                await client_of(broker).open()
            proxy.is_shut = False
            await until(lambda: not broker.clients[reader.id].is_kept)
            with pytest.raises(ConnectionFailed, match="there are 2 clients"):
                await client_of(broker).open()

    run_live(work())


def test_new_client_of_the_same_name_and_secret_begins_anew():
    async def work() -> None:
        same = {"client_id": "same", "secret": SECRET}
        async with (
            ready(overlay(line(1))) as live,
            cutting_proxy(live[A]) as proxy,
            client_of(live[A]) as reader,
            reader.subscribe("n >= 0") as notifications,
        ):
            first = octopis.connect(proxy.url, **same)
            await first.open()
            await first.publish_many({"n": n} for n in range(5))
            await cut(proxy, live[A], first)
            session = live[A].clients["same"]
            async with client_of(live[A], **same) as second:
                assert live[A].clients["same"] is not session
                await second.publish_many({"n": n} for n in range(3))
                assert await numbers(notifications, 8) == [0, 1, 2, 3, 4, 0, 1, 2]
                first._reconnect_s = 0.0
                first._keeper.cancel()
            await first.close()

    run_live(work())


def test_session_ends_when_its_subscriptions_move_to_another_broker():
    async def work() -> None:
        async with (
            ready(overlay(line(2))) as live,
            cutting_proxy(live[A]) as proxy,
            octopis.connect(f"{proxy.url},{live[B].address}") as reader,
            reader.subscribe("n >= 0") as notifications,
        ):
            await tables_hold(live, 1)
            await cut(proxy, live[A], reader)
            await until(lambda: not live[A].clients)
            assert reader.broker == B
            async with client_of(live[A]) as writer:
                await until(lambda: [entry.host for entry in live[A].core.table] == [B])
                await writer.publish({"n": 1})
                assert await numbers(notifications, 1) == [1]
            assert notifications.gaps == 1

    run_live(work())


def test_session_that_goes_on_leaves_its_old_connection_even_where_that_still_stands():
    async def work() -> None:
        async with (
            ready(overlay(line(1))) as live,
            raw_peer(live[A]) as old,
            raw_peer(live[A]) as new,
        ):
            hello = ClientHello("raw", 10, secret=SECRET)
            await old.send(encode_hello(hello))
            welcome = decode_answer((await old.next_frames())[0])
            assert isinstance(welcome, Welcome)
            session, before = live[A].clients["raw"], live[A].clients["raw"].connection
            await new.send(encode_hello(replace(hello, session=welcome.session)))
            await new.next_frames()
            assert await old.frames() == []  # closed, and without goodbye
            await until(before.closed.done)
            assert live[A].clients["raw"] is session
            assert not session.is_kept

    run_live(work())


def test_session_of_which_the_client_says_nonsense_is_not_resumed():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:

            async def greet(**more: object) -> Welcome:
                async with raw_peer(live[A]) as peer:
                    await peer.send(encode_hello(ClientHello("raw", 10, secret=SECRET, **more)))
                    welcome = decode_answer((await peer.next_frames())[0])
                    assert isinstance(welcome, Welcome)
                    return welcome

            first = await greet()
            assert (first.resumed, first.session_ms) == (False, 10_000)
            assert (await greet(session=first.session)).resumed
            assert not (await greet(session=first.session, received=1)).resumed
            assert not (await greet(session=first.session)).resumed  # another one began

    run_live(work())
