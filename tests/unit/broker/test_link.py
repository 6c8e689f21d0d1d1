import asyncio
import time

import pytest

from octopis.broker.settings import LinkQueues, Shape
from octopis.core.model import ClusterBitVector
from octopis.core.routing import Algorithm, NotificationMessage, Reason
from octopis.core.routing.messages import Refresh, Unsubscribe
from octopis.core.wire.control import Goodbye, Ping
from octopis.core.wire.published import decode_published, encode_published
from octopis.errors import ProtocolError
from support.live import (
    PLAIN,
    Brokers,
    client_of,
    line,
    overlay,
    ready,
    run_live,
    tables_hold,
    until,
)

FIRST, LAST = line(2).brokers
(ONE,) = decode_published(b"\x91" + encode_published({"x": 1}, bytes(100), "me", 1, 1))


def with_link(work, **options: object) -> None:
    """Run work(link from first to last, live brokers)."""

    async def whole() -> None:
        async with ready(overlay(line(2), **options)) as live:
            await work(live[FIRST].links[LAST], live)

    run_live(whole())


def test_messages_arrive_and_the_core_hears_that_they_left():
    async def work(link, live: Brokers) -> None:
        core = live[FIRST].core
        core.link_status[LAST].entered(time.monotonic_ns(), 3)
        link.enqueue([NotificationMessage(ONE)] * 3, [Reason.MATCH] * 3)
        assert core.link_status[LAST].queue_length == len(link.queue) == 3
        link.pump()
        assert core.link_status[LAST].queue_length == len(link.queue) == 0
        assert core.link_status[LAST].leaving >= 3

    with_link(work)


def test_slow_socket_leaves_the_rest_in_the_queue_where_it_is_seen():
    async def work(link, live: Brokers) -> None:
        live[LAST].links[FIRST].connection._transport.pause_reading()
        count = 40_000
        live[FIRST].core.link_status[LAST].entered(time.monotonic_ns(), count)
        link.enqueue([NotificationMessage(ONE)] * count, [Reason.MATCH] * count)
        link.pump()
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(link.queue) == live[FIRST].core.link_status[LAST].queue_length > count / 2
        live[LAST].links[FIRST].connection._transport.resume_reading()
        await until(lambda: not link.queue)

    with_link(work)


def test_latency_alone_delays_and_loses_nothing():
    async def work(link, live: Brokers) -> None:
        loop = asyncio.get_running_loop()
        arrived: list[float] = []
        other = live[LAST].links[FIRST]
        receive = other.messages_arrived
        other.messages_arrived = lambda messages: (arrived.append(loop.time()), receive(messages))
        start = loop.time()
        live[FIRST].core.link_status[LAST].entered(time.monotonic_ns(), 1)
        link.enqueue([NotificationMessage(ONE)], [Reason.MATCH])
        link.pump()
        assert not link.queue  # it is on its way
        await until(lambda: arrived)
        assert 0.09 < arrived[0] - start < 5

    with_link(work, shapes={(FIRST, LAST): Shape(latency_ms=100)})


def test_control_messages_pass_the_queue():
    async def work(link, live: Brokers) -> None:
        live[FIRST].core.link_status[LAST].entered(time.monotonic_ns(), 1_000)
        link.enqueue([NotificationMessage(ONE)] * 1_000, [Reason.MATCH] * 1_000)
        link.pump()
        heard = live[LAST].links[FIRST].connection._heard_at
        link.control(Ping())
        await until(lambda: live[LAST].links[FIRST].connection._heard_at > heard)
        assert link.queue

    with_link(work, shapes={(FIRST, LAST): Shape(1_000)})


def test_link_that_goes_down_throws_its_queue_away_and_counts(caplog):
    async def work(link, live: Brokers) -> None:
        live[FIRST].core.link_status[LAST].entered(time.monotonic_ns(), 500)
        link.enqueue([NotificationMessage(ONE)] * 500, [Reason.MATCH] * 500)
        assert live[FIRST].backpressure.outputs == {link}
        link.connection.abort("cut by the test")
        await until(lambda: not link.is_up)
        assert link.lost == 500
        assert live[FIRST].core.link_status[LAST].queue_length == 0
        assert not live[FIRST].backpressure.outputs
        await until(lambda: link.is_up)
        assert link.reconnects == 1

    bounds = LinkQueues(capacity=1_000, high_water=100)
    with_link(work, queues=bounds, shapes={(FIRST, LAST): Shape(1_000)})
    assert "the link to B(b, 0) is down: cut by the test, 500 notifications are lost" in caplog.text


def test_goodbye_makes_the_end_no_reason_for_a_warning(caplog):
    async def work(link, live: Brokers) -> None:
        link.control(Goodbye("going home"))
        link.connection.close("going home")
        await until(lambda: not live[LAST].links[FIRST].is_up)

    with_link(work)
    assert "B(b, 0): the link to B(a, 0) is down" not in caplog.text


