from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from octopis.core.routing import Algorithm
from octopis.errors import OperationFailed
from octopis.scenario.document import QueueOptions, SlowLink
from octopis.simulator.run import run
from octopis.trace import Level, RunSummary, read_summary
from support.simulations import (
    MS,
    Publishes,
    Setup,
    Subscribes,
    made_deliveries,
    plain,
    ran,
    rows,
    simulated,
    written,
)

SETUP = Setup(
    subscribers=(Subscribes("c,0"), Subscribes("c,1", "x > 1"), Subscribes("a,2", "x = 9")),
    publications=(Publishes("a,0", x=1), Publishes("b,0", 500, x=2), Publishes("a,0", 500, x=3)),
)


def test_summary_counts_what_the_tables_hold():
    with ran(SETUP) as (summary, trace):
        assert summary.deliveries == len(rows(trace, "deliveries")) == 5
        assert summary.notifications == len(rows(trace, "publications")) == 3
        assert summary.subscriptions == len(rows(trace, "subscriptions")) == 3
        ims = Counter(row["message"] for row in rows(trace, "ims"))
        assert ims == {
            "notification": summary.notification_ims,
            "subscription": summary.subscription_ims,
        }
        links = rows(trace, "links")
        assert sum(row["notification_ims"] for row in links) == summary.notification_ims
        assert sum(row["subscription_ims"] for row in links) == summary.subscription_ims


def test_publication_row_tells_of_its_copies_and_deliveries():
    with ran(SETUP) as (summary, trace):
        row = next(each for each in rows(trace, "publications") if each["broker"] == "b,0")
        assert (row["publisher"], row["sequence"]) == ("b,0", 0)
        assert (row["ims"], row["deliveries"]) == (3, 2)  # b,0>c,0 and b,0>b,1>c,1
        assert row["intended_ns"] == summary.begin_ns + 500
        assert row["accepted_ns"] == row["intended_ns"] + 10_000
        delivered = [each for each in rows(trace, "deliveries") if each["publisher"] == "b,0"]
        assert row["completed_ns"] == max(each["delivered_ns"] for each in delivered)


def test_delivery_row_tells_who_got_what_where_and_how():
    with ran(SETUP) as (_, trace):
        row = rows(trace, "deliveries")[0]
        assert {name: row[name] for name in ("publisher", "sequence", "subscription")} == {
            "publisher": "b,0",
            "sequence": 0,
            "subscription": "s0",
        }
        assert (row["broker"], row["hops"]) == ("c,0", 1)


def test_deliveries_of_a_batch_are_in_the_order_of_time():
    with ran(SETUP, Level.DELIVERIES) as (_, trace):
        times = [row["delivered_ns"] for row in rows(trace, "deliveries")]
        assert times == sorted(times)


def test_link_row_tells_of_waiting_and_of_the_longest_queue():
    setup = replace(
        SETUP, publications=(Publishes("a,0", x=1),) * 4, costs=plain(send_overhead_us=50)
    )
    with ran(setup) as (_, trace):
        row = next(
            each
            for each in rows(trace, "links")
            if (each["source"], each["target"]) == ("a,0", "b,0")
        )
        # Served every 10 us, sent every 50 us: the copies wait 0, 40, 80 and 120 us.
        assert row["notification_ims"] == 4
        assert row["waited_ns"] == 240_000
        assert row["queue_length_max"] == 3
        assert (row["dropped"], row["cut"], row["link_kind"]) == (0, 0, "aCOL")


def test_identifications_are_counted_under_bid_and_pending_clusters_shown_under_dnr():
    with ran(replace(SETUP, algorithm=Algorithm.BID)) as (_, trace):
        copies = [row for row in rows(trace, "ims") if row["publisher"]]
        assert {row["cbv_p"] for row in copies} == {None}
        assert all(row["bids"] >= 1 for row in copies)
    slow = SlowLink("a,0", "a,1", 1000, 0, 1000)
    setup = Setup(
        algorithm=Algorithm.DNR,
        subscribers=(Subscribes("a,1"), Subscribes("a,2")),
        publications=(Publishes("a,0"),) * 9,
        congestion_threshold=1,
        faults=(slow,),
    )
    with ran(setup) as (_, trace):
        copies = [row for row in rows(trace, "ims") if row["publisher"]]
        assert {row["bids"] for row in copies} == {None}
        assert {row["cbv_p"] for row in copies} == {None, "010"}


@pytest.mark.parametrize("real_brokers", [False, True])
@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest"])
def test_lost_deliveries_are_counted(policy, algorithm: Algorithm, real_brokers: bool):
    setup = Setup(
        subscribers=(Subscribes("c,0"), Subscribes("c,0"), Subscribes("a,0")),
        publications=(Publishes("a,0"),) * 10,
        costs=plain(send_overhead_us=200),
        queues=QueueOptions(3, policy),
        algorithm=algorithm,
    )
    with ran(setup, real_brokers=real_brokers) as (summary, trace):
        (bound,) = summary.queue_bounds
        assert bound.dropped > 0
        assert summary.deliveries_lost == 2 * bound.dropped
        assert summary.deliveries == 30 - 2 * bound.dropped == len(made_deliveries(trace))
        assert summary.notifications == 10


def test_progress_is_told_of_subscriptions_and_of_batches(tmp_path: Path):
    setup = Setup(
        subscribers=tuple(Subscribes("a,0", "x = 9", number * MS) for number in range(1001)),
        publications=tuple(Publishes("a,0", number * 100_000) for number in range(1500)),
    )
    told: list[tuple[str, int, int]] = []
    times: list[int] = []

    def progress(phase: str, done: int, total: int, now: int) -> None:
        told.append((phase, done, total))
        times.append(now)

    run(written(setup, tmp_path / "scenario"), tmp_path / "trace", progress=progress)
    assert told == [
        ("subscriptions", 500, 1001),
        ("subscriptions", 1000, 1001),
        ("notifications", 1024, 1500),
        ("notifications", 1500, 1500),
    ]
    assert times == sorted(times)


def test_batch_is_forgotten_when_its_last_notification_has_completed():
    with simulated(SETUP, Level.DELIVERIES) as (simulation, _):
        simulation.run()
        assert simulation.ledger._open == {}


def stopped(setup: Setup, folder: Path, level: Level) -> RunSummary:
    with pytest.raises(OperationFailed, match="stop"):
        run(written(setup, folder / "scenario"), folder / "trace", level=level)
    return read_summary(folder / "trace")


def test_run_that_is_broken_off_writes_what_it_has_done(tmp_path: Path):
    publications = tuple(Publishes("b,0", number * MS) for number in range(5))
    setup = Setup(
        subscribers=(Subscribes("c,0"), Subscribes("b,0")),
        publications=publications + (Publishes("a,0", 5 * MS),) * 9,
        queues=QueueOptions(3, "stop"),
        costs=plain(send_overhead_us=200),
    )
    summary = stopped(setup, tmp_path, Level.DELIVERIES)
    trace = tmp_path / "trace"
    assert summary.state == "partial"
    assert summary.deliveries == len(rows(trace, "deliveries")) >= 10
    completed = rows(trace, "publications")
    assert [(row["publisher"], row["sequence"]) for row in completed] == [
        ("b,0", number) for number in range(5)
    ]
    assert len(completed) == summary.notifications
    assert len(rows(trace, "links")) == 30
