"""Every algorithm delivers exactly what the filters say, once, however messages interleave."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.matching import BitsetIndex
from octopis.core.routing import Algorithm, Reason
from support.checks import check_all
from support.scenarios import play, random_overlay, random_scenario

RANDOMS = st.randoms(use_true_random=False)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("algorithm", Algorithm)
@given(random=RANDOMS)
@settings(max_examples=300, deadline=None)
def test_random_scenario_is_served_exactly(algorithm: Algorithm, random: Random):
    scenario = random_scenario(random)
    check_all(scenario, play(scenario, algorithm))


@pytest.mark.parametrize("algorithm", Algorithm)
@given(seed=SEEDS)
@settings(max_examples=300, deadline=None)
def test_random_scenario_is_served_exactly_with_the_fast_index(algorithm: Algorithm, seed: int):
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    scenario = random_scenario(random, random_overlay(random, (1, 6), (1, 4)))
    check_all(scenario, play(scenario, algorithm, index=BitsetIndex))


@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_same_seed_gives_the_same_messages_in_the_same_order(seed: int):
    scenario = random_scenario(Random(seed))  # noqa: S311 - repeatable on purpose
    one, other = play(scenario, Algorithm.DNR), play(scenario, Algorithm.DNR)
    assert one.sent == other.sent
    assert one.delivered == other.delivered


def test_random_scenarios_reach_every_case():
    reasons: Counter[Reason] = Counter()
    for seed in range(60):
        scenario = random_scenario(Random(seed))  # noqa: S311 - repeatable on purpose
        reasons.update(sent.reason for sent in play(scenario, Algorithm.DNR).sent)
    for reason in (Reason.MATCH, Reason.PENDING, Reason.CASE_I, Reason.CASE_II, Reason.CASE_III):
        assert reasons[reason] >= 10, reasons
