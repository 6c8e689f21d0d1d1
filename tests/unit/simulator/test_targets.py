"""Target routing in the simulator: what it costs, what its trace says, and what its laws catch."""

from functools import partial

import pytest

from octopis.core.routing import Algorithm, Reason
from octopis.errors import LawViolated, OperationFailed
from octopis.scenario.costs import TARGET_STEP, target_bytes
from octopis.simulator.audience import Broadcast, Copy
from octopis.simulator.notifying import TargetNotifying
from octopis.simulator.simulation import Simulation
from octopis.simulator.subscribing import EARLY_MAX, EarlyChanges
from octopis.trace import Level
from support.simulations import (
    Publishes,
    Setup,
    Subscribes,
    one_publication,
    plain,
    ran,
    rows,
    simulated,
)

US = 1000
setup = partial(one_publication, Algorithm.TNR)


def notifying(simulation: Simulation) -> TargetNotifying:
    assert isinstance(simulation.notifying, TargetNotifying)
    return simulation.notifying


@pytest.mark.parametrize(
    ("hops", "mask", "service_ns"),
    [
        (1, 0b10, 4 * US),  # on the way: the step alone
        (1, 0b111110, 4 * US),  # whatever the number of targets
        (1, 0b11, 4 * US + 500 + 2 * 100),  # a target: matched against its own clients
    ],
)
def test_brokers_match_where_they_are_targets_and_pay_one_step(
    hops: int, mask: int, service_ns: int
):
    changes = {"target_routing_us": 4, "matching_us": 0.5, "matching_per_subscription_ns": 100}
    with simulated(setup("a,0", "a,0", "c,2", **changes)) as (simulation, _):
        simulation.network.stations[0].local_subscriptions = 2
        station = simulation.network.stations[0]
        copy = Copy(None, hops, 0, Reason.TARGET, mask)
        assert notifying(simulation).service_ns(station, copy) == service_ns


def test_publishers_host_matches_against_all_and_nobody_else_does():
    changes = {"matching_us": 0.5, "matching_per_subscription_ns": 100}
    with ran(setup("c,0", "c,0", "a,1", **changes)) as (_, trace):
        (row,) = rows(trace, "publications")
        assert row["matching_ns"] == (500 + 300) + (500 + 200) + (500 + 100)


def test_step_costs_its_measured_share_of_bids_until_it_is_said():
    costs = plain(identification_ns=7)
    assert costs.routing_ns(5) == 10 * US + 35
    assert costs.target_routing_ns(5) == round(TARGET_STEP * costs.routing_ns(5))
    assert plain(target_routing_us=3).target_routing_ns(5) == 3 * US
    assert plain(target_routing_us=3, subscription_us=1).target_subscription_ns == 4 * US


def test_header_is_the_shorter_of_a_list_and_a_bit_map():
    assert [target_bytes(count, 75) for count in (1, 4, 5, 6, 75)] == [6, 12, 14, 14, 14]
    with simulated(setup("c,0")) as (simulation, _):  # 9 brokers: 2 bytes at most
        send = [notifying(simulation).send_ns(mask) for mask in (0b1, 0b1011)]
        assert send == [US + 6, US + 6]


def test_trace_says_how_many_targets_a_copy_carries_and_why_it_goes_there():
    with ran(setup("a,1", "c,0", "c,2", "b,0")) as (summary, trace):
        sent = {
            (row["source"], row["target"]): (row["bids"], row["cbv_p"], row["reason"])
            for row in rows(trace, "ims")
            if row["message"] == "notification"
        }
        assert sent == {
            ("a,0", "a,1"): (1, None, "late"),
            ("a,0", "b,0"): (3, None, "target"),
            ("b,0", "c,0"): (2, None, "target"),
            ("c,0", "c,2"): (1, None, "late"),
        }
        assert summary.dnr_cases == {"late": 2, "target": 2}


def test_branch_that_wants_one_other_cluster_crosses_early():
    with ran(setup("b,2", "c,2")) as (summary, trace):
        sent = [(row["source"], row["target"]) for row in rows(trace, "ims") if row["publisher"]]
        assert sent == [("a,0", "a,2"), ("a,2", "b,2"), ("b,2", "c,2")]
        assert summary.dnr_cases == {"early": 1, "target": 2}


