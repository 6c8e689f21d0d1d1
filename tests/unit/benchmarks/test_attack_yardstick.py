from dataclasses import replace

import pytest

from octopis.benchmarks.attack.measures import MEMORY_MB_MAX, Attacked, Phase
from octopis.benchmarks.attack.witnesses import Publication, Witnesses

QUIET = Phase(
    rate=500.0, p50_ms=1.0, p99_ms=20.0, lost=0, twice=0, failed=0, pause_ms=9.0, memory_mb=50.0
)


def faults(while_: Phase = QUIET, after: Phase = QUIET) -> list[str]:
    return Attacked("x", "", "", {"before": QUIET, "while": while_, "after": after}).faults


def test_what_stays_within_the_bounds_holds():
    bounds = replace(QUIET, rate=400.0, p99_ms=100.0, memory_mb=MEMORY_MB_MAX)
    assert not faults(bounds, bounds)


@pytest.mark.parametrize(
    ("worse", "fault"),
    [
        ({"rate": 399.0}, "rate 80%"),
        ({"p99_ms": 101.0}, "p99 101 ms"),
        ({"memory_mb": 3_956.0}, "memory 3,956 MB"),
        ({"lost": 1}, "1 lost"),
        ({"twice": 2}, "2 twice"),
        ({"failed": 3}, "3 failed"),
    ],
)
def test_what_goes_past_a_bound_is_named(worse: dict[str, float], fault: str):
    (found,) = faults(while_=replace(QUIET, **worse))
    assert found == fault
    (found,) = faults(after=replace(QUIET, **worse))
    assert found in {fault, f"{fault} after"}


def test_nobody_counts_what_is_below_50_ms():
    quick = replace(QUIET, p99_ms=0.5)
    slower = replace(QUIET, p99_ms=49.0)
    phases = {"before": quick, "while": slower, "after": slower}
    assert not Attacked("x", "", "", phases).faults


def test_witnesses_miss_what_was_accepted_and_has_not_come():
    witnesses = Witnesses(["octopis://one", "octopis://other"], rate=10)
    witnesses._published = {
        (0, 0): Publication(due=1.0, accepted=1.1),
        (0, 1): Publication(due=2.0, accepted=2.1),  # only one of two gets it
        (1, 0): Publication(due=3.0),  # nobody knows whether it was accepted
        (1, 1): Publication(due=3.5, failed=True),
    }
    for reader, numbers in zip(witnesses._readers, ([0], [0, 1]), strict=True):
        reader.arrived = {(0, number): 1.5 + number for number in numbers}
        reader.times = [1.5 + number for number in numbers]
    found = witnesses.measured(0.0, 4.0, None)
    assert (found.rate, found.lost, found.failed, found.twice) == (0.5, 1, 1, 0)
    assert found.p50_ms == 500.0
    assert found.pause_ms == 2_500.0, "the one who got only the first, until the end"
    assert witnesses.measured(0.0, 2.0, None).lost == 0, "it was due later"
