import json

from octopis.core.routing import Algorithm
from support.live import client_of, line, overlay, ready, run_live, tables_hold, until


def test_status_tells_everything_and_is_json():
    async def work() -> None:
        async with ready(overlay(line(2, 2), Algorithm.DNR)) as live:
            first, *_, last = live.values()
            async with (
                client_of(first, client_id="writer") as writer,
                client_of(last, client_id="reader") as reader,
                reader.subscribe("x > 0", "x > 5") as notifications,
            ):
                await tables_hold(live, 2)
                await writer.publish({"x": 9})
                await anext(notifications)
                status = await reader.status()
                host = await writer.status()
                assert json.loads(json.dumps(status)) == status
                await until(lambda: first.status()["counters"]["notification_ims"] == 1)
        assert (status["broker"], status["algorithm"], status["ready"]) == ("b,1", "dnr", True)
        assert status["subscriptions"] == 2
        assert status["counters"]["deliveries"] == 2
        assert status["counters"]["subscription_ims"] > 0
        assert status["clients"]["reader"]["subscriptions"] == 2
        assert status["clients"]["reader"]["delivered"] == 1
        assert host["published"] == 1
        assert host["links"]["b,0"]["kind"] == "aCOL"
        link = host["links"]["a,1"]
        assert link["kind"] == "iCOL"
        assert link["up"]
        assert {
            "queue_length",
            "queue_bytes",
            "q_in",
            "q_out",
            "congestion_element",
            "overloaded",
            "sent",
            "around_overload",
            "around_fault",
            "backpressure",
            "dropped",
            "lost_when_cut",
            "reconnects",
        } <= link.keys()
        assert (host["cases"], host["backpressure"]) == ({}, [])
        assert host["drops"] == {"links": 0, "links_cut": 0, "clients": 0, "clients_left": 0}

    run_live(work())