def test_subscriptions_reach_everybody_over_shortest_paths():
    with ran(setup("a,0", "b,1")) as (summary, trace):
        assert [row["ims"] for row in rows(trace, "subscriptions")] == [8, 8]
        assert summary.subscription_duplicates == 0
        assert max(row["hops"] for row in rows(trace, "stored")) == 3


def test_changes_that_come_too_early_wait_and_not_for_ever():
    with simulated(setup("a,0"), Level.DELIVERIES) as (simulation, _):
        host, station = simulation.network.stations[:2]
        early = EarlyChanges()
        changes = [Broadcast(n, host, 0, sequence=n) for n in range(2, EARLY_MAX + 3)]
        for change in changes[:-1]:
            early.wait(station, change, 3)
            early.wait(station, change, 5)  # a second copy changes nothing
        assert {change.outstanding for change in changes[:-1]} == {2}
        with pytest.raises(OperationFailed, match="subscribe more slowly"):
            early.wait(station, changes[-1], 3)
        assert early.take(station, host, 2) == (changes[0], 3)
        assert early.take(station, host, 2) is None
        assert early.take(host, host, 3) is None


class Wanders(TargetNotifying):
    """Sends the second notification over another cluster, and says nothing of it."""

    marks = 0

    def serve(self, station, output, copy, now):
        flight = copy.subject
        if flight.sequence == 1 and station.broker.short == "a,0" and not copy.hops:
            way = next(each for each in station.outputs if each.target.broker.short == "a,1")
            self._begin(flight, [way])
            mask = flight.targets & ~station.bit
            wrong = Copy(flight, 1, 1, Reason.LATE, mask, None, self.marks)
            flight.accepted_ns = now
            self._send(way, wrong, now)
            self._end(flight, now)
        else:
            super().serve(station, output, copy, now)


class Returns(Wanders):
    """Sends what comes to b,0 back to a,0, for ever."""

    def serve(self, station, output, copy, now):
        if copy.hops and station.broker.short == "b,0":
            self._begin(copy.subject, [output.back])
            again = Copy(copy.subject, copy.hops + 1, 1, Reason.TARGET, copy.mask)
            self._send(output.back, again, now)
            self._end(copy.subject, now)
        else:
            TargetNotifying.serve(self, station, output, copy, now)


class LosesBit(TargetNotifying):
    """Loses the highest target at b,0."""

    def serve(self, station, output, copy, now):
        if station.broker.short == "b,0":
            mask = copy.mask & ~(1 << copy.mask.bit_length() - 1)
            copy = Copy(copy.subject, copy.hops, 1, copy.reason, mask)
        super().serve(station, output, copy, now)


@pytest.mark.parametrize(
    ("culprit", "law", "broker"),
    [
        (Wanders, "path bounds", "c,0"),
        (Returns, "no loop", "b,0"),
        (LosesBit, "nothing lost", "c,0"),
    ],
)
def test_laws_catch_what_breaks_the_rule(
    monkeypatch: pytest.MonkeyPatch, culprit: type, law: str, broker: str
):
    monkeypatch.setattr("octopis.simulator.simulation.TargetNotifying", culprit)
    wanting = Setup(
        algorithm=Algorithm.TNR,
        subscribers=(Subscribes("c,0"),),
        publications=(Publishes("a,0"), Publishes("a,0", 10**7)),
    )
    with pytest.raises(LawViolated) as violation, ran(wanting):
        pass
    assert (violation.value.law, violation.value.broker) == (law, broker)


def test_detour_that_is_marked_breaks_no_law(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Wanders, "marks", 1)
    monkeypatch.setattr("octopis.simulator.simulation.TargetNotifying", Wanders)
    wanting = Setup(
        algorithm=Algorithm.TNR,
        subscribers=(Subscribes("c,0"),),
        publications=(Publishes("a,0"), Publishes("a,0", 10**7)),
    )
    with ran(wanting) as (summary, trace):
        assert summary.deliveries == 2
        assert [row["hops"] for row in rows(trace, "deliveries")] == [2, 4]
