"""Evaluations by hand: measures in which all algorithms are equal, but for what a test changes."""

from collections.abc import Callable, Mapping
from typing import Any

from octopis.core.routing import Algorithm
from octopis.evaluation import experiments, sensitivity
from octopis.evaluation.experiments import EvaluationSize, Point
from octopis.evaluation.folders import Request
from octopis.evaluation.measures import Measure, Measures, Series
from octopis.scenario.costs import profile_named

PAPER = profile_named("paper")
CALM = Series([1.0, 2.0, 3.0], [0.5, 0.5, 0.5])
BROKERS = 75

Change = Callable[[Point, Algorithm], Mapping[str, Any]]


def request(**changes: Any) -> Request:
    facts: dict[str, Any] = {
        "version": "1.2.3",
        "size": EvaluationSize.QUICK,
        "seeds": 1,
        "profile": "paper",
        "costs": PAPER.costs,
        "quotes": [],
        "algorithms": tuple(each.value for each in experiments.ALL),
    }
    return Request(**(facts | changes))


def measures(seeds: int = 1, change: Change = lambda _point, _algorithm: {}) -> Measures:
    """Return all runs of a quick evaluation; `change` says what is not as usual in a run.

    It may name any metric, and also `series`, `cases` and `is_exact`.
    """
    points = [
        point
        for seed in range(1, seeds + 1)
        for point in experiments.points(EvaluationSize.QUICK, seed, PAPER)
    ]
    points += sensitivity.points(EvaluationSize.QUICK, PAPER)
    return Measures(
        _measure(point, algorithm, dict(change(point, algorithm)))
        for point in points
        for algorithm in point.algorithms
    )


def by_algorithm(
    value: str, bid: float, snr: float, dnr: float, tnr: float | None = None
) -> Change:
    """Return the change of one value that is the same in all experiments; TNR is like DNR."""
    values = {Algorithm.BID: bid, Algorithm.SNR: snr, Algorithm.DNR: dnr}
    values[Algorithm.TNR] = dnr if tnr is None else tnr
    return lambda _point, algorithm: {value: values[algorithm]}


def _measure(point: Point, algorithm: Algorithm, changes: dict[str, Any]) -> Measure:
    has_burst = bool(point.plan.high_rate_notifications)
    series = changes.pop("series", CALM if has_burst else None)
    cases, is_exact = changes.pop("cases", {}), changes.pop("is_exact", True)
    return Measure(point, algorithm, _usual(point) | changes, series, cases, is_exact)


def _usual(point: Point) -> dict[str, Any]:
    plan = point.plan
    published = plan.publishers * plan.notifications_each
    usual = {
        "brokers": BROKERS,
        "seed": plan.seed,
        "subscriptions": plan.subscribers,
        "notifications": published + plan.high_rate_publishers * plan.high_rate_notifications,
        "deliveries": 1_000,
        "deliveries_lost": 0,
        "subscription_ims": (BROKERS - 1) * plan.subscribers,
        "subscription_ims_min": BROKERS - 1,
        "subscription_ims_max": BROKERS - 1,
        "subscription_duplicates": 0,
        "subscription_delay_mean_ns": 5_000_000.0,
        "tree_length_mean": 4.0,
        "trees": plan.subscribers,
        "trees_longer": 0,
        "notification_ims": 20_000,
        "notification_delay_mean_ns": 8_000_000.0,
        "notification_delay_p50_ns": 6_000_000,
        "matching_delay_mean_ns": 100_000.0,
        "delivered_within_1s_share": 0.5,
    }
    if plan.high_rate_notifications:
        usual |= {"high_rate_queue_mean": 40.0, "high_rate_queued": 160.0, "high_rate_links": 4}
    return usual
