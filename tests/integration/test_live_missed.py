"""What subscribers are told of notifications that can no longer be brought to them."""

import asyncio

from octopis.client.streams import Gap
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.routing import Algorithm
from octopis.overlay.deployment import running
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until

QUICK = DeliveryOptions(give_up_s=0.5, window=50)


def test_host_that_cannot_be_reached_is_given_up_and_told_when_it_is_back():
    async def work() -> None:
        scot = line(3)
        first, middle, last = scot.brokers
        gaps: list[Gap] = []
        configuration = overlay(scot, Algorithm.TNR, delivery=QUICK)
        async with (
            ready(configuration) as live,
            client_of(live[last]) as reader,
            client_of(live[middle]) as near,
            client_of(live[first]) as writer,
            reader.subscribe("far >= 0", on_gap=gaps.append) as notifications,
            near.subscribe("near >= 0") as near_ones,
        ):
            await tables_hold(live, 2)
            await writer.publish({"far": 0})
            assert (await anext(notifications)).attributes == {"far": 0}
            sender = live[first].posting.channels.sender
            await until(lambda: not sender.kept)  # what is not acknowledged would count, too
            live[middle].links[last].cut("cut by the test")
            live[middle].links[last].up = lambda connection: connection.abort("still cut")
            live[last].links[middle].up = lambda connection: connection.abort("still cut")
            # A window of them is taken, and then publishers wait, but not for longer than is set.
            await asyncio.wait_for(writer.publish_many([{"far": 1}] * 400), 10)
            await writer.publish({"near": 1})
            assert (await anext(near_ones)).attributes == {"near": 1}
            await until(lambda: live[first].status()["delivery"]["gone"] == [last.short])
            assert live[first].status()["delivery"]["given_up"] == 400
            await until(lambda: not sender.kept)
            del live[middle].links[last].up, live[last].links[middle].up
            await until(lambda: live[last].links[middle].is_up, 10)
            await until(lambda: not sender.gone, 10)
            await writer.publish({"far": 2})
            assert (await anext(notifications)).attributes == {"far": 2}
            assert [(gap.host, gap.dropped) for gap in gaps] == [(first, 400)]
            assert "could not bring 400 notifications" in gaps[0].reason

    run_live(work(), limit_s=60)


def test_publishers_host_that_starts_anew_is_told_as_a_gap():
    async def work() -> None:
        scot = line(2)
        first, last = scot.brokers
        gaps: list[Gap] = []
        configuration = overlay(scot, Algorithm.TNR, delivery=QUICK)
        async with ready(configuration) as live:
            addresses = {broker: each.address for broker, each in live.items()}
            async with (
                client_of(live[last]) as reader,
                reader.subscribe("x >= 0", on_gap=gaps.append) as notifications,
            ):
                await tables_hold(live, 1)
                async with client_of(live[first]) as writer:
                    await writer.publish({"x": 1})
                    assert (await anext(notifications)).attributes == {"x": 1}
                await live[first].stop()
                again = configuration.at(addresses)
                async with running(again, [first]) as anew:
                    await anew[first].ready.wait()
                    await until(lambda: bool(len(anew[first].core.table)), 10)
                    async with client_of(anew[first]) as writer:
                        await writer.publish({"x": 2})
                        assert (await anext(notifications)).attributes == {"x": 2}
                    async with client_of(anew[first]) as writer:
                        await writer.publish({"x": 3})
                        assert (await anext(notifications)).attributes == {"x": 3}
                assert [(gap.host, gap.dropped) for gap in gaps] == [(first, None)]

    run_live(work(), limit_s=60)
