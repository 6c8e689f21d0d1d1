from octopis.overlay.status import ask_all, totals
from support.live import client_of, line, overlay, ready, run_live
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
