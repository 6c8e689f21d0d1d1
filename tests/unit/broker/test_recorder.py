from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from octopis.broker.settings import ClientPolicy, LinkPolicy, QueueBounds
from octopis.broker.tracing import TraceOptions
from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm
from octopis.overlay.deployment import running
from octopis.trace import Level, read_summary
from support.live import client_of, line, overlay, raw_client, run_live, tables_hold, until

FIRST, LAST = line(2).brokers
TINY = QueueBounds(capacity=10, high_water=5)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    return pq.read_table(folder / f"{table}.parquet").to_pylist()


def test_everything_that_one_broker_sees_is_written_down(tmp_path: Path):
    async def work() -> None:
        configuration = overlay(line(2), Algorithm.BID, window_ms=200)
        trace = TraceOptions(tmp_path, Level.FULL)
        async with running(configuration, trace=trace) as live:
            for broker in live.values():
                await broker.ready.wait()
            async with client_of(live[FIRST], client_id="writer") as writer:
                async with client_of(live[LAST], client_id="reader") as reader:
                    async with reader.subscribe("x >= 0", names=["mine"]) as notifications:
                        await tables_hold(live, 1)
                        await writer.publish({"x": 1}, intended_ns=12)
                        assert (await anext(notifications)).attributes == {"x": 1}
                        await until(lambda: live[FIRST].core.link_status[LAST].q_in)

    run_live(work())
    first, last = tmp_path / "a,0", tmp_path / "b,0"
    (publication,) = rows(first, "publications")
    assert (publication["publisher"], publication["sequence"]) == ("writer", 1)
    assert publication["intended_ns"] == 12 < publication["accepted_ns"]
    assert publication["completed_ns"] is None
    (delivery,) = rows(last, "deliveries")
    assert (delivery["subscription"], delivery["hops"]) == ("mine", None)
    assert delivery["delivered_ns"] >= publication["accepted_ns"]
    (subscription,) = rows(last, "subscriptions")
    assert (subscription["client"], subscription["broker"]) == ("reader", "b,0")
    assert [each["subscription"] for each in rows(first, "stored")] == ["mine"]
    notification = next(e for e in rows(first, "ims") if e["message"] == "notification")
    assert (notification["bids"], notification["reason"]) == (1, "match")
    assert any(each["q_in"] for each in rows(first, "queues"))
    summary = read_summary(first)
    assert (summary.source, summary.broker, summary.algorithm) == ("live", "a,0", "bid")
    assert (summary.notifications, summary.notification_ims, summary.state) == (1, 1, "complete")
    assert summary.begin_ns < summary.end_ns


def test_what_a_full_queue_drops_is_written_down(tmp_path: Path):
    async def work() -> None:
        configuration = overlay(
            line(2), queues=TINY, link_policy=LinkPolicy.DROP_OLDEST, window_ms=10
        )
        async with running(configuration, trace=TraceOptions(tmp_path, Level.FULL)) as live:
            for broker in live.values():
                await broker.ready.wait()
            async with client_of(live[FIRST]) as writer, client_of(live[LAST]) as reader:
                async with reader.subscribe("x >= 0"):
                    await tables_hold(live, 1)
                    await writer.publish_many({"x": number} for number in range(100))
                    await until(lambda: live[FIRST].links[LAST].dropped)

    run_live(work())
    fates = [e["fate"] for e in rows(tmp_path / "a,0", "ims") if e["message"] == "notification"]
    dropped = fates.count("dropped")
    assert dropped > 0
    assert len(fates) == 100
    (bound,) = read_summary(tmp_path / "a,0").queue_bounds
    assert (bound.dropped, bound.policy) == (dropped, "drop_oldest")


def test_deliveries_that_a_slow_client_missed_are_not_in_the_trace(tmp_path: Path):
    async def work() -> None:
        configuration = overlay(line(1), client_queues=TINY, client_policy=ClientPolicy.DROP_OLDEST)
        async with running(configuration, trace=TraceOptions(tmp_path)) as live:
            (broker,) = live.values()
            async with client_of(broker) as writer, raw_client(broker):
                session = broker.clients["raw"]
                effects = broker.core.client_subscribes("raw", "s", parse_filter("x >= 0"))
                session.numbers["s"] = 1
                broker._carry_out(effects)
                await writer.publish_many({"x": number} for number in range(500))
                counted.append((session.delivered, session.dropped))

    counted: list[tuple[int, int]] = []
    run_live(work())
    ((delivered, dropped),) = counted
    sequences = [each["sequence"] for each in rows(tmp_path / "a,0", "deliveries")]
    assert sequences == sorted(sequences)
    assert len(sequences) == delivered > 0 < dropped
    assert read_summary(tmp_path / "a,0").deliveries_lost == 500 - delivered
