from pathlib import Path

import pytest

from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.pipeline.runs.run_table import Loaders, RunTable, parse_runs
from octopis.scenario.costs import profile_named
from octopis.scenario.plan import PLAN_NUMBERS, PlanNumber
from octopis.trace import Level

LOADERS = Loaders(from_catalogue, profile_named)


def parsed(text: str) -> RunTable:
    return parse_runs(text, Path("here/runs.toml"), LOADERS)


def test_lists_stand_for_every_combination():
    table = parsed(
        'level = "full"\n[[runs]]\nalgorithm = ["snr", "dnr"]\nsubscribers = [5, 6]\n'
        "seed = [1, 2, 3]\nper_minute = 600\nhigh_rate = 9"
    )
    assert table.level is Level.FULL
    assert len(table.runs) == 12
    first = table.runs[0]
    assert first.name == "figure-3-5s-10p-100n-600pm-hrp9at100000pm-seed1-snr"
    assert first.plan is not None
    assert (first.plan.per_minute, first.plan.high_rate_notifications) == (600, 9)
    assert {run.plan.name for run in table.runs if run.plan} == {
        run.name.rpartition("-")[0] for run in table.runs
    }


@pytest.mark.parametrize("number", PLAN_NUMBERS, ids=lambda number: number.key)
def test_every_number_of_a_plan_is_a_key_and_tells_runs_apart(number: PlanNumber):
    other = number.kind(number.default * 2 or 7)
    text = f'[[runs]]\nalgorithm = "snr"\nhigh_rate = 5\n{number.key} = [{number.default}, {other}]'
    runs = parsed(text.replace("high_rate = 5\nhigh_rate =", "high_rate =")).runs
    values = [getattr(run.plan, number.field) for run in runs]
    assert values == [number.default, other]
    assert len({run.name for run in runs}) == 2


def test_page_names_every_key_of_a_row():
    page = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text(encoding="utf-8")
    for key in ("scenario", "topology", "profile", *(number.key for number in PLAN_NUMBERS)):
        assert f"`{key}`" in page


def test_scenario_is_found_beside_the_table():
    table = parsed('[[runs]]\nscenario = "burst"\nalgorithm = "bid"')
    assert [(run.name, run.scenario, run.algorithm) for run in table.runs] == [
        ("burst-bid", Path("here/burst").absolute(), Algorithm.BID)
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "runs.toml: .*runs"),
        ("runs = []", "asks for no run"),
        ('[[runs]]\nalgorithm = "fast"', "fast"),
        ('[[runs]]\nalgorithm = "snr"\nsubscriber = 1', "did you mean 'subscribers'"),
        ('[[runs]]\nalgorithm = "snr"\nseed = "x"', "runs"),
        ('[[runs]]\nalgorithm = "snr"\nsubscribers = -1', "subscribers must be 0 or more"),
        ('[[runs]]\nalgorithm = ["snr", "snr"]', "was there before"),
        ('[[runs]]\nalgorithm = "snr"\nscenario = "a"\nseed = 1', "a scenario has its seed"),
        ('[[runs]]\nalgorithm = "snr"\ntopology = "figure-33"', "figure-3"),
    ],
)
def test_table_that_makes_no_sense_is_refused(text: str, message: str):
    with pytest.raises(InvalidConfiguration, match=message):
        parsed(text)
