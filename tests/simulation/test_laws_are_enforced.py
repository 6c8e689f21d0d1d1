"""Every law is broken on purpose in what it watches over, and caught by that law and no other.

What is broken is the traffic, the kernel, the queues' status, the index or a real broker, never the
laws. Each sabotage does one wrong thing, once: with the second notification, or with the second
subscription.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from octopis.core.routing import Algorithm, Broker
from octopis.errors import LawViolated
from octopis.scenario.folder import read_scenario
from octopis.simulator.replay import moments_before, read_evidence
from octopis.simulator.run import run
from octopis.trace import Level, read_summary
from support.sabotages import (
    BEGIN_NS,
    SETUP,
    BrokerDeliversToAnybody,
    BrokerDeliversToFew,
    BrokerDeliversTwice,
    BrokerIgnores,
    BrokerKeepsSubscription,
    BrokerMiscounts,
    BrokerMissesWindow,
    BrokerSendsBack,
    CopyComesFromNowhere,
    CopyVanishes,
    CountsEntriesTwice,
    DeliversToAnybody,
    DeliversTwice,
    FindsTooMuch,
    FloodSkipsBroker,
    ForgetsWhatItReceived,
    MissesDepartures,
    MissesMatch,
    OmitsCopy,
    SendsBack,
    SendsIdentificationBack,
    SendsSubscriptionTwice,
    SkipsBroker,
    SpreadsOnDetour,
    TakesDetour,
)
from support.simulations import MS, Setup, written

SECOND = ("a,0", 1)


@dataclass(frozen=True)
class Sabotage:
    """What is put in place of what, and what must come of it."""

    culprit: type
    place: str
    law: str
    broker: str | None
    """None where the law is about the whole overlay."""
    detail: str = ""
    algorithm: Algorithm = Algorithm.SNR
    about: str = ""
    level: Level = Level.DELIVERIES

    @property
    def real_brokers(self) -> bool:
        return issubclass(self.culprit, Broker)


SIMULATION = "octopis.simulator.simulation."
STATIC, FLOOD = SIMULATION + "StaticNotifying", SIMULATION + "FloodSubscribing"
TWO_STEP, KERNEL = SIMULATION + "TwoStepSubscribing", SIMULATION + "Kernel"
IDENTIFIED = SIMULATION + "IdentifiedNotifying"
STATUS = "octopis.simulator.network.LinkStatus"
INDEX = "octopis.simulator.audience.BitsetIndex"
BROKER = "octopis.simulator.real_brokers.RealBrokers.make"
BID = Algorithm.BID
SABOTAGES = [
    Sabotage(SendsBack, STATIC, "no loop", "a,0", "second copy", about="second"),
    Sabotage(BrokerSendsBack, BROKER, "no loop", "a,0", "second copy", about="second"),
    Sabotage(
        SendsIdentificationBack, IDENTIFIED, "no loop", "b,0", "came again", BID, about="second"
    ),
    Sabotage(DeliversTwice, STATIC, "no duplicate", "c,0", "delivered twice", about="second"),
    Sabotage(BrokerDeliversTwice, BROKER, "no duplicate", "c,0", "delivered twice", about="second"),
    Sabotage(OmitsCopy, STATIC, "nothing lost", "c,0", "got nothing", about="second"),
    Sabotage(BrokerIgnores, BROKER, "nothing lost", "c,0", "got nothing", about="second"),
    Sabotage(BrokerDeliversToFew, BROKER, "nothing lost", "b,1", "got nothing", about="second"),
    Sabotage(DeliversToAnybody, STATIC, "only matches", "b,0", "nobody wants it", about="second"),
    Sabotage(
        BrokerDeliversToAnybody, BROKER, "only matches", "c,0", "does not want it", about="second"
    ),
    Sabotage(TakesDetour, STATIC, "path bounds", "c,2", "a path of 4 links", about="second"),
    Sabotage(CopyVanishes, KERNEL, "conservation", None, "taken in"),
    Sabotage(CopyComesFromNowhere, KERNEL, "conservation", None, "taken in"),
    Sabotage(CountsEntriesTwice, STATUS, "link status", "a,0", "Q_in", level=Level.FULL),
    Sabotage(MissesDepartures, STATUS, "link status", "a,0", "length", level=Level.FULL),
    Sabotage(BrokerMiscounts, BROKER, "link status", "a,0", "towards B(b, 0)", level=Level.FULL),
    Sabotage(BrokerMissesWindow, BROKER, "link status", "c,0", "Q_in", level=Level.FULL),
    Sabotage(SendsSubscriptionTwice, TWO_STEP, "no duplicate", "c,0", "stored twice", about="s1"),
    Sabotage(ForgetsWhatItReceived, FLOOD, "no duplicate", "b,1", "stored twice", BID, "s1"),
    Sabotage(SkipsBroker, TWO_STEP, "nothing lost", "c,1", "not stored here", about="s1"),
    Sabotage(FloodSkipsBroker, FLOOD, "nothing lost", "c,1", "not stored here", BID, "s1"),
    Sabotage(BrokerKeepsSubscription, BROKER, "nothing lost", "b,0", "not stored", about="s1"),
    Sabotage(SpreadsOnDetour, TWO_STEP, "path bounds", "b,0", "the distance is 1", about="s1"),
    Sabotage(MissesMatch, INDEX, "nothing lost", "c,0", "the filter of s0", about="second"),
    Sabotage(FindsTooMuch, INDEX, "only matches", "a,0", "the filter of s1", about="second"),
]


def with_algorithm(sabotage: Sabotage) -> Setup:
    return replace(SETUP, algorithm=sabotage.algorithm)


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda each: each.culprit.__name__)
def test_sabotage_is_caught_by_its_law(
    sabotage: Sabotage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sabotage.place, sabotage.culprit)
    scenario = written(with_algorithm(sabotage), tmp_path / "scenario")
    with pytest.raises(LawViolated) as caught:
        run(scenario, tmp_path / "trace", level=sabotage.level, real_brokers=sabotage.real_brokers)
    found = caught.value
    assert (found.law, found.seed) == (sabotage.law, 13)
    assert found.broker == (sabotage.broker or SETUP.scot.broker(found.broker).short)
    assert sabotage.detail in found.detail
    assert found.notification == (SECOND if sabotage.about == "second" else None)
    assert found.subscription == ("s1" if sabotage.about == "s1" else None)
    begin_ns = 20 * MS if sabotage.about == "s1" else BEGIN_NS
    assert begin_ns <= found.time_ns <= begin_ns + 50 * MS
    for fact in (found.law, found.broker, "seed 13", f"{found.time_ns / 1e9:.9f} s"):
        assert fact in str(found)
    summary = read_summary(tmp_path / "trace")
    assert (summary.state, summary.reason) == ("violated", str(found))


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda each: each.culprit.__name__)
def test_evidence_leads_to_the_same_violation_again(
    sabotage: Sabotage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sabotage.place, sabotage.culprit)
    scenario = written(with_algorithm(sabotage), tmp_path / "scenario")
    with pytest.raises(LawViolated) as caught:
        run(scenario, tmp_path / "trace", level=sabotage.level, real_brokers=sabotage.real_brokers)
    evidence = read_evidence(tmp_path / "trace")
    again = read_scenario(Path(evidence.scenario))
    assert again.digest == evidence.scenario_digest
    with pytest.raises(LawViolated) as repeated:
        run(again, tmp_path / "again", level=Level.FULL, real_brokers=evidence.real_brokers)
    assert str(repeated.value) == str(caught.value)
    assert read_evidence(tmp_path / "again") == evidence
    assert moments_before(tmp_path / "again", evidence, last_ms=60)


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("real_brokers", [False, True])
def test_without_sabotage_no_law_is_violated(
    algorithm: Algorithm, real_brokers: bool, tmp_path: Path
):
    scenario = written(replace(SETUP, algorithm=algorithm), tmp_path / "scenario")
    summary = run(scenario, tmp_path / "trace", level=Level.FULL, real_brokers=real_brokers)
    assert (summary.state, summary.begin_ns) == ("complete", BEGIN_NS)
    assert (summary.deliveries, summary.deliveries_lost) == (10, 0)


def test_every_law_is_broken_somewhere():
    assert {sabotage.law for sabotage in SABOTAGES} == {
        "no loop",
        "path bounds",
        "no duplicate",
        "nothing lost",
        "only matches",
        "conservation",
        "link status",
    }
