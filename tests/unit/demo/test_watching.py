from typing import Any

import pytest

from octopis.demo import watching
from octopis.demo.watching import OverlayMoment, Rates, Watcher
from octopis.demo.workload import SlowedLink
from octopis.overlay.status import Statuses


def link_status(length: int = 0, *, overloaded: bool = False) -> dict[str, Any]:
    return {"queue_length": length, "overloaded": overloaded, "up": True}


def broker_status(ims: int, links: dict[str, dict[str, Any]], **facts: object) -> dict[str, Any]:
    return {
        "algorithm": "dnr",
        "ready": True,
        "clients": {},
        "published": 5,
        "counters": {"notification_ims": ims, "deliveries": 4},
        "cases": {"I": 2},
        "drops": {},
        "links": links,
        "backpressure": [],
        **facts,
    }


def statuses(ims: int = 10, **facts: object) -> Statuses:
    return {
        "b,2": broker_status(
            ims, {"b,0": link_status(30, overloaded=True), "b,1": link_status(40)}, **facts
        ),
        "b,0": broker_status(3, {"b,2": link_status()}),
    }


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now_ns = [0]
    monkeypatch.setattr(watching.time, "time_ns", lambda: now_ns[0])
    return now_ns


def test_snapshot_tells_queues_overload_cases_and_progress(link: SlowedLink):
    told: list[OverlayMoment] = []
    watcher = Watcher(link, told.append)
    watcher.see(statuses())
    (seen,) = watcher.snapshots
    assert told == [seen]
    assert (seen.slowed_queue, seen.longest_queue, seen.longest_link) == (30, 40, "b,2 → b,1")
    assert seen.overloaded == ["b,2 → b,0"]
    assert seen.brokers["b,2"].queued == 70
    assert seen.brokers["b,2"].overloaded
    assert not seen.brokers["b,0"].overloaded
    assert (seen.cases, seen.published, seen.deliveries) == ({"I": 4}, 10, 8)
    assert not seen.publishers_wait


def test_publishers_that_have_to_wait_are_noticed(link: SlowedLink):
    watcher = Watcher(link)
    watcher.see(statuses(backpressure=["b,2"]))
    assert watcher.snapshots[0].publishers_wait


def test_rate_is_over_about_the_last_second(link: SlowedLink, clock: list[int]):
    watcher = Watcher(link)
    rates = []
    for tenth, ims in enumerate([0, *([100] * 5), *([100] * 15), 150]):
        clock[0] = tenth * 100_000_000
        watcher.see(statuses(ims))
        rates.append(watcher.snapshots[-1].brokers["b,2"].ims_per_s)
    assert rates[0] == 0
    assert rates[1] == pytest.approx(1000)
    assert rates[5] == pytest.approx(200)
    assert rates[15] == 0
    assert rates[-1] == pytest.approx(50, rel=0.15)


def test_broker_that_comes_anew_or_counts_from_nothing_again_has_no_rate_below_nothing():
    rates = Rates()
    rates.per_s(0, {"b,0": broker_status(500, {})})
    found = rates.per_s(500_000_000, {"b,0": broker_status(3, {}), "b,2": broker_status(40, {})})
    assert found == {"b,0": 0.0, "b,2": 0.0}
