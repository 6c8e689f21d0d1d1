"""Channels as live brokers run them: who waits for whom, what goes past queues, who may connect."""

import asyncio

import pytest

from octopis.broker.handshake import level_of
from octopis.broker.settings import ClientPolicy, ClientQueues, LinkQueues, Shape
from octopis.core.delivery.channels import LOOK_NS, RESTING_NS
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.delivery.posts import Ack
from octopis.core.routing import Algorithm
from octopis.core.wire.posts import encode_posts
from octopis.errors import ProtocolError
from support.live import PLAIN, client_of, line, overlay, ready, run_live, tables_hold, until

FIRST, MIDDLE, LAST = line(3).brokers
SMALL_WINDOW = DeliveryOptions(window=20)


def test_publishers_wait_for_a_host_that_lacks_a_window_and_for_no_other():
    async def work() -> None:
        shapes = {(MIDDLE, LAST): Shape(bandwidth_bytes_per_s=2_000.0)}
        configuration = overlay(line(3), Algorithm.TNR, delivery=SMALL_WINDOW, shapes=shapes)
        async with (
            ready(configuration) as live,
            client_of(live[LAST]) as far,
            client_of(live[MIDDLE]) as near,
            client_of(live[FIRST]) as slow,
            client_of(live[FIRST]) as quick,
            far.subscribe("far >= 0") as far_ones,
            near.subscribe("near >= 0") as near_ones,
        ):
            await tables_hold(live, 2)
            waits = asyncio.create_task(slow.publish_many({"far": n} for n in range(300)))
            await until(lambda: live[FIRST].backpressure.held == {LAST})
            assert live[FIRST].status()["delivery"]["waits_for"] == [LAST.short]
            assert not live[MIDDLE].backpressure.holds  # nobody else has to know of it
            for number in range(100):
                await quick.publish({"near": number})
                assert (await anext(near_ones)).attributes == {"near": number}
            assert not waits.done()
            assert live[FIRST].posting.channels.sender.kept <= 20 + 256
            live[MIDDLE].links[LAST]._shaper._bandwidth = None
            assert await waits == 300
            assert [(await anext(far_ones)).attributes["far"] for _ in range(300)] == [*range(300)]

    run_live(work())


def test_what_a_full_queue_on_the_way_drops_is_sent_again_in_order():
    async def work() -> None:
        shapes = {(MIDDLE, LAST): Shape(bandwidth_bytes_per_s=50_000.0)}
        queues = LinkQueues(capacity=8, high_water=4)
        configuration = overlay(line(3), Algorithm.TNR, queues=queues, shapes=shapes)
        async with (
            ready(configuration) as live,
            client_of(live[LAST]) as reader,
            client_of(live[FIRST]) as writer,
            reader.subscribe("x >= 0") as notifications,
        ):
            await tables_hold(live, 1)
            assert await writer.publish_many({"x": number} for number in range(200)) == 200
            assert [(await anext(notifications)).attributes["x"] for _ in range(200)] == [
                *range(200)
            ]
            assert live[MIDDLE].links[LAST].dropped > 0
            assert live[FIRST].status()["delivery"]["resent"] > 0

    run_live(work())


def test_under_pause_only_what_matches_the_slow_subscriber_waits():
    async def work() -> None:
        bounds = ClientQueues(capacity=1_000, high_water=10, policy=ClientPolicy.PAUSE)
        async with (
            ready(overlay(line(3), Algorithm.TNR, client_queues=bounds)) as live,
            client_of(live[LAST], window=5) as stalled,
            client_of(live[LAST]) as healthy,
            client_of(live[FIRST]) as one,
            client_of(live[FIRST]) as other,
            stalled.subscribe("x >= 0") as unread,
            healthy.subscribe("y >= 0") as notifications,
        ):
            await tables_hold(live, 2)
            waits = asyncio.create_task(one.publish_many({"x": n} for n in range(600)))
            await until(lambda: live[FIRST].backpressure.paused)
            assert not live[FIRST].backpressure.held
            for number in range(100):  # to the same host, and to the same client's neighbour there
                await other.publish({"y": number})
                assert (await anext(notifications)).attributes == {"y": number}
            assert not waits.done()
            got = [(await anext(unread)).attributes["x"] for _ in range(600)]
            assert got == [*range(600)]
            assert await waits == 600

    run_live(work())


def test_hosts_that_were_given_up_are_asked_now_and_then_and_nothing_runs_hot():
    async def work() -> None:
        delivery = DeliveryOptions(give_up_s=0.2)
        async with (
            ready(overlay(line(2), Algorithm.TNR, delivery=delivery)) as live,
            client_of(live[MIDDLE]) as reader,
            client_of(live[FIRST]) as writer,
            reader.subscribe("x >= 0"),
        ):
            await tables_hold(live, 1)
            posting = live[FIRST].posting
            live[FIRST].links[MIDDLE].posts = lambda _: None
            live[FIRST].links[MIDDLE].pump = lambda: None
            await writer.publish({"x": 1})
            assert posting.channels.look_again_ns == LOOK_NS
            await until(lambda: posting.channels.sender.gone)
            assert posting.channels.look_again_ns == RESTING_NS
            assert not posting.channels.is_quiet
            del live[FIRST].links[MIDDLE].posts, live[FIRST].links[MIDDLE].pump
            await until(lambda: not posting.channels.sender.gone)
            await until(lambda: posting.channels.is_quiet and posting._timer is None)

    run_live(work())


@pytest.mark.parametrize(("to", "tried"), [(7, 0), (0, 1 << 9)])
def test_posts_that_cannot_be_cut_their_sender_off(to: int, tried: int):
    async def work() -> None:
        async with ready(overlay(line(2), Algorithm.TNR)) as live:
            link = live[FIRST].links[MIDDLE]
            with pytest.raises(ProtocolError, match="not there"):
                live[MIDDLE].take_posts([Ack(to, 0, 1, 1, 1, tried=tried)])
            link.connection.write(encode_posts([Ack(to, 0, 1, 1, 1, tried=tried)]))
            await until(lambda: live[MIDDLE].links[FIRST].reconnects > 0)

    run_live(work())


def test_brokers_of_different_levels_do_not_connect(caplog: pytest.LogCaptureFixture):
    async def work() -> None:
        with_channels = overlay(line(2), Algorithm.TNR)
        without = overlay(line(2), Algorithm.TNR, delivery=PLAIN)
        assert (level_of(with_channels), level_of(without)) == ("memory", "")
        assert level_of(overlay(line(2), Algorithm.SNR)) == ""
        async with ready(with_channels) as live:
            live[MIDDLE].overlay = without  # so it answers; who dials looks at that
            live[FIRST].links[MIDDLE].connection.abort("cut by the test")
            said = f"{MIDDLE} delivers at level '', {FIRST} at 'memory'"
            await until(lambda: said in caplog.text)
            assert not live[FIRST].links[MIDDLE].is_up

    run_live(work())
