"""What must hold exactly, and how one run among many breaks it."""

import pytest

from octopis.core.routing import Algorithm
from octopis.evaluation.exact import exact
from octopis.evaluation.experiments import Experiment
from support.measures import Change, by_algorithm, measures

BID, SNR, DNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR


def holds(change: Change) -> list[bool]:
    return [each.holds for each in exact(measures(2, change))]


def one_run(algorithm: Algorithm, **values) -> Change:
    """Return what changes a single run."""

    def change(point, which):
        there = point.x == 60_000 and point.seed == 2 and point.experiment is Experiment.BURST
        return values if there and which is algorithm else {}

    return change


def test_all_five_hold_where_nothing_is_wrong():
    assert holds(lambda _point, _algorithm: {}) == [True] * 5


@pytest.mark.parametrize("algorithm", [SNR, DNR])
@pytest.mark.parametrize(
    ("broken", "values"),
    [
        (0, {"subscription_ims_max": 75}),
        (0, {"subscription_ims_min": 73}),
        (0, {"brokers": 74}),
        (1, {"trees_longer": 1}),
        (2, {"subscription_duplicates": 1}),
        (3, {"subscription_delay_mean_ns": 5_000_000.5}),
        (4, {"is_exact": False}),
        (4, {"deliveries_lost": 1}),
    ],
)
def test_one_run_breaks_it(algorithm: Algorithm, broken: int, values: dict):
    assert holds(one_run(algorithm, **values)) == [place != broken for place in range(5)]


def test_bid_may_flood_and_have_longer_trees_but_must_deliver_exactly():
    flood = {
        "subscription_ims_min": 300,
        "subscription_ims_max": 400,
        "trees_longer": 9,
        "subscription_duplicates": 99,
        "subscription_delay_mean_ns": 1.0,
    }
    assert holds(one_run(BID, **flood)) == [True] * 5
    assert holds(one_run(BID, is_exact=False)) == [True, True, True, True, False]


def test_every_subscription_must_take_all_but_one_not_the_same_wrong_number():
    wrong = by_algorithm("subscription_ims_min", 76, 76, 76)
    both = lambda *run: {**wrong(*run), "subscription_ims_max": 76}  # noqa: E731 - one expression
    assert holds(both)[0] is False


def test_found_is_said_in_numbers():
    messages, trees, duplicates, delays, deliveries = exact(
        measures(1, one_run(DNR, trees_longer=1))
    )
    assert messages.found == "74 to 74 messages, 75 brokers"
    assert duplicates.found == "0 duplicates"
    assert delays.found == "0 scenarios with another delay"
    # Quick: 4 + 3 + 3 points under three algorithms, 1 under two, and 2 x 7 variations.
    assert deliveries.found == "74 of 74 runs, 74,000 deliveries"
    # Two algorithms: 1,875 + 3 x 300 + 4 x 500 subscriptions, and 7 x (250 + 500) variations.
    assert trees.found == f"0 of {2 * (1875 + 900 + 2000 + 5250):,} trees are longer"
