"""Hosts that are silent for a while: who has channels to them waits, or gives them up."""

from dataclasses import replace

import pytest

from octopis.core.delivery.options import DeliveryOptions, Level
from octopis.core.delivery.posts import Open, Post
from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from octopis.scenario.document import CutLink
from octopis.simulator.channelled_brokers import StationChannels
from octopis.trace import Level as Written
from support.overlays import PAIR
from support.simulations import (
    MS,
    Publishes,
    Setup,
    Subscribes,
    made_deliveries,
    out_of_order,
    plain,
    ran,
    rows,
)

SILENT = Setup(
    scot=PAIR,
    algorithm=Algorithm.TNR,
    subscribers=(Subscribes("b,0"), Subscribes("a,0")),
    publications=tuple(Publishes("a,0", number * 20 * MS) for number in range(150)),
    faults=(CutLink("a,0", "b,0", 500, 1500),),
    delivery=DeliveryOptions(Level.MEMORY, give_up_s=0.5),
)


@pytest.mark.parametrize("level", [Written.FULL, Written.DELIVERIES])
def test_host_that_is_given_up_loses_what_was_for_it_and_gets_the_rest_when_it_is_back(
    level: Written,
):
    with ran(SILENT, level) as (summary, trace):
        got = {number for _, number, name in made_deliveries(trace) if name == "s0"}
        lost = sorted(set(range(150)) - got)
        assert 40 <= len(lost) <= 110
        assert lost == list(range(lost[0], lost[-1] + 1))
        assert lost[0] >= 24  # all before the cut has come
        assert summary.deliveries_lost == len(lost) == summary.given_up
        assert sum(name == "s1" for _, _, name in made_deliveries(trace)) == 150
        assert out_of_order(trace) == 0
        assert (summary.notifications, summary.state) == (150, "complete")


def test_nothing_is_lost_while_a_host_is_not_given_up():
    with ran(replace(SILENT, delivery=DeliveryOptions())) as (summary, trace):
        assert (summary.deliveries, summary.deliveries_lost, summary.given_up) == (300, 0, 0)
        assert out_of_order(trace) == 0


def test_nobody_looks_any_more_when_all_has_come_or_was_given_up(monkeypatch: pytest.MonkeyPatch):
    looked_ns: list[int] = []

    def look(self: StationChannels, now_ns: int) -> None:
        looked_ns.append(now_ns)
        original(self, now_ns)

    original = StationChannels.look
    monkeypatch.setattr(StationChannels, "look", look)
    # The link comes back long after the last publication, at 3 s: a host that was given up is
    # asked for ever whether it is back, so a run would end only then.
    faults = (CutLink("a,0", "b,0", 500, 60_000),)
    with ran(replace(SILENT, faults=faults)) as (summary, _):
        assert summary.deliveries_lost == summary.given_up > 100
        assert 2900 * MS < max(looked_ns) - summary.begin_ns < 5000 * MS


LINE = SCOT(AcyclicFactor.from_edges([("a", "b"), ("b", "c")]), ConnectivityFactor.complete(1))
HELD = Setup(
    scot=LINE,
    algorithm=Algorithm.TNR,
    subscribers=(Subscribes("c,0"),),
    # The second is lost behind b,0; the third waits for it at c,0, which cannot say so any more.
    publications=tuple(Publishes("a,0", ms * MS) for ms in (0, 100, 110)),
    costs=plain(latency_us=1000),
    faults=(CutLink("b,0", "c,0", 101.5, 102), CutLink("a,0", "b,0", 113, 3000)),
    delivery=DeliveryOptions(Level.MEMORY, give_up_s=0.5),
)


@pytest.mark.parametrize(
    ("later", "at_ms"),
    [
        ((), 1_110),  # when c,0 has not heard of a,0 for twice as long as it takes to be given up
        ((Publishes("a,0", 5000 * MS),), 3_000),  # or when that is back
    ],
)
def test_what_was_given_up_and_is_delivered_all_the_same_is_not_counted_as_lost(
    later: tuple[Publishes, ...], at_ms: int
):
    give_up_s = 2.0 if later else 0.5
    setup = replace(
        HELD,
        publications=(*HELD.publications, *later),
        delivery=DeliveryOptions(Level.MEMORY, give_up_s=give_up_s),
    )
    with ran(setup) as (summary, trace):
        delivered_ms = {
            row["sequence"]: (row["delivered_ns"] - summary.begin_ns) // MS
            for row in rows(trace, "deliveries")
        }
        assert delivered_ms.keys() == {0, 2, *({3} if later else ())}
        assert at_ms <= delivered_ms[2] < at_ms + 1500
        assert (summary.deliveries_lost, summary.given_up) == (1, 2)
        counted = {row["sequence"]: row["deliveries"] for row in rows(trace, "publications")}
        assert counted == {0: 1, 1: 0, 2: 1} | ({3: 1} if later else {})


def test_post_that_is_on_a_link_when_it_is_cut_is_lost(monkeypatch: pytest.MonkeyPatch):
    opened_ns: list[int] = []

    def arrived(self: StationChannels, post: Post, now_ns: int) -> None:
        if isinstance(post, Open):
            opened_ns.append(now_ns)
        original(self, post, now_ns)

    original = StationChannels.arrived
    monkeypatch.setattr(StationChannels, "arrived", arrived)
    setup = replace(
        SILENT,
        costs=plain(latency_us=50_000),
        publications=(Publishes("a,0"),),
        faults=(CutLink("a,0", "b,0", 10, 20),),
    )
    with ran(setup) as (summary, _):
        # What was sent at once would be there after 50 ms; it is said again 100 ms later.
        assert min(opened_ns) - summary.begin_ns >= 150 * MS
        assert summary.deliveries_lost == 0
