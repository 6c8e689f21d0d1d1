"""Scenarios whose hosts have channels: all is delivered once and in order, whatever is lost.

Links are slow or cut and queues are full, as in test_faults.py; here nothing of it is lost.
"""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from octopis.core.delivery.options import DeliveryOptions, Level
from octopis.core.delivery.posts import Open, Post
from octopis.core.delivery.receiver import Receiver
from octopis.core.routing import Algorithm
from octopis.core.routing.messages import NotificationMessage
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from octopis.errors import InvalidConfiguration, LawViolated
from octopis.pipeline.results.check import LOST, TWICE, UNASKED, UNORDERED, check
from octopis.scenario.document import CutLink, DeadBroker, Policy, QueueOptions, SlowLink
from octopis.simulator.channelled_brokers import StationChannels
from octopis.simulator.run import run
from octopis.trace import Level as Written
from support.simulations import (
    MS,
    Publishes,
    Setup,
    Subscribes,
    digests,
    made_deliveries,
    message_ns,
    on_disk,
    plain,
    ran,
    random_cuts,
    random_setup,
    rows,
    wanted_deliveries,
)

RANDOMS = st.randoms(use_true_random=False)
MEMORY = DeliveryOptions(Level.MEMORY)
DROPPING: tuple[Policy, ...] = ("drop_newest", "drop_oldest")


def out_of_order(trace: Path) -> int:
    """Count deliveries that came after a later one of the same publisher, subscriber for each."""
    last: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    found = 0
    in_time = sorted(
        rows(trace, "deliveries"), key=lambda row: (row["delivered_ns"], row["sequence"])
    )
    for row in in_time:
        whose = row["publisher"], row["subscription"]
        found += row["sequence"] < last[whose]
        last[whose] = max(last[whose], row["sequence"])
    return found


def with_trouble(random: Random) -> Setup:
    """Return a scenario with slow links, cut links and full queues, or a few of these."""
    costs = plain(
        routing_us=random.choice((1, 10, 100)),
        matching_us=random.choice((0, 20)),
        send_overhead_us=random.choice((1, 50, 300)),
        latency_us=random.choice((0, 100, 3000)),
    )
    setup = random_setup(random, Algorithm.TNR, costs=costs, regions=(2, 5))
    patience_ns = 3000 * message_ns(costs)  # subscriptions must not be dropped
    subscribers = tuple(
        each._replace(at_ns=number * patience_ns)
        for number, each in enumerate(setup.subscribers[:20])
    )
    cuts = random_cuts(random, setup) if random.random() < 0.7 else ()
    options = DeliveryOptions(Level.MEMORY, window=random.choice((1, 3, 20, 10_000)))
    return replace(
        setup,
        subscribers=subscribers,
        delivery=options,
        faults=(*setup.faults, *cuts),
        queues=QueueOptions(random.choice((1, 2, 5, 1000)), random.choice(DROPPING)),
    )


@given(random=RANDOMS)
@settings(max_examples=100, deadline=None)
def test_deliveries_are_those_that_are_due_once_and_in_order(random: Random):
    with on_disk(with_trouble(random)) as (scenario, folder):
        trace = folder / "trace"
        level = random.choice((Written.FULL, Written.DELIVERIES))
        summary = run(scenario, trace, level=level)
        assert summary.state == "complete"
        assert made_deliveries(trace) == wanted_deliveries(scenario)
        assert out_of_order(trace) == 0
        assert (summary.deliveries_lost, summary.given_up) == (0, 0)
        assert summary.notifications == scenario.notification_count


@given(random=RANDOMS)
@settings(max_examples=20, deadline=None)
def test_runs_repeat_to_the_byte_and_do_the_same_whatever_is_written_down(random: Random):
    with on_disk(with_trouble(random)) as (scenario, folder):
        for name, level in (("one", Written.FULL), ("two", Written.FULL), ("less", None)):
            run(scenario, folder / name, level=level or Written.DELIVERIES)
        one, less = digests(folder / "one"), digests(folder / "less")
        assert one == digests(folder / "two")
        for table in ("deliveries", "publications", "subscriptions", "links"):
            assert one[f"{table}.parquet"] == less[f"{table}.parquet"]


