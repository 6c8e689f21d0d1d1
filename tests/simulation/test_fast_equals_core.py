"""The cheap forms of the algorithms do what `routing.Broker` does, message by message.

And what a run writes down changes nothing of what it does.
"""

from collections import Counter
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.routing import Algorithm
from octopis.simulator.run import run
from octopis.trace import Level, RunSummary
from support.simulations import (
    digests,
    made_deliveries,
    on_disk,
    ran,
    random_setup,
    sorted_rows,
    wanted_deliveries,
)

RANDOMS = st.randoms(use_true_random=False)


@pytest.mark.parametrize("algorithm", Algorithm)
@given(random=RANDOMS)
@settings(max_examples=120, deadline=None)
def test_trace_is_the_same_to_the_byte_with_real_brokers(algorithm: Algorithm, random: Random):
    with on_disk(random_setup(random, algorithm)) as (scenario, folder):
        cheap = run(scenario, folder / "cheap", level=Level.FULL)
        real = run(scenario, folder / "real", level=Level.FULL, real_brokers=True)
        assert cheap == real
        assert digests(folder / "cheap") == digests(folder / "real")
        assert made_deliveries(folder / "cheap") == wanted_deliveries(scenario)


@pytest.mark.parametrize("algorithm", Algorithm)
@given(random=RANDOMS)
@settings(max_examples=60, deadline=None)
def test_trace_is_the_same_with_real_brokers_at_level_deliveries(
    algorithm: Algorithm, random: Random
):
    with on_disk(random_setup(random, algorithm)) as (scenario, folder):
        cheap = run(scenario, folder / "cheap")
        assert run(scenario, folder / "real", real_brokers=True) == cheap
        assert digests(folder / "cheap") == digests(folder / "real")


def counters(summary: RunSummary) -> RunSummary:
    return msgspec.structs.replace(summary, level="")


@pytest.mark.parametrize("algorithm", Algorithm)
@given(random=RANDOMS)
@settings(max_examples=100, deadline=None)
def test_level_of_detail_changes_nothing_of_what_happens(algorithm: Algorithm, random: Random):
    with on_disk(random_setup(random, algorithm)) as (scenario, folder):
        full, deliveries, summary = (
            run(scenario, folder / level.value, level=level)
            for level in (Level.FULL, Level.DELIVERIES, Level.SUMMARY)
        )
        assert counters(full) == counters(deliveries) == counters(summary)
        for table in ("subscriptions", "publications", "deliveries", "links"):
            rows = sorted_rows(folder / "full", table)
            assert sorted_rows(folder / "deliveries", table) == rows
        links = sorted_rows(folder / "full", "links")
        assert sorted_rows(folder / "summary", "links") == links


def test_random_scenarios_have_long_queues_and_reach_every_case():
    cases: Counter[str] = Counter()
    longest = []
    for seed in range(60):
        setup = random_setup(Random(seed), Algorithm.DNR)  # noqa: S311 - repeatable on purpose
        with ran(setup, Level.SUMMARY) as (summary, _):
            cases.update(summary.dnr_cases.keys())
            longest.append(summary.queue_length_max)
    assert all(cases[case] >= 3 for case in ("I", "II", "III")), cases
    assert sum(length >= 10 for length in longest) >= 10, longest
