from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from octopis.broker.queue_logs import LinkLog
from octopis.broker.settings import ClientPolicy, ClientQueues, LinkPolicy, LinkQueues
from octopis.broker.tracing import Row, TraceOptions
from octopis.core.filters import parse_filter
from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing import Algorithm, Message, NotificationMessage, Reason
from octopis.core.routing.messages import TableSnapshot, Unsubscribe
from octopis.core.wire.published import Published
from octopis.overlay.deployment import running
from octopis.trace import Level, read_summary
from octopis.trace.schemas import IMS, LINKS
from support.live import client_of, line, overlay, raw_client, ready, run_live, tables_hold, until


def test_broker_without_a_trace_tells_nobody():
    async def work() -> None:
        async with ready(overlay(line(1))) as live:
            (broker,) = live.values()
            async with client_of(broker) as client, client.subscribe("x > 0") as notifications:
                await client.publish({"x": 1})
                assert (await anext(notifications)).attributes == {"x": 1}
                assert broker.clients[client.id].deliveries._log is None

    run_live(work())


FIRST, LAST = line(2).brokers
TINY = {"capacity": 10, "high_water": 5}


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
    assert delivery["delivered_ns"] - delivery["delay_ns"] == 12
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


@pytest.mark.parametrize("intended_ns", [2**63 - 1, -(2**63)])
def test_times_that_no_column_holds_do_not_end_the_trace(tmp_path: Path, intended_ns: int):
    async def work() -> None:
        async with running(overlay(line(1)), trace=TraceOptions(tmp_path, Level.FULL)) as live:
            (broker,) = live.values()
            async with client_of(broker) as client, client.subscribe("x >= 0") as notifications:
                await client.publish({"x": 1}, intended_ns=intended_ns)
                await client.publish({"x": 2})
                for _ in range(2):
                    await anext(notifications)

    run_live(work())
    assert len(rows(tmp_path / "a,0", "publications")) == 2
    assert len(rows(tmp_path / "a,0", "deliveries")) == 2
    assert read_summary(tmp_path / "a,0").state == "complete"


def test_what_a_full_queue_drops_is_written_down(tmp_path: Path):
    async def work() -> None:
        configuration = overlay(
            line(2), queues=LinkQueues(**TINY, policy=LinkPolicy.DROP_OLDEST), window_ms=10
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
        queues = ClientQueues(**TINY, policy=ClientPolicy.DROP_OLDEST)
        configuration = overlay(line(1), client_queues=queues)
        async with running(configuration, trace=TraceOptions(tmp_path)) as live:
            (broker,) = live.values()
            async with client_of(broker) as writer, raw_client(broker):
                session = broker.clients["raw"]
                effects = broker.core.client_subscribes("raw", "s", parse_filter("x >= 0"))
                session.numbers["s"] = 1
                broker.effects.carry_out(effects)
                await writer.publish_many({"x": number} for number in range(500))
                counted.append((session.deliveries.count, session.dropped))

    counted: list[tuple[int, int]] = []
    run_live(work())
    ((delivered, dropped),) = counted
    sequences = [each["sequence"] for each in rows(tmp_path / "a,0", "deliveries")]
    assert sequences == sorted(sequences)
    assert len(sequences) == delivered > 0 < dropped
    assert read_summary(tmp_path / "a,0").deliveries_lost == 500 - delivered


A, B = BrokerId("a", 0), BrokerId("b", 0)
SYNC = TableSnapshot(())


def log(policy: LinkPolicy = LinkPolicy.DROP_NEWEST) -> tuple[LinkLog, list[Row]]:
    rows: list[Row] = []
    made = LinkLog(
        A, B, kind="aCOL", clusters=3, algorithm=Algorithm.DNR, policy=policy, write=rows.extend
    )
    return made, rows


def routed(sequence: int, cbv_p: int = 0) -> Message:
    return NotificationMessage(Published({}, b"", "p", sequence), ClusterBitVector(cbv_p))


def named(row: Row) -> dict[str, object]:
    return dict(zip(IMS.names, row, strict=True))


def test_row_says_what_the_message_was_and_when_it_came_and_left():
    made, rows = log()
    made.enqueued([SYNC], [Reason.SYNC], 5)
    made.enqueued([routed(7, 0b110), Unsubscribe("s")], [Reason.CASE_I, Reason.SUBSCRIPTION], 10)
    made.left(3, 40)
    sync, notification, ending = map(named, rows)
    assert (sync["message"], sync["publisher"], sync["queue_length"]) == ("sync", None, 0)
    assert notification == {
        "source": "a,0",
        "target": "b,0",
        "link_kind": "aCOL",
        "message": "notification",
        "publisher": "p",
        "sequence": 7,
        "subscription": None,
        "enqueued_ns": 10,
        "left_ns": 40,
        "queue_length": 1,
        "cbv_p": "110",
        "bids": None,
        "reason": "I",
        "hops": None,
        "fate": "left",
    }
    assert (ending["message"], ending["subscription"]) == ("subscription", "s")


def test_drops_are_from_the_end_that_the_policy_says_and_never_of_tables():
    for policy, dropped, kept in (
        (LinkPolicy.DROP_NEWEST, [3, 2], [None, 1]),
        (LinkPolicy.DROP_OLDEST, [1, 2], [None, 3]),
    ):
        made, rows = log(policy)
        made.enqueued([routed(1)], [Reason.MATCH], 10)
        made.change(0, SYNC, Reason.SYNC, 0, 10)
        made.enqueued([routed(2), routed(3)], [Reason.MATCH] * 2, 10)
        made.lost(2, 20)
        assert [named(row)["sequence"] for row in rows] == dropped
        assert {named(row)["fate"] for row in rows} == {"dropped"}
        rows.clear()
        made.changes_left(1, 30)
        made.left(1, 30)
        assert [named(row)["sequence"] for row in rows] == kept
        assert (made.dropped, made.first_dropped_ns) == (2, 20)


def test_link_that_goes_down_cuts_what_waits():
    made, rows = log()
    made.enqueued([routed(1), routed(2)], [Reason.MATCH] * 2, 10)
    made.left(1, 15)
    made.went_down(20)
    assert [named(row)["fate"] for row in rows] == ["left", "cut"]
    assert dict(zip(LINKS.names, made.summed(), strict=True)) == {
        "source": "a,0",
        "target": "b,0",
        "link_kind": "aCOL",
        "subscription_ims": 0,
        "notification_ims": 2,
        "queue_length_max": 2,
        "waited_ns": 2 * 5 + 5,
        "dropped": 0,
        "cut": 1,
        "high_rate_ims": None,
    }


def test_sums_are_kept_where_no_rows_are_wanted():
    made = LinkLog(
        A,
        B,
        kind="aCOL",
        clusters=3,
        algorithm=Algorithm.SNR,
        policy=LinkPolicy.DROP_NEWEST,
        write=None,
    )
    made.enqueued([routed(1)], [Reason.MATCH], 10)
    made.left(1, 30)
    assert (made.waited_ns, made.length_max, made.ims["notification"]) == (20, 1, 1)
