"""Each variation changes one thing, and nothing else."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.evaluation.experiments import EvaluationSize, Experiment, Point
from octopis.evaluation.sensitivity import BASELINE, FULL, VARIATIONS, bases, derive, points
from octopis.scenario.document import parse_scenario
from octopis.scenario.example import write_example
from octopis.scenario.folder import (
    DOCUMENT,
    FILES,
    NOTIFICATIONS,
    PUBLISHERS,
    SUBSCRIPTIONS,
    read_scenario,
)
from octopis.scenario.plan import ScenarioPlan
from support.measures import PAPER

EVERY = {each.name: each for each in FULL}
SAID = PAPER._replace(costs=replace(PAPER.costs, target_routing_us=60.0))
"""The paper's profile with every cost, whether it says that one or not."""
UNSAID = PAPER._replace(costs=replace(PAPER.costs, target_routing_us=None))


def settings(plan: ScenarioPlan) -> dict[str, object]:
    """Return everything that a document says, but for its name."""
    document, _ = parse_scenario(plan.document(), "here")
    found: dict[str, object] = {
        "topology": document.topology,
        "faults": (document.slow_links, document.cut_links),
        "seed": document.scenario.seed,
    }
    for part in (document.routing, document.queues, document.costs):
        found |= {name: getattr(part, name) for name in part.__struct_fields__}
    return found


def changed(name: str, base: ScenarioPlan) -> dict[str, tuple[object, object]]:
    before, after = settings(base), settings(EVERY[name].of(base, "varied"))
    assert before.keys() == after.keys()
    return {key: (before[key], after[key]) for key in before if before[key] != after[key]}


@pytest.fixture(params=[0, 1], ids=["quiet", "burst"])
def base(request: pytest.FixtureRequest) -> ScenarioPlan:
    return bases(EvaluationSize.FULL, SAID)[request.param]


def test_first_variation_is_none(base: ScenarioPlan):
    assert FULL[0].name == BASELINE
    assert changed(BASELINE, base) == {}


@pytest.mark.parametrize("name", [name for name in EVERY if " x " in name])
def test_cost_is_multiplied_and_no_other_setting_changes(name: str, base: ScenarioPlan):
    cost, factor = name.split(" x ")
    ((key, (before, after)),) = changed(name, base).items()
    assert key == cost
    assert after == before * float(factor)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tau 5", {"congestion_threshold": (10, 5)}),
        ("tau 20", {"congestion_threshold": (10, 20)}),
        ("t_w 25 ms", {"window_ms": (50, 25)}),
        ("t_w 100 ms", {"window_ms": (50, 100)}),
    ],
)
def test_routing_option_is_set_and_no_other_setting_changes(
    name: str, change: dict, base: ScenarioPlan
):
    assert changed(name, base) == change


@pytest.mark.parametrize("every_ms", [5, 3, 2])
def test_subscriptions_come_faster_and_no_setting_changes(every_ms: int, base: ScenarioPlan):
    name = f"a subscription every {every_ms} ms"
    assert changed(name, base) == {}
    assert EVERY[name].of(base, "v") == replace(base, name="v", subscribe_every_ms=every_ms)
    assert every_ms < base.subscribe_every_ms, "else they would not settle before publishing"


def test_other_profile_changes_costs_alone(base: ScenarioPlan):
    assert set(changed("profile octopis", base)) <= set(PAPER.costs.__struct_fields__)
    assert EVERY["profile octopis"].of(base, "v").profile.name == "octopis"


def test_all_variations_are_tested_here():
    rest = {name for name in EVERY if " x " not in name and "every" not in name}
    assert rest == {BASELINE, "tau 5", "tau 20", "t_w 25 ms", "t_w 100 ms", "profile octopis"}
    assert len(EVERY) == len(FULL) == 1 + 2 * 9 + 2 + 4 + 3 + 1


