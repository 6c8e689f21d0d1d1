from collections.abc import Callable
from pathlib import Path

import pytest

from octopis.core.routing import Algorithm
from octopis.core.topology import SCOT
from octopis.demo.comparison import Compared
from octopis.demo.deliveries import RoundVerdict
from octopis.demo.fault.cast import FULL, Cast, cast_of
from octopis.demo.fault.outcome import FaultOutcome, outcome_of
from octopis.demo.fault.record import FaultRecord
from octopis.demo.pace import Pace
from octopis.demo.rounds import Round
from octopis.demo.run import ROUNDS
from octopis.demo.watching import BrokerView, OverlayMoment
from octopis.demo.workload import SMALL, Feed, SlowedLink, read_feed, slowed_link
from octopis.overlay.player import Played
from octopis.scenario.example import write_example
from octopis.scenario.folder import Scenario, read_scenario

MS = 1_000_000
CASES = {
    Algorithm.DNR: {"I": 149, "II": 0},
    Algorithm.TNR: {"around overload": 137, "early": 163, "late": 270, "target": 300},
}

KEPT = Pace(1.0, 20.0, 0.3)
"""The pace of a machine with nothing else to do."""


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """The small scenario; made without Spark, so with other quotes but at the same places."""
    folder = tmp_path_factory.mktemp("demo") / "scenario"
    write_example(SMALL, folder)
    return read_scenario(folder)


@pytest.fixture(scope="session")
def scot(scenario: Scenario) -> SCOT:
    return scenario.topology.scot


@pytest.fixture(scope="session")
def feed(scenario: Scenario) -> Feed:
    return read_feed(scenario)


@pytest.fixture(scope="session")
def link(scot: SCOT, feed: Feed) -> SlowedLink:
    return slowed_link(scot, feed)


@pytest.fixture
def snapshot(scot: SCOT) -> Callable[..., OverlayMoment]:
    """Make a snapshot of an overlay at rest, but for what is said."""

    def make(**facts: object) -> OverlayMoment:
        values = {
            "seen_ns": 0,
            "brokers": {broker.short: BrokerView(0, 0.0, False) for broker in scot.brokers},
            "slowed_queue": 0,
            "longest_queue": 0,
            "longest_link": "a,0 → a,1",
            "overloaded": [],
            "cases": {},
            "published": 0,
            "deliveries": 0,
            "publishers_wait": False,
        }
        return OverlayMoment(**{**values, **facts})

    return make


@pytest.fixture
def rounds(snapshot: Callable[..., OverlayMoment]) -> list[Round]:
    """Four rounds, in the last two of which nothing much waits."""
    found = []
    for algorithm, wait in zip(ROUNDS, (90, 80, 5, 3), strict=True):
        played = Played(
            deliveries=[("hrp", 0, "s00000"), ("hrp", 1, "s00000")],
            delivered_ns=[3_000_000_000, 4_000_000_000],
            delays_ns=[1_500_000, wait * 10_000_000],
            begin_ns=1_000_000_000,
            counters={"subscription_ims": 340, "notification_ims": 12},
        )
        seen = [
            snapshot(seen_ns=1_000_000_000 * second, slowed_queue=length, cases={"I": 7})
            for second, length in enumerate((0, wait, 0), 1)
        ]
        found.append(Round(algorithm, played, seen, wait, "b,2 → b,0", wait, KEPT))
    return found


@pytest.fixture
def row() -> Callable[..., Compared]:
    """Make a round that was measured and checked, with nothing wrong but what is said."""

    def make(algorithm: Algorithm, over_slowed: int = 300, **facts: object) -> Compared:
        verdict = {
            "due": 936,
            "delivered": 936,
            "lost": 0,
            "twice": 0,
            "unasked": 0,
            "overtaken": 0,
            "delay_median_ms": 1.25,
            "delay_p99_ms": 6_480.0,
        }
        return Compared(
            algorithm,
            RoundVerdict(**{name: facts.pop(name, value) for name, value in verdict.items()}),
            subscription_ims=340,
            notification_ims=int(facts.pop("notification_ims", 1_581)),
            longest_queue=1_001,
            longest_link="b,2 → b,0",
            over_slowed=over_slowed,
            cases=CASES.get(algorithm, {}),
            publishers_waited=bool(facts.pop("publishers_waited", False)),
            pace=facts.pop("pace", KEPT),
        )

    return make


@pytest.fixture
def rows(row: Callable[..., Compared]) -> list[Compared]:
    return [
        row(Algorithm.BID),
        row(Algorithm.SNR),
        row(Algorithm.DNR, 151, delay_p99_ms=236.0, overtaken=144),
        row(Algorithm.TNR, 163, delay_p99_ms=212.0, overtaken=152, notification_ims=1_569),
    ]


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    folder = tmp_path / "draft"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def cast() -> Cast:
    return cast_of(FULL.topology)


@pytest.fixture
def record(cast: Cast) -> FaultRecord:
    """A scene in which all went well: a hundred a second for 4 s, and a kill after 1.05 s.

    Each delivery takes 2 ms. Those behind the victim lose what was published at the kill and 10 ms
    after it, and wait for 50 ms when it is back, 1 s after the kill.
    """
    begin_ns = 10**18
    killed_ns = begin_ns + 1_050 * MS
    published = [begin_ns + number * 10 * MS for number in range(400)]
    found = FaultRecord(
        cast,
        begin_ns=begin_ns,
        killed_ns=killed_ns,
        back_ns=killed_ns + 1_000 * MS,
        whole_ns=killed_ns + 1_300 * MS,
        published_ns=published,
        around_fault=98,
        passed_on=197,
    )
    resumed_ns = killed_ns + 1_052 * MS
    for each in cast.subscribers:
        times = [(number, at_ns + 2 * MS) for number, at_ns in enumerate(published, 1)]
        if each in cast.behind:
            times = [
                (number, resumed_ns if 0 <= resumed_ns - at_ns < 50 * MS else at_ns)
                for number, at_ns in times
                if number not in (106, 107)
            ]
        found.got[each] = times
    return found


@pytest.fixture
def outcome(record: FaultRecord) -> FaultOutcome:
    return outcome_of(record, per_s=100)
