"""Brokers that are dead during a whole run: who is connected is reached, the rest is counted."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.benchmarks.simulator import faults
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.scenario.dead import draw_dead, parts
from octopis.scenario.document import CutLink, DeadBroker
from octopis.simulator.run import run
from octopis.trace import Level
from support.overlays import CHAIN
from support.simulations import (
    Publishes,
    Setup,
    Subscribes,
    made_deliveries,
    on_disk,
    ran,
    random_setup,
    rows,
    wanted_deliveries,
)

RANDOMS = st.randoms(use_true_random=False)
SETUP = Setup(
    subscribers=tuple(map(Subscribes, ("c,0", "c,1", "a,0", "b,0"))),
    publications=tuple(Publishes("a,0", number * 10**7) for number in range(5)),
    faults=(DeadBroker("b,0"),),
)


@pytest.mark.parametrize(
    ("algorithm", "got"),
    [
        (Algorithm.SNR, {"s1", "s2"}),  # to c,1 it crosses at once; to c,0 never
        (Algorithm.DNR, {"s1", "s2"}),
        (Algorithm.BID, {"s0", "s1", "s2"}),
        (Algorithm.TNR, {"s0", "s1", "s2"}),
    ],
)
def test_dead_broker_keeps_from_others_what_the_algorithm_cannot_lead_around_it(
    algorithm: Algorithm, got: set[str]
):
    with ran(replace(SETUP, algorithm=algorithm)) as (summary, trace):
        assert {name for _, _, name in made_deliveries(trace)} == got
        assert summary.deliveries == 5 * len(got)
        assert summary.deliveries_lost == 5 * (3 - len(got))  # nobody expects anything at b,0
        assert summary.dead_brokers == ["b,0"]
        assert summary.subscriptions == 3
        used = {row["target"] for row in rows(trace, "links") if row["notification_ims"]}
        assert "b,0" not in used


def test_publishers_at_dead_brokers_are_silent():
    publications = (Publishes("b,0"), Publishes("a,0", 10**7), Publishes("b,0", 2 * 10**7))
    with ran(replace(SETUP, algorithm=Algorithm.TNR, publications=publications)) as (summary, _):
        assert (summary.notifications, summary.deliveries) == (1, 3)


def test_nobody_expects_anything_from_a_host_that_is_cut_off():
    # a,0 has one neighbour in its cluster and two in its region.
    dead = tuple(map(DeadBroker, ("b,0", "a,1", "a,2")))
    with ran(replace(SETUP, algorithm=Algorithm.TNR, faults=dead)) as (summary, _):
        assert (summary.deliveries, summary.deliveries_lost) == (5, 0)  # its own client


@given(random=RANDOMS)
@settings(max_examples=40, deadline=None)
def test_target_routing_loses_nothing_while_fewer_are_dead_than_there_are_clusters(random: Random):
    setup = random_setup(random, Algorithm.TNR, regions=(1, 6), clusters=(2, 4))
    brokers, clusters = list(setup.scot.brokers), len(setup.scot.clusters)
    dead = random.sample(brokers, min(len(brokers) - 1, random.randrange(1, clusters)))
    setup = replace(setup, faults=tuple(DeadBroker(each.short) for each in dead))
    level = random.choice((Level.FULL, Level.DELIVERIES))
    with on_disk(setup) as (scenario, folder):
        summary = run(scenario, folder / "trace", level=level)
        assert len(set(parts(setup.scot, frozenset(dead)).values())) == 1
        assert summary.deliveries_lost == 0
        assert made_deliveries(folder / "trace") == wanted_deliveries(scenario.among_living())


@pytest.mark.parametrize("algorithm", Algorithm)
@given(random=RANDOMS)
@settings(max_examples=15, deadline=None)
def test_what_is_lost_is_counted_however_many_are_dead(algorithm: Algorithm, random: Random):
    setup = random_setup(random, algorithm, regions=(2, 6))
    brokers = list(setup.scot.brokers)
    dead = random.sample(brokers, random.randrange(1, len(brokers)))
    setup = replace(setup, faults=tuple(DeadBroker(each.short) for each in dead))
    with on_disk(setup) as (scenario, folder):
        summary = run(scenario, folder / "trace")
        part_of = parts(setup.scot, frozenset(dead))
        homes = {each.broker.short: part_of.get(each.broker) for each in scenario.publishers}
        hosts = {each.subscription: part_of.get(each.broker) for each in scenario.subscribers}
        expected = {
            each
            for each in wanted_deliveries(scenario)
            if homes[each[0]] is not None and homes[each[0]] == hosts[each[2]]
        }
        made = made_deliveries(folder / "trace")
        assert len(made) == len(set(made))
        assert set(made) <= expected
        assert summary.deliveries_lost == len(expected) - len(made)


def test_target_routing_reaches_everybody_on_the_papers_overlay_with_13_brokers_dead():
    paper = from_catalogue("paper")
    assert len(draw_dead(paper.scot, 0.17, 1)) == 13
    (found,) = faults.run(paper, 0.17, 1, 1)
    tnr, snr = found[Algorithm.TNR], found[Algorithm.SNR]
    assert tnr.expected == tnr.made == snr.expected > 1_000
    assert snr.share < 0.7
    assert 0.2 < tnr.detour_mean < 1.2


def test_draws_differ_by_seed_and_repeat():
    scot = from_catalogue("paper").scot
    draws = {draw_dead(scot, 0.17, seed) for seed in range(50)}
    assert len(draws) == 50
    assert draw_dead(scot, 0.17, 7) == draw_dead(scot, 0.17, 7)
    assert draw_dead(scot, 0, 7) == ()


@pytest.mark.parametrize(
    ("faulty", "reason"),
    [
        ((DeadBroker("z,9"),), "dead_brokers"),
        ((DeadBroker("b,0"), DeadBroker("b,0")), "twice"),
        (tuple(DeadBroker(each.short) for each in CHAIN.brokers), "must live"),
        ((DeadBroker("b,0"), CutLink("a,0", "a,1", 1, 2)), "not both"),
    ],
)
def test_dead_brokers_that_make_no_sense_are_refused(faulty: tuple, reason: str):
    with pytest.raises(InvalidConfiguration, match=reason), on_disk(replace(SETUP, faults=faulty)):
        pass
