import json
import signal

import pytest

from octopis.core.delivery.sender import Sender
from octopis.simulator.soak import many
from octopis.simulator.soak.run import Outcome, run_seed


def test_seeds_are_run_and_added_up(sim):
    status, printed, error = sim("soak", "--seeds", "3", "--first", "5", "--json")
    assert (status, error) == (0, "")
    told = json.loads(printed)
    runs = [run_seed(seed) for seed in (5, 6, 7)]
    assert (told["first"], told["seeds"], told["violated"]) == (5, 3, [])
    assert told["deliveries"] == sum(each.deliveries for each in runs)
    assert sum(told["kinds"].values()) == 3


def test_the_summary_is_for_people(sim):
    status, printed, _ = sim("soak", "--seeds", "2")
    assert status == 0
    assert "2 seeds from 1 on" in printed
    assert "runs that violated a law" in printed


def test_one_seed_tells_its_story(sim):
    status, printed, error = sim("soak", "--seed", "3")
    assert (status, error) == (0, "")
    assert "all faults are over" in printed
    assert run_seed(3).digest in printed


def test_a_violation_is_told_with_its_seed(sim, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Sender, "take_again", lambda _: [])
    status, printed, error = sim("soak", "--seeds", "5", "--json")
    assert status == 1
    first = json.loads(printed)["violated"][0]
    assert first["violations"]
    assert f"octopis sim soak --seed {first['seed']}" in error
    status, printed, error = sim("soak", "--seed", str(first["seed"]))
    assert status == 1
    assert "VIOLATED" in printed
    assert f"seed {first['seed']}" in error


def test_the_first_interrupt_ends_it_after_a_seed_with_what_there_is(
    sim, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(seed: int, **options: bool) -> Outcome:
        if seed == 2:
            signal.raise_signal(signal.SIGINT)
        return run_seed(seed, **options)

    monkeypatch.setattr(many, "run_seed", interrupted)
    status, printed, _ = sim("soak", "--seeds", "5", "--json")
    assert status == 130
    assert json.loads(printed)["seeds"] == 2
