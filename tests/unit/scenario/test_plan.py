from math import nan

import pytest

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.toml import metas
from octopis.errors import InvalidConfiguration
from octopis.scenario.document import SlowLink, parse_scenario
from octopis.scenario.plan import MINUTES_MAX, PLAN_NUMBERS, PlanNumber, ScenarioPlan, plan_from

SNR = RoutingOptions(Algorithm.SNR)


def test_document_says_what_the_plan_says():
    slow = SlowLink("a,0", "b,0", 20.0, 0.0, 9.0)
    plan = ScenarioPlan(
        routing=RoutingOptions(Algorithm.DNR, 3.0, 20.0), name="mine", faults=(slow,), seed=7
    )
    document, topology = parse_scenario(plan.document(), "plan")
    assert document.scenario.name == "mine"
    assert document.scenario.seed == 7
    assert document.routing == plan.routing
    assert document.queues == plan.queues
    assert document.costs == plan.profile.costs
    assert document.slow_links == (slow,)
    assert topology == plan.topology


def test_plan_that_would_last_too_long_is_refused():
    ScenarioPlan(routing=SNR, notifications_each=MINUTES_MAX, per_minute=1).check()
    with pytest.raises(InvalidConfiguration, match="due after 1,000,001 minutes"):
        ScenarioPlan(routing=SNR, notifications_each=MINUTES_MAX + 1, per_minute=1).check()
    with pytest.raises(InvalidConfiguration, match="a scenario lasts 1,000,000 at most"):
        ScenarioPlan(routing=SNR, high_rate_notifications=2_000, high_rate_per_minute=0.001).check()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"high_rate_publishers": 0}, "high_rate_publishers must be 1 or more, not 0"),
        ({"high_rate_publishers": 4}, "figure-3 has 3 clusters, so from 1 to 3 high-rate"),
        ({"subscribe_every_ms": -1}, "subscribe_every_ms must be between 0 and 60000, not -1"),
    ],
)
def test_plan_that_cannot_be_placed_is_refused(options: dict[str, float], complaint: str):
    with pytest.raises(InvalidConfiguration, match=complaint):
        ScenarioPlan(routing=SNR, **options).check()


@pytest.mark.parametrize("number", PLAN_NUMBERS, ids=lambda number: number.key)
def test_every_number_is_checked_by_the_bounds_that_it_is_declared_with(number: PlanNumber):
    assert number.meaning
    plan_from({number.key: number.default}, routing=SNR)
    (declared,) = metas(number.declared)
    assert declared.ge is not None
    for wrong in (declared.ge - 1, nan, *(() if declared.le is None else (declared.le + 1,))):
        with pytest.raises(InvalidConfiguration, match=f"^{number.key} must be .*, not {wrong}$"):
            plan_from({number.key: wrong}, routing=SNR)
