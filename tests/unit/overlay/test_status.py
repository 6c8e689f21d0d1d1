from octopis.core.routing import Algorithm
from octopis.overlay.status import ask_all, totals
from support.live import client_of, line, overlay, ready, run_live, until
from support.processes import free_ports


def test_every_broker_is_asked_and_the_asker_is_not_counted():
    async def work() -> None:
        async with ready(overlay(line(2, 2))) as live:
            addresses = {broker.short: str(each.address) for broker, each in live.items()}
            async with client_of(live[line(2, 2).brokers[0]]) as client:
                async with client.subscribe("x > 1"):
                    await client.publish({"x": 2})
                    found = await ask_all(addresses)
                    total = totals(found)
        assert list(found) == ["a,0", "a,1", "b,0", "b,1"]
        assert (total["brokers"], total["ready"], total["unreachable"]) == (4, 4, 0)
        assert (total["clients"], total["subscriptions"], total["published"]) == (1, 1, 1)
        assert total["counters"]["deliveries"] == 1
        assert (total["links"], total["links_up"], total["overloaded"]) == (8, 8, 0)

    run_live(work())


def test_broker_that_does_not_answer_is_an_error_of_its_own():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            (broker,) = live.values()
            addresses = {"a,0": str(broker.address), "b,0": f"127.0.0.1:{free_ports(1)[0]}"}
            found = await ask_all(addresses)
        assert found["a,0"]["ready"]
        assert "no broker can be reached" in found["b,0"]["error"]
        assert (totals(found)["unreachable"], totals(found)["ready"]) == (1, 1)

    run_live(work())


def test_dead_brokers_and_links_that_are_gone_around_are_told_as_neighbours_see_them():
    async def work() -> None:
        scot = line(2, 2)
        first, *_ = scot.brokers
        async with ready(overlay(scot, Algorithm.TNR)) as live:
            addresses = {broker.short: str(each.address) for broker, each in live.items()}
            assert (totals(await ask_all(addresses))["dead"]) == []
            for task in live[first]._tasks:
                task.cancel()  # it dials nobody
            for link in live[first].links.values():
                link.connection.abort("killed by the test")
            await until(lambda: not live[scot.broker("b,0")].links[first].is_up)
            await until(lambda: not live[scot.broker("a,1")].links[first].is_up)
            del addresses["a,0"]
            total = totals(await ask_all(addresses))
            assert total["dead"] == ["a,0"]
            assert total["gone_around"] == ["a,1 > a,0", "b,0 > a,0"]

    run_live(work())
