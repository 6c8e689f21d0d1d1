"""Channels under faults: nothing lost, twice or out of order; and runs repeat to the byte."""

import os
import subprocess
import sys

import pytest

from octopis.simulator.soak.plan import EVERYWHERE, FaultKind, Kind, plan_of
from octopis.simulator.soak.run import run_seed

TOGETHER = 20


@pytest.mark.parametrize("first", range(1, 201, TOGETHER))
def test_no_seed_violates_a_law(first: int):
    for seed in range(first, first + TOGETHER):
        assert run_seed(seed).violations == [], f"octopis sim soak --seed {seed}"


@pytest.mark.parametrize("first", range(1, 101, TOGETHER))
def test_no_seed_violates_a_law_where_brokers_have_disks(first: int):
    for seed in range(first, first + TOGETHER):
        outcome = run_seed(seed, disk=True)
        assert outcome.violations == [], f"octopis sim soak --disk --seed {seed}"


@pytest.mark.parametrize("disk", [False, True])
@pytest.mark.parametrize("seed", range(1, 6))
def test_a_seed_repeats(seed: int, disk: bool):
    assert run_seed(seed, disk=disk).digest == run_seed(seed, disk=disk, tells=True).digest


def test_a_seed_repeats_whatever_the_hashes_of_strings_are():
    code = (
        "from octopis.simulator.soak.run import run_seed\n"
        "seeds = range(1, 13)\n"
        "print([run_seed(seed, disk=disk).digest for seed in seeds for disk in (False, True)])"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": hashes},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hashes in ("1", "2")
    }
    assert len(digests) == 1


def test_different_seeds_differ():
    assert len({run_seed(seed).digest for seed in range(1, 11)}) == 10


def test_all_that_can_happen_happens():
    counts: dict[str, int] = {}
    for seed in range(1, 31):
        for name, count in run_seed(seed).counts.items():
            counts[name] = counts.get(name, 0) + count
    expected = {f"fault: {kind.value}" for kind in EVERYWHERE} | {
        "copied on the wire",
        "dropped by full queues",
        "lost on the wire",
        "lost under way",
        "sent again",
    }
    assert expected <= set(counts)


def test_all_that_can_happen_to_disks_happens():
    counts: dict[str, int] = {}
    for seed in range(1, 31):
        for name, count in run_seed(seed, disk=True).counts.items():
            counts[name] = counts.get(name, 0) + count
    expected = {f"fault: {kind.value}" for kind in FaultKind} | {
        "lost with the power",
        "read by durable subscriptions",
        "taken once, sent again",
        "publishers wait",
    }
    assert expected <= {name for name, count in counts.items() if count}


def test_seeds_are_of_all_kinds_and_most_are_of_hosts_that_live():
    kinds = [plan_of(seed).kind for seed in range(1, 101)]
    assert set(kinds) == set(Kind) - {Kind.DISKS}
    assert kinds.count(Kind.LIVING) > 50


def test_publishers_and_subscribers_that_live_are_not_killed():
    for seed in range(1, 101):
        plan = plan_of(seed)
        killed = [each for each in plan.faults if each.kind is FaultKind.DEATH]
        if plan.kind is Kind.LIVING:
            assert not {each.broker for each in killed} & set(plan.hosts)
