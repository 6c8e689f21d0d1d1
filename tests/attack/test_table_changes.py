"""Clients that come and go, or ask for very much, and who notices of it: nobody else."""

import asyncio

from octopis.broker.settings import LinkQueues, Shape
from octopis.core.filters import parse_filter
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until

A, B = line(2).brokers


def test_clients_that_come_and_go_fill_no_queue_and_hold_no_publisher_back():
    async def work() -> None:
        slow = {(A, B): Shape(bandwidth_bytes_per_s=2_000)}
        queues = LinkQueues(capacity=1_000, high_water=50)
        async with (
            ready(overlay(line(2), shapes=slow, queues=queues)) as live,
            client_of(live[A]) as churner,
            client_of(live[A]) as publisher,
            publisher.subscribe("witness > 0") as notifications,
        ):

            async def churn() -> None:
                while True:
                    async with churner.subscribe(*(f"x = {n}" for n in range(20))):
                        pass

            churning = asyncio.create_task(churn())
            for number in range(1, 200):
                await publisher.publish({"witness": number})
                assert (await anext(notifications)).attributes == {"witness": number}
                assert len(live[A].links[B].changes) <= 50 + 20
                assert not live[A].backpressure.brokers
                await asyncio.sleep(0.005)
            churning.cancel()

    run_live(work())


def test_host_takes_no_more_changes_than_a_slow_link_far_away_can_follow():
    async def work() -> None:
        three = line(3)
        first, middle, last = three.brokers
        slow = {(middle, last): Shape(bandwidth_bytes_per_s=2_000)}
        queues = LinkQueues(capacity=1_000, high_water=50)
        async with (
            ready(overlay(three, shapes=slow, queues=queues)) as live,
            client_of(live[first], reconnect_s=0) as client,
        ):
            asking = asyncio.create_task(client.subscribe(*(f"x = {n}" for n in range(600))).open())
            await until(lambda: live[first].backpressure.change_brokers == [middle])
            longest = 0
            for _ in range(40):
                longest = max(longest, len(live[middle].links[last].changes))
                await client.publish({"y": 1})  # these do not wait
                await asyncio.sleep(0.01)
            assert 50 < longest < 300
            assert not asking.done()
            client._connection._transport.abort()
            await asyncio.gather(asking, return_exceptions=True)

    run_live(work())


def test_long_table_is_taken_in_while_others_are_served():
    async def work() -> None:
        async with ready(overlay(line(2))) as live:
            host = live[A].core
            for number in range(2_500):
                filter_ = parse_filter(f"a{number} = 1 AND b BETWEEN {number} AND 9 OR c = 'x'")
                live[A].effects.carry_out(host.client_subscribes("c", f"s{number}", filter_))
            host.table.tidy()  # as for whoever subscribes one after the other
            live[B].links[A].connection.abort("cut by the test")
            await until(lambda: not live[B].links[A].is_up)
            most = known = 0  # taken in between two turns of everybody else
            while known < 2_500:
                await asyncio.sleep(0)
                now = len(live[B].core.table)
                known, most = now, max(most, now - known)
            assert most < 500

    run_live(work())


def test_client_that_leaves_much_behind_stops_nobody_and_may_come_back_meanwhile():
    async def work() -> None:
        own = {"client_id": "me", "secret": "c" * 32}
        async with ready(overlay(line(2))) as live:
            first = client_of(live[A], **own, reconnect_s=0)
            await first.open()
            names = [f"me/{number}" for number in range(3_000)]
            await first.subscribe(*(f"x = {n}" for n in range(3_000)), names=names).open()
            await tables_hold(live, 3_000)
            await first.close()
            async with client_of(live[A], **own) as again, client_of(live[A]) as other:
                kept = again.subscribe("x = 1", "x = 2", names=names[1:3])
                async with kept as notifications, other.subscribe("y > 0") as others:
                    for number in range(1, 20):
                        await other.publish_many([{"y": number}, {"x": 2}, {"x": 5}])
                        assert (await anext(others)).attributes == {"y": number}
                        assert (await anext(notifications)).attributes == {"x": 2}
                    await tables_hold(live, 3)

    run_live(work())
