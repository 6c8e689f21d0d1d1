"""The experiments are the paper's: every number of its section 5.1."""

from dataclasses import replace

import pytest
from msgspec import structs

from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.evaluation.experiments import RATES, SIZES, EvaluationSize, Experiment, Point, points
from octopis.scenario.costs import profile_named

PAPER = profile_named("paper")
EVERY_ALGORITHM = {Algorithm.BID, Algorithm.SNR, Algorithm.DNR, Algorithm.TNR}


def full(experiment: Experiment) -> list[Point]:
    return [each for each in points(EvaluationSize.FULL, 1, PAPER) if each.experiment is experiment]


def test_subscriber_scalability_is_the_papers():
    found = full(Experiment.SUBSCRIBERS)
    counts = [500, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000]
    assert [each.plan.subscribers for each in found] == counts
    assert [each.x for each in found] == counts
    for plan in (each.plan for each in found):
        assert (plan.publishers, plan.notifications_each, plan.per_minute) == (100, 1_000, 60)
        assert plan.high_rate_notifications == 0


def test_publisher_scalability_is_the_papers():
    found = full(Experiment.PUBLISHERS)
    counts = [100, 200, 300, 400, 500]
    assert [each.plan.publishers for each in found] == counts
    assert [each.x for each in found] == counts
    for plan in (each.plan for each in found):
        assert (plan.subscribers, plan.notifications_each, plan.per_minute) == (3_000, 500, 100)
        assert plan.high_rate_notifications == 0


def test_burst_is_the_papers():
    found = full(Experiment.BURST)
    rates = [100_000, 80_000, 60_000]
    assert [each.plan.high_rate_per_minute for each in found] == rates
    assert [each.x for each in found] == rates == list(RATES)
    for plan in (each.plan for each in found):
        assert (plan.subscribers, plan.publishers) == (5_000, 100)
        assert (plan.notifications_each, plan.per_minute) == (2_000, 60)
        assert (plan.high_rate_publishers, plan.high_rate_notifications) == (1, 100_000)
        assert (plan.routing.congestion_threshold, plan.routing.window_ms) == (10, 50)


def test_several_high_rate_publishers_differ_from_the_burst_in_their_number_alone():
    fastest = full(Experiment.BURST)[0].plan
    found = full(Experiment.SEVERAL)
    assert [each.x for each in found] == [2, 3, 5]
    for each in found:
        assert each.plan == structs.replace(fastest, name=each.name, high_rate_publishers=each.x)
        assert set(each.algorithms) == EVERY_ALGORITHM - {Algorithm.BID}


@pytest.mark.parametrize("size", EvaluationSize)
def test_everything_runs_on_the_papers_overlay_and_loses_nothing(size: EvaluationSize):
    for each in points(size, 1, PAPER):
        scot = each.plan.topology.scot
        assert (len(scot.brokers), len(scot.clusters)) == (75, 5)
        assert each.plan.selectivity == 0.02
        assert each.plan.queues.policy == "stop"
        if each.experiment is not Experiment.SEVERAL:
            assert set(each.algorithms) == EVERY_ALGORITHM
        each.plan.check()


@pytest.mark.parametrize("size", EvaluationSize)
def test_another_overlay_has_as_many_high_rate_publishers_as_clusters(size: EvaluationSize):
    topology = from_catalogue("figure-3")
    found = points(size, 1, PAPER, topology)
    assert {each.plan.topology.name for each in found} == {"figure-3"}
    several = [each.x for each in found if each.experiment is Experiment.SEVERAL]
    assert several[-1] == len(topology.scot.clusters) == 3
    for each in found:
        each.plan.check()


@pytest.mark.parametrize("size", EvaluationSize)
def test_names_are_unique_over_all_seeds(size: EvaluationSize):
    names = [each.name for seed in range(1, 12) for each in points(size, seed, PAPER)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("size", EvaluationSize)
def test_seeds_differ_in_seed_and_name_alone(size: EvaluationSize):
    for first, other in zip(points(size, 1, PAPER), points(size, 7, PAPER), strict=True):
        assert (first.seed, other.seed) == (1, 7)
        assert other.name == first.name.removesuffix("seed1") + "seed7"
        assert replace(other, plan=structs.replace(other.plan, seed=1, name=first.name)) == first


def test_quick_has_the_shape_of_full_but_is_smaller():
    quick, whole = SIZES[EvaluationSize.QUICK], SIZES[EvaluationSize.FULL]
    for name in SIZES[EvaluationSize.FULL].__dataclass_fields__:
        small, large = getattr(quick, name), getattr(whole, name)
        if isinstance(small, tuple):
            assert list(small) == sorted(small), "points are in ascending order"
            assert max(small) <= max(large)
        else:
            assert 0 < small < large
