"""Percentages worked out by hand, and what makes a claim one that is reproduced."""

import pytest

from octopis.core.routing import Algorithm
from octopis.evaluation.claims import Claim, Outcome, less, more, outcome, ratio
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Measures
from support.measures import by_algorithm, measures

BID, SNR, DNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR
IMS = "notification_ims"
SUBSCRIBERS = Experiment.SUBSCRIBERS


def claim(paper: float | None, value=lambda _measures, _seed: 0.0, unit: str = "s") -> Claim:
    return Claim(
        where="here",
        text="it is so",
        paper=paper,
        unit=unit,
        value=value,
        why=lambda _all: "so it is",
    )


def by_seed(*values: float | None):
    return lambda _measures, seed: values[seed - 1]


def test_ratio_is_the_mean_over_points_and_over_ours():
    """Of 4 points: in the smallest SNR has half and DNR a quarter of BID's; else as many."""

    def fewer(point, algorithm):
        share = {SNR: 0.5, DNR: 0.25}.get(algorithm, 1) if point.x == 125 else 1
        return {IMS: 4_000 * point.x * share}

    found = measures(change=fewer)
    assert ratio(found, IMS, SUBSCRIBERS, (SNR,), BID) == pytest.approx((0.5 + 3) / 4)
    assert ratio(found, IMS, SUBSCRIBERS, (DNR,), BID) == pytest.approx((0.25 + 3) / 4)
    assert ratio(found, IMS, SUBSCRIBERS, (SNR, DNR), BID) == pytest.approx((0.75 + 6) / 8)
    assert ratio(found, IMS, SUBSCRIBERS, (SNR, DNR), BID, x=125) == pytest.approx(0.375)
    assert ratio(found, IMS, Experiment.PUBLISHERS, (SNR,), BID) == 1


def test_ratio_of_nothing_to_nothing_is_one():
    none = measures(change=by_algorithm(IMS, 0, 0, 0))
    assert ratio(none, IMS, SUBSCRIBERS, (SNR,), BID) == 1


def test_less_and_more_are_percentages_of_theirs():
    found = measures(change=by_algorithm(IMS, bid=200, snr=150, dnr=250))
    assert less(IMS, SUBSCRIBERS, (SNR,), BID)(found, 1) == pytest.approx(25)
    assert less(IMS, SUBSCRIBERS, (DNR,), BID)(found, 1) == pytest.approx(-25)
    assert more(IMS, SUBSCRIBERS, (DNR,), BID)(found, 1) == pytest.approx(25)
    assert more(IMS, SUBSCRIBERS, (BID,), SNR)(found, 1) == pytest.approx(100 / 3)


def test_each_seed_has_its_own_value():
    def second_is_worse(point, algorithm):
        return {IMS: 100 if algorithm is BID else 150 if point.seed == 2 else 60}

    value = less(IMS, SUBSCRIBERS, (SNR, DNR), BID)
    found = outcome(claim(40, value, "%"), measures(3, second_is_worse))
    assert found.values == pytest.approx([40, -50, 40])
    assert found.ours == pytest.approx(10)
    assert not found.direction_holds, "one seed goes the other way"
    assert found.verdict == "not reproduced"


def test_direction_that_holds_for_every_seed_holds():
    found = outcome(claim(2, by_seed(1, 2, 3)), measures(3))
    assert found.direction_holds
    assert (found.ours, found.verdict) == (2, "near")


def test_seed_without_a_figure_breaks_the_direction():
    found = outcome(claim(2, by_seed(2, None)), measures(2))
    assert found.values == [2]
    assert (found.direction_holds, found.verdict) == (False, "not reproduced")


def test_no_figure_at_all_is_not_reproduced():
    found = outcome(claim(2, by_seed(None)), measures(1))
    assert (found.ours, found.verdict) == (None, "not reproduced")


def test_direction_may_compare_with_another_value():
    above_five = Claim(
        where="here",
        text="it is over 5",
        paper=7,
        unit="s",
        value=by_seed(6, 4),
        why=lambda _all: "it is not",
        holds=lambda _measures, _seed, value: value > 5,
    )
    assert outcome(above_five, measures(1)).direction_holds
    assert not outcome(above_five, measures(2)).direction_holds


@pytest.mark.parametrize(
    ("paper", "unit", "ours", "verdict"),
    [
        (100, "s", 75, "near"),
        (100, "s", 74.9, "smaller"),
        (100, "s", 125, "near"),
        (100, "s", 125.1, "larger"),
        (40, "% less", 50, "near"),
        (40, "% less", 51, "larger"),
        (4, "% less", 2, "near"),
        (4, "% less", 1.9, "smaller"),
        (4, "% less", 6, "near"),
        (4, "% less", 6.1, "larger"),
        (4, "bursts", 2, "smaller"),
        (None, "points", 0.1, "holds"),
        (None, "points", -0.1, "not reproduced"),
        (40, "% less", -40, "not reproduced"),
        (40, "% less", 0, "not reproduced"),
    ],
)
def test_verdict(paper: float | None, unit: str, ours: float, verdict: str):
    assert outcome(claim(paper, by_seed(ours), unit), measures(1)).verdict == verdict


def test_reason_is_given_only_where_ours_is_another():
    assert outcome(claim(10, by_seed(10)), measures(1)).reason == ""
    assert outcome(claim(None, by_seed(10)), measures(1)).reason == ""
    assert outcome(claim(10, by_seed(50)), measures(1)).reason == "so it is"
    assert outcome(claim(10, by_seed(-10)), measures(1)).reason == "so it is"


def test_document_says_everything():
    found = outcome(claim(10, by_seed(8, 4)), measures(2))
    assert found.as_document() == {
        "where": "here",
        "claim": "it is so",
        "unit": "s",
        "paper": 10,
        "ours": 6,
        "by_seed": [8, 4],
        "direction_holds": True,
        "verdict": "smaller",
        "reason": "so it is",
    }


def test_outcome_without_runs_has_no_mean():
    assert Outcome(claim(1), [], direction_holds=True, reason="").verdict == "not reproduced"
    assert outcome(claim(1), Measures([])).ours is None
