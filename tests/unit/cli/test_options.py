"""What a plan declares is an option of every command that takes a plan."""

from inspect import signature
from typing import Any

import pytest

from octopis.cli.commands import load_command
from octopis.cli.options import takes_plan
from octopis.core.routing import Algorithm
from octopis.scenario.plan import PLAN_NUMBERS, ScenarioPlan

DEFAULTS = {("workload", "build"): {"subscribers": 500, "publishers": 100, "notifications": 1_000}}


@pytest.mark.parametrize("words", [("sim", "example"), ("workload", "build")], ids=" ".join)
def test_every_number_of_a_plan_is_an_option_with_its_default_and_meaning(words: tuple[str, str]):
    group, name = words
    offered = {option.name: option for option in load_command(group).commands[name].params}
    for number in PLAN_NUMBERS:
        option = offered[number.key]
        assert option.opts == [f"--{number.key.replace('_', '-')}"]
        assert option.default == DEFAULTS.get(words, {}).get(number.key, number.default)
        assert option.help == number.meaning


def test_options_that_choose_an_algorithm_say_what_each_is():
    chosen = [
        option
        for words in (("overlay", "up"), ("sim", "example"), ("sim", "run"), ("route", "explain"))
        for option in load_command(words[0]).commands[words[1]].params
        if option.name == "algorithm"
    ]
    assert len(chosen) == 4
    for option in chosen:
        assert all(f" {each.value}: " in option.help for each in Algorithm)


def test_options_arrive_as_a_plan_that_was_checked():
    found: dict[str, Any] = {}

    @takes_plan(subscribers=7)
    def command(*, before: int, plan: ScenarioPlan) -> None:
        found.update(before=before, plan=plan)

    given = {
        name: each.default
        for name, each in signature(command).parameters.items()
        if name != "before"
    }
    command(before=3, **{**given, "topology": "figure-7", "algorithm": Algorithm.DNR, "seed": 9})
    plan = found["plan"]
    assert found["before"] == 3
    assert (plan.topology.name, plan.routing.algorithm) == ("figure-7", Algorithm.DNR)
    assert (plan.subscribers, plan.seed, plan.publishers) == (7, 9, 10)