def test_random_scenarios_have_all_the_trouble_that_they_are_to_have():
    dropped = cut = held_back = sent_again = duplicates = 0
    for seed in range(40):
        random = Random(seed)  # noqa: S311 - repeatable on purpose
        setup = with_trouble(random)
        with ran(replace(setup, delivery=DeliveryOptions(Level.NONE))) as (alone, trace):
            held_back += out_of_order(trace) > 0
            cut += alone.deliveries_lost > 0 and not alone.queue_bounds
            dropped += alone.deliveries_lost > 0 and bool(alone.queue_bounds)
        with ran(setup, Written.SUMMARY) as (summary, _):
            sent_again += summary.sent_again > 0
            duplicates += summary.duplicates > 0
    assert dropped >= 5
    assert cut >= 2
    assert held_back >= 2
    assert sent_again >= 10
    assert duplicates >= 3


# What is lost is sent again

CUT = Setup(
    algorithm=Algorithm.TNR,
    subscribers=(Subscribes("c,0"), Subscribes("c,0", "x = 2"), Subscribes("c,1")),
    publications=tuple(Publishes("a,0", number * MS // 5, number % 3) for number in range(300)),
    costs=plain(send_overhead_us=150, latency_us=700),
    faults=(CutLink("b,0", "c,0", 20, 35),),
)
FULL = Setup(
    algorithm=Algorithm.TNR,
    subscribers=(Subscribes("c,0"), Subscribes("a,0", at_ns=MS), Subscribes("a,1", at_ns=2 * MS)),
    publications=tuple(Publishes("a,0", number * 20_000) for number in range(60)),
    costs=plain(send_overhead_us=100),
)


def test_what_a_cut_link_loses_is_sent_again():
    with ran(CUT) as (alone, _), ran(replace(CUT, delivery=MEMORY)) as (summary, trace):
        assert alone.deliveries_lost > 0
        assert summary.deliveries == alone.deliveries + alone.deliveries_lost
        assert summary.sent_again >= 1
        assert sum(row["cut"] for row in rows(trace, "links")) >= 1
        # And quicker than by waiting in vain: who lacks a number says so.
        assert max(row["delay_ns"] for row in rows(trace, "deliveries")) < 200 * MS


@pytest.mark.parametrize("policy", DROPPING)
def test_what_a_full_queue_drops_is_sent_again(policy: Policy):
    setup = replace(FULL, queues=QueueOptions(5, policy))
    with ran(setup) as (alone, _), ran(replace(setup, delivery=MEMORY)) as (summary, trace):
        assert alone.deliveries_lost > 20
        assert (summary.deliveries, summary.deliveries_lost) == (180, 0)
        dropped = sum(row["dropped"] for row in rows(trace, "links"))
        assert summary.sent_again >= dropped / 2 > 10
        assert out_of_order(trace) == 0


def test_without_faults_nothing_is_sent_again_and_copies_go_the_same_ways():
    setup = replace(CUT, faults=())
    with ran(setup) as (alone, without), ran(replace(setup, delivery=MEMORY)) as (summary, trace):
        assert (summary.sent_again, summary.duplicates, summary.given_up) == (0, 0, 0)
        assert rows(trace, "ims") == rows(without, "ims")
        assert rows(trace, "deliveries") == rows(without, "deliveries")
        assert alone.notification_ims == summary.notification_ims


def test_notification_is_under_way_until_its_host_knows_that_all_have_it():
    # Two links of 100 us there and back, and the acknowledgement waits for the next look.
    setup = replace(CUT, faults=(), costs=plain(), publications=(Publishes("a,0"),))
    with ran(replace(setup, delivery=MEMORY)) as (summary, trace):
        (publication,) = rows(trace, "publications")
        last = max(row["delivered_ns"] for row in rows(trace, "deliveries"))
        took_ns = publication["completed_ns"] - last
        assert 10 * MS <= took_ns <= 11 * MS
        assert summary.end_ns == publication["completed_ns"]


# What comes too early waits

OVERLOADED = Setup(
    algorithm=Algorithm.TNR,
    subscribers=tuple(map(Subscribes, ("c,0", "c,1", "b,1"))),
    publications=tuple(Publishes("a,0", number * MS) for number in range(120)),
    congestion_threshold=5,
    window_ns=10 * MS,
    faults=(SlowLink("a,0", "b,0", 5000, 20, 60),),  # 5 ms for a message
    delivery=MEMORY,
)


def test_what_has_overtaken_others_is_delivered_when_these_are():
    alone = replace(OVERLOADED, delivery=DeliveryOptions(Level.NONE))
    with ran(alone) as (_, without), ran(OVERLOADED) as (_, trace):
        assert out_of_order(without) > 5
        assert out_of_order(trace) == 0
        came, handed_on = (
            {
                (row["sequence"], row["subscription"]): (row["delivered_ns"], row["hops"])
                for row in rows(each, "deliveries")
            }
            for each in (without, trace)
        )
        assert came.keys() == handed_on.keys()
        later = {key for key in came if handed_on[key][0] > came[key][0]}
        assert len(later) > 5
        # Nothing was sent again, so each went as it does without channels, and waited at its end.
        assert {key: hops for key, (_, hops) in handed_on.items()} == {
            key: hops for key, (_, hops) in came.items()
        }
        assert all(handed_on[key][0] == came[key][0] for key in came.keys() - later)
        for sequence, name in later:
            assert handed_on[sequence, name][0] == max(
                came[before, name][0] for before in range(sequence + 1)
            )


def test_check_of_an_overloaded_run_passes_without_any_order(spark: SparkSession):
    verdicts = []
    for delivery in (DeliveryOptions(Level.NONE), MEMORY):
        with on_disk(replace(OVERLOADED, delivery=delivery)) as (scenario, folder):
            run(scenario, folder / "trace")
            verdicts.append(check(spark, folder / "trace", scenario))
    alone, verdict = verdicts
    assert alone.faults.pop(UNORDERED) > 5
    assert set(alone.faults.values()) == {0}
    assert verdict.faults == dict.fromkeys((LOST, TWICE, UNASKED, UNORDERED), 0)
    assert verdict.delivered == verdict.due == 360


# Publishers wait

PAIR = SCOT(AcyclicFactor.from_edges([("a", "b")]), ConnectivityFactor.complete(1))
"""One link."""


def test_publications_wait_for_a_host_that_lacks_a_window_and_stay_in_order():
    setup = Setup(
        scot=PAIR,
        algorithm=Algorithm.TNR,
        subscribers=(Subscribes("b,0", "x = 1"), Subscribes("a,0")),
        # Every third is for a,0 alone, but goes after what its publisher has sent before.
        publications=tuple(Publishes("a,0", n * 1000, 1 if n % 3 else 2) for n in range(30)),
        delivery=DeliveryOptions(Level.MEMORY, window=4),
    )
    with ran(setup) as (summary, trace):
        assert (summary.deliveries, summary.sent_again) == (50, 0)
        assert out_of_order(trace) == 0
        accepted = [row["accepted_ns"] - summary.begin_ns for row in rows(trace, "publications")]
        assert sorted(accepted) == accepted
        # 4 are under way at a time, for about a look each.
        assert accepted[4] < MS
        assert accepted[-1] > 30 * MS
    for bound in ({"window_bytes": 2000}, {"bytes": 2000}):  # 4 notifications of 500 bytes
        sized = replace(setup, costs=plain(notification_bytes=500))
        limited = replace(sized, delivery=DeliveryOptions(Level.MEMORY, **bound))
        with ran(limited) as (summary, trace):
            last = max(row["accepted_ns"] for row in rows(trace, "publications"))
            assert last - summary.begin_ns > 30 * MS


# Hosts that are silent

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
    with ran(replace(SILENT, delivery=MEMORY)) as (summary, trace):
        assert (summary.deliveries, summary.deliveries_lost, summary.given_up) == (300, 0, 0)
        assert out_of_order(trace) == 0


def test_run_ends_where_a_host_is_never_back():
    # The link comes back long after the last publication: nobody asks for so long.
    faults = (CutLink("a,0", "b,0", 500, 1e6),)
    with ran(replace(SILENT, faults=faults)) as (summary, _):
        assert summary.deliveries_lost == summary.given_up > 100
        assert summary.end_ns - summary.begin_ns < 10_000 * MS


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


def test_dead_brokers_lose_nothing_of_what_is_connected():
    dead = (DeadBroker("b,0"),)
    for seed in range(10):
        random = Random(seed)  # noqa: S311 - repeatable on purpose
        broker = random.choice(CUT.scot.brokers).short
        setup = replace(CUT, faults=(DeadBroker(broker), *(dead if broker != "b,0" else ())))
        with on_disk(replace(setup, delivery=MEMORY)) as (scenario, folder):
            summary = run(scenario, folder / "trace")
            assert made_deliveries(folder / "trace") == wanted_deliveries(scenario.among_living())
            assert summary.given_up == 0


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


# Laws


def as_it_comes(
    self: Receiver,
    arrived: list[NotificationMessage],
    now_ns: int,  # noqa: ARG001 - as what it stands for
) -> list[NotificationMessage]:
    for message in arrived:
        self._due[message.origin] = None
        stream = self._streams[message.origin]
        stream.last = max(stream.last, message.number)
    return list(arrived)


def test_receiver_that_puts_nothing_in_order_is_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Receiver, "in_order", as_it_comes)
    with on_disk(OVERLOADED) as (scenario, folder):
        with pytest.raises(LawViolated) as caught:
            run(scenario, folder / "trace")
        assert caught.value.law == "in order"


def test_acknowledging_what_has_not_come_is_caught(monkeypatch: pytest.MonkeyPatch):
    in_order = Receiver.in_order

    def forgetful(
        self: Receiver, arrived: list[NotificationMessage], now_ns: int
    ) -> list[NotificationMessage]:
        if [message.number for message in arrived] == [7]:
            as_it_comes(self, arrived, now_ns)
            return []
        return in_order(self, arrived, now_ns)

    monkeypatch.setattr(Receiver, "in_order", forgetful)
    with on_disk(replace(CUT, delivery=MEMORY)) as (scenario, folder):
        with pytest.raises(LawViolated) as caught:
            run(scenario, folder / "trace")
        assert caught.value.law == "nothing lost"


# What scenarios say


@pytest.mark.parametrize("algorithm", [Algorithm.SNR, Algorithm.DNR, Algorithm.BID])
def test_channels_need_target_routing(algorithm: Algorithm):
    with pytest.raises(InvalidConfiguration, match=f"algorithm is {algorithm.value}: choose tnr"):
        with on_disk(replace(CUT, algorithm=algorithm, delivery=MEMORY)):
            pass
    with on_disk(replace(CUT, delivery=MEMORY)) as (scenario, _):
        with pytest.raises(InvalidConfiguration, match=r'level "memory" needs target routing'):
            scenario.with_algorithm(algorithm)
        assert scenario.with_algorithm(Algorithm.TNR).document.has_channels


def test_scenario_without_a_word_on_delivery_is_routed_alone():
    with on_disk(CUT) as (scenario, _):
        assert "[delivery]" not in (scenario.folder / "scenario.toml").read_text()
        assert not scenario.document.has_channels
    with ran(CUT) as (summary, trace):
        assert "sent_again" not in (trace / "run.json").read_text()
        assert summary.deliveries_lost > 0


def test_all_options_of_delivery_stand_in_the_document():
    options = DeliveryOptions(Level.MEMORY, 7, 70, 700, 0.7)
    with on_disk(replace(CUT, delivery=options)) as (scenario, _):
        assert scenario.document.delivery == options
