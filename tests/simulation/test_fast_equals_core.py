"""The simulator's own traffic does what `routing.Broker` does, message by message.

And what a run writes down changes nothing of what it does.
"""

from collections import Counter
from dataclasses import replace
from random import Random
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.routing import Algorithm
from octopis.errors import OperationFailed
from octopis.scenario.document import Policy, QueueOptions
from octopis.simulator.run import run
from octopis.trace import Level, RunSummary
from support.simulations import (
    Setup,
    digests,
    made_deliveries,
    message_ns,
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


def with_full_queues(random: Random, algorithm: Algorithm, policy: Policy) -> Setup:
    """Return a scenario whose queues are short, and in which subscriptions have time to settle."""
    setup = random_setup(random, algorithm)
    patience_ns = 10_000 * message_ns(setup.costs)
    return replace(
        setup,
        subscribers=tuple(
            each._replace(at_ns=number * patience_ns)
            for number, each in enumerate(setup.subscribers)
        ),
        queues=QueueOptions(random.choice((1, 2, 5)), policy),
    )


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("policy", get_args(Policy))
@given(random=RANDOMS)
@settings(max_examples=40, deadline=None)
def test_trace_is_the_same_with_real_brokers_where_queues_fill_up(
    algorithm: Algorithm, policy: Policy, random: Random
):
    with on_disk(with_full_queues(random, algorithm, policy)) as (scenario, folder):
        endings = []
        for name, real_brokers in (("cheap", False), ("real", True)):
            try:
                ran_as = run(scenario, folder / name, level=Level.FULL, real_brokers=real_brokers)
            except OperationFailed as stopped:
                assert policy == "stop"
                endings.append(str(stopped))
            else:
                endings.append(ran_as)
        assert endings[0] == endings[1]
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