def test_what_the_core_must_never_see_is_stopped_here():
    async def work(link, _: Brokers) -> None:
        for message in (
            Refresh(LAST, 1),
            NotificationMessage(ONE, ClusterBitVector(1)),
            NotificationMessage(ONE, ClusterBitVector(2)),
            NotificationMessage(ONE, targets=0b100),
        ):
            with pytest.raises(ProtocolError):
                link._checks.check([message])
        link._checks.check([Unsubscribe("s"), NotificationMessage(ONE, targets=0b11)])

    with_link(work, algorithm=Algorithm.SNR)


SQUARE = line(2, 2)


def test_what_waits_for_a_link_that_goes_down_goes_another_way(caplog):
    """Under target routing: notifications, and changes of subscriptions."""

    async def work() -> None:
        first, beside, last, _ = SQUARE.brokers
        async with (
            ready(overlay(SQUARE, Algorithm.TNR)) as live,
            client_of(live[last]) as reader,
            client_of(live[first]) as writer,
            reader.subscribe("x >= 0") as notifications,
        ):
            await tables_hold(live, 1)
            link = live[first].links[last]
            for task in live[first]._tasks:
                task.cancel()  # it does not dial again
            link.pump = lambda: None
            await writer.publish_many([{"x": number} for number in range(5)])
            async with writer.subscribe("y > 0"):
                assert (len(link.queue), len(link.changes)) == (5, 1)
                link.connection.abort("cut by the test")
                found = [(await anext(notifications)).attributes["x"] for _ in range(5)]
                assert sorted(found) == list(range(5))
                await tables_hold(live, 2)
            assert live[first].core.counters.rerouted == 5
            assert live[first].core.counters.unsent == link.lost == 0
            assert live[beside].core.counters.notification_ims == 5
            # What is published now goes around at once, together, and nobody is told of a loss.
            await writer.publish_many([{"x": number} for number in range(20)])
            found = [(await anext(notifications)).attributes["x"] for _ in range(20)]
            assert sorted(found) == list(range(20))
            assert writer.unsent == 0

    run_live(work())
    assert "5 notifications are routed anew" in caplog.text
    assert "cannot be reached" not in caplog.text


def test_target_that_no_link_leads_to_is_told_to_its_publisher(caplog):
    async def work() -> None:
        async with (
            ready(overlay(line(2), Algorithm.TNR, delivery=PLAIN)) as live,
            client_of(live[LAST]) as reader,
            client_of(live[FIRST]) as writer,
            reader.subscribe("x >= 0"),
        ):
            await tables_hold(live, 1)
            for task in live[FIRST]._tasks:
                task.cancel()
            live[FIRST].links[LAST].pump = lambda: None
            await writer.publish({"x": 0})
            live[FIRST].links[LAST].connection.abort("cut by the test")
            await until(lambda: not live[FIRST].links[LAST].is_up)
            await writer.publish_many([{"x": 1}, {"y": 1}, {"x": 2}])
            assert writer.unsent == 2

    run_live(work())
    assert "1 notifications are routed anew, 1 of their targets cannot be reached" in caplog.text


def test_batch_is_matched_at_once_and_passed_on_in_parts_that_leave_in_between(monkeypatch):
    async def work() -> None:
        first, _, last, _ = SQUARE.brokers
        async with (
            ready(overlay(SQUARE, Algorithm.TNR)) as live,
            client_of(live[last]) as reader,
            client_of(live[first]) as writer,
            reader.subscribe("x >= 0") as notifications,
        ):
            await tables_hold(live, 1)
            core, link = live[first].core, live[first].links[last]
            lengths: list[int] = []
            enqueue = link.enqueue

            def counted(messages, reasons) -> None:
                enqueue(messages, reasons)
                lengths.append(len(link.queue))

            monkeypatch.setattr(link, "enqueue", counted)
            matched = core.table.reached_and_local
            batches: list[int] = []
            monkeypatch.setattr(
                core.table,
                "reached_and_local",
                lambda batch: batches.append(len(batch)) or matched(batch),
            )
            await writer.publish_many([{"x": number} for number in range(250)])
            for _ in range(250):
                await anext(notifications)
            assert max(batches) > 80 >= max(lengths)
            assert core.counters.cases == {"target": 250}

    run_live(work())


def test_notifications_pass_changes_that_wait_for_their_time():
    async def work(link, live: Brokers) -> None:
        works: list = []
        live[LAST].pace = type("Later", (), {"add": lambda _, work: works.append(work)})()
        other, arrived = live[LAST].links[FIRST], []
        other.messages_arrived = arrived.extend
        live[FIRST].core.link_status[LAST].entered(time.monotonic_ns(), 3)
        changes = [Refresh(FIRST, number) for number in range(2)]
        link.enqueue([*changes, NotificationMessage(ONE)], [Reason.MATCH] * 3)
        link.pump()
        await until(lambda: arrived)
        assert [type(each) for each in arrived] == [NotificationMessage]
        assert set(works) == {other}
        assert other.step() is False  # both are in one frame
        assert arrived[1:] == changes
        assert other.step() is False  # nothing is left

    with_link(work, algorithm=Algorithm.BID)


def test_all_brokers_of_a_process_share_its_time():
    async def work(link, live: Brokers) -> None:
        assert link._broker.pace is live[LAST].pace

    with_link(work)