def test_cost_that_a_profile_does_not_say_is_not_varied():
    said, unsaid = (
        {each.variation for each in points(EvaluationSize.FULL, profile)}
        for profile in (SAID, UNSAID)
    )
    assert said == set(EVERY)
    assert said - unsaid == {"target_routing_us x 0.5", "target_routing_us x 2"}


def test_quick_varies_less_of_the_same():
    assert {each.name for each in VARIATIONS[EvaluationSize.QUICK]} < set(EVERY)
    assert VARIATIONS[EvaluationSize.QUICK][0].name == BASELINE


@pytest.mark.parametrize("size", EvaluationSize)
def test_both_scenarios_are_varied_alike_and_told_apart_by_their_burst(size: EvaluationSize):
    quiet, burst = bases(size, SAID)
    assert (quiet.high_rate_notifications, burst.high_rate_notifications > 0) == (0, True)
    found = points(size, SAID)
    assert len({each.name for each in found}) == len(found) == 2 * len(VARIATIONS[size])
    for plan, half in ((quiet, found[: len(found) // 2]), (burst, found[len(found) // 2 :])):
        assert [each.variation for each in half] == [each.name for each in VARIATIONS[size]]
        assert {each.base for each in half} == {plan.name}
        assert {each.x for each in half} == {plan.high_rate_notifications}
        assert {each.experiment for each in half} == {Experiment.SENSITIVITY}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[ScenarioPlan, Path]:
    plan = ScenarioPlan(
        routing=RoutingOptions(Algorithm.SNR),
        topology=from_catalogue("paper"),
        subscribers=12,
        publishers=3,
        notifications_each=4,
    )
    folder = tmp_path_factory.mktemp("base") / "scenario"
    write_example(plan, folder)
    return plan, folder


def derived(made: tuple[ScenarioPlan, Path], name: str, out: Path) -> Path:
    plan, folder = made
    varied = EVERY[name].of(plan, "varied")
    derive(Point(Experiment.SENSITIVITY, 0, varied, base="b"), folder, out / "varied")
    return out / "varied"


@pytest.mark.parametrize("name", [BASELINE, "tau 20", "routing_us x 2", "profile octopis"])
def test_derived_scenario_keeps_every_table(
    made: tuple[ScenarioPlan, Path], name: str, tmp_path: Path
):
    found = derived(made, name, tmp_path)
    for table in (SUBSCRIPTIONS, PUBLISHERS, NOTIFICATIONS):
        assert pq.read_table(found / table).equals(pq.read_table(made[1] / table))
    assert {path.name for path in found.iterdir()} == set(FILES)
    assert (found / DOCUMENT).read_text("utf-8") == EVERY[name].of(made[0], "varied").document()


def test_derived_scenario_has_other_subscribe_times_only_when_asked(
    made: tuple[ScenarioPlan, Path], tmp_path: Path
):
    found = derived(made, "a subscription every 3 ms", tmp_path)
    before, after = (pq.read_table(folder / SUBSCRIPTIONS) for folder in (made[1], found))
    assert before.column("subscribe_ns").to_pylist() == [n * 10_000_000 for n in range(12)]
    assert after.column("subscribe_ns").to_pylist() == [n * 3_000_000 for n in range(12)]
    assert after.schema == before.schema
    assert after.drop(["subscribe_ns"]).equals(before.drop(["subscribe_ns"]))
    for table in (PUBLISHERS, NOTIFICATIONS):
        assert (found / table).read_bytes() == (made[1] / table).read_bytes()
    assert len(read_scenario(found).subscribers) == 12


def test_scenario_that_cannot_be_read_is_not_left_behind(
    made: tuple[ScenarioPlan, Path], tmp_path: Path
):
    plan, folder = made
    broken = replace(plan, routing=RoutingOptions(Algorithm.SNR, window_ms=-1))
    with pytest.raises(InvalidConfiguration):
        derive(Point(Experiment.SENSITIVITY, 0, broken), folder, tmp_path / "varied")
    assert list(tmp_path.iterdir()) == []
