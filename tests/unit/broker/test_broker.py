import asyncio
import logging
import time

import pytest
from msgspec.structs import replace

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import Shape
from octopis.client.address import Address
from octopis.core.model import ClusterBitVector
from octopis.core.routing import Algorithm, NotificationMessage
from octopis.core.wire.client import AnswerItem, SubscribeRequest, decode_to_client, encode_request
from octopis.core.wire.control import Notice
from octopis.core.wire.published import decode_published, encode_published
from octopis.overlay.deployment import running
from support.live import (
    LIMITS,
    client_of,
    line,
    overlay,
    raw_client,
    ready,
    run_live,
    tables_hold,
    until,
)
from support.processes import free_ports

FIRST, LAST = line(2).brokers


def test_broker_without_neighbours_is_ready_at_once():
    async def work() -> None:
        async with running(overlay(line(1))) as live:
            assert live[FIRST].ready.is_set()

    run_live(work())


def test_requests_wait_for_neighbours_but_not_for_ever(caplog):
    async def work() -> None:
        limits = replace(LIMITS, sync_s=0.4)
        places = {LAST: Address(port=free_ports(1)[0])}
        async with running(overlay(line(2), limits=limits, addresses=places), [FIRST]) as live:
            async with client_of(live[FIRST]) as client:
                publishing = asyncio.create_task(client.publish({"x": 1}))
                await until(lambda: live[FIRST].clients[client.id].publications)
                assert not live[FIRST].ready.is_set()
                assert not live[FIRST].status()["ready"]
                await publishing
                assert live[FIRST].ready.is_set()
                assert live[FIRST].status()["ready"]

    run_live(work())
    assert "B(a, 0) goes on without having heard of B(b, 0)" in caplog.text


def test_windows_of_the_link_status_table_follow_the_clock():
    async def work() -> None:
        async with ready(overlay(line(2), window_ms=20)) as live:
            status = live[FIRST].core.link_status[LAST]
            status.entered(time.monotonic_ns(), 3)
            q_in = lambda: live[FIRST].status()["links"]["b,0"]["q_in"]  # noqa: E731
            await until(lambda: q_in() >= 3)
            await until(lambda: q_in() == 0)
            status.dropped(time.monotonic_ns(), 3)

    run_live(work())


@pytest.mark.parametrize(
    ("algorithm", "threshold", "batch"),
    [
        (Algorithm.SNR, 10, 256),
        (Algorithm.DNR, 10, 10),
        (Algorithm.DNR, 0.5, 1),
        (Algorithm.DNR, 1e4, 256),
        (Algorithm.DNR, float("inf"), 256),
    ],
)
def test_under_dnr_a_batch_alone_does_not_look_like_congestion(
    algorithm: Algorithm, threshold: float, batch: int
):
    async def work() -> None:
        one = overlay(line(1, 2), algorithm, congestion_threshold=threshold)
        assert LiveBroker(FIRST, one).intake._batch_max == batch

    run_live(work())


def test_notice_holds_publications_back_and_changes_go_on():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            assert live[FIRST].intake.may_publish
            live[FIRST].backpressure.heard(LAST, Notice(LAST, "one", 1, holds=True))
            assert not live[FIRST].intake.may_publish
            assert live[FIRST].intake.may_change

    run_live(work())


def test_one_number_and_one_subscription_belong_together():
    async def work() -> None:
        async with ready(overlay(line(1))) as live, raw_client(live[FIRST]) as peer:

            async def subscribe(request: int, number: int) -> AnswerItem:
                wish = SubscribeRequest(request, number, "raw/1", "x > 1", "sql", 0)
                await peer.send(encode_request(wish))
                (frame,) = await peer.next_frames()
                (answer,) = decode_to_client(frame)
                return answer

            assert (await subscribe(1, 5)).refusal is None
            assert (await subscribe(2, 5)).refusal is None  # the same again changes nothing
            refusal = (await subscribe(3, 6)).refusal
            assert "has another number already" in refusal.message
            assert refusal.error == "InvalidSubscription"

    run_live(work())


def test_client_that_goes_away_ends_its_subscriptions_everywhere():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            async with raw_client(live[LAST]) as peer:
                wish = SubscribeRequest(1, 1, "raw/1", "x > 1", "sql", 0)
                await peer.send(encode_request(wish))
                await tables_hold(live, 1)
            await tables_hold(live, 0)

    run_live(work())


def test_stopped_broker_says_goodbye_to_everybody(caplog):
    async def work() -> None:
        async with running(overlay(line(2))) as live:
            await live[LAST].ready.wait()
            client = client_of(live[LAST], reconnect_s=0.1)
            await client.open()
            await live[LAST].stop()
            await until(lambda: not live[FIRST].links[LAST].is_up)
            await until(lambda: "lost its connection: B(b, 0) stops" in caplog.text)
            await client.close()

    with caplog.at_level(logging.INFO):
        run_live(work())
    assert "B(a, 0): the link to B(b, 0) is down: B(b, 0) stops" in caplog.text
    assert not [each for each in caplog.records if "link" in each.message and each.levelno > 20]


def test_notifications_with_pending_clusters_are_routed_in_small_batches():
    async def work() -> None:
        scot = line(2, 2)
        async with ready(overlay(scot, Algorithm.DNR)) as live:
            broker, neighbour = live[scot.brokers[0]], scot.brokers[2]
            link = broker.links[neighbour]
            sizes: list[int] = []
            route = broker.core.messages_arrived
            broker.core.messages_arrived = lambda link, part, now_ns: (
                sizes.append(len(part)),
                route(link, part, now_ns),
            )[1]
            (one,) = decode_published(b"\x91" + encode_published({"x": 1}, b"", "me", 1, 1))
            link.messages_arrived([NotificationMessage(one, ClusterBitVector(2))] * 25)
            link.messages_arrived([NotificationMessage(one)] * 25)
            assert sizes == [10, 10, 5, 25]

    run_live(work())


def test_broker_that_was_held_up_does_not_take_its_neighbours_for_silent():
    async def work() -> None:
        limits = replace(LIMITS, keepalive_s=0.2, silence_s=1.0)
        async with ready(overlay(line(2), limits=limits)) as live:
            time.sleep(1.5)  # as where a machine sleeps
            for _ in range(20):
                await asyncio.sleep(0.05)
            assert live[FIRST].links[LAST].reconnects == 0
            assert live[FIRST].links[LAST].is_up

    run_live(work())


def test_brokers_that_stop_together_still_pass_on_what_is_under_way():
    async def work() -> None:
        shapes = {(FIRST, LAST): Shape(latency_ms=30)}
        async with ready(overlay(line(2), shapes=shapes)) as live:
            async with (
                client_of(live[FIRST], reconnect_s=0.1) as writer,
                client_of(live[LAST], reconnect_s=0.1) as reader,
                reader.subscribe("x > 0") as notifications,
            ):
                await tables_hold(live, 1)
                await writer.publish({"x": 1})
                await asyncio.gather(live[FIRST].stop(), live[LAST].stop())
                assert (await anext(notifications)).attributes == {"x": 1}

    run_live(work())
