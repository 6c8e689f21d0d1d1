"""Reasons are said with what was measured, worked out by hand here."""

import pytest

from octopis.core.routing import Algorithm
from octopis.evaluation import reasons
from octopis.evaluation.experiments import Experiment
from octopis.evaluation.measures import Measures, Series
from support.measures import by_algorithm, measures

BID, SNR, DNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR
EVERY = (
    reasons.subscription_ims,
    reasons.tree_lengths,
    reasons.subscription_delay,
    reasons.notification_delay,
    reasons.notification_ims,
    reasons.matching_delay,
    reasons.burst_against_snr,
    reasons.burst_against_bid,
    reasons.stabilisation,
    reasons.burst_ims,
    reasons.within_a_second,
    reasons.several,
)


def without_sensitivity(found: Measures) -> Measures:
    return Measures(
        each for each in found.all if each.point.experiment is not Experiment.SENSITIVITY
    )


@pytest.mark.parametrize("reason", EVERY, ids=lambda each: each.__name__)
def test_reason_is_whole_sentences(reason):
    for found in (measures(), measures(3), without_sensitivity(measures())):
        text = reason(found).strip()
        assert text[0].isupper() or text[0].isdigit()
        assert text.endswith(".")
        assert "  " not in text


def test_messages_of_a_subscription_are_counted():
    def flood(point, algorithm):
        return {"subscription_ims": point.plan.subscribers * (370 if algorithm is BID else 74)}

    assert "takes 74 messages, and 370 by flooding" in reasons.subscription_ims(
        measures(change=flood)
    )


def test_share_of_trees_as_short_is_over_all_points():
    """Of 1,875 subscriptions with 125, 250, 500 and 1,000 subscribers, 750 have longer trees."""

    def some(point, algorithm):
        return {"trees_longer": 0 if algorithm is not BID or point.x != 1000 else 750}

    assert "60% of BID's trees are as short as ours" in reasons.tree_lengths(measures(change=some))


def test_sensitivity_rows_are_quoted_by_name():
    def faster(point, algorithm):
        special = point.variation in {"identification_ns x 10", "a subscription every 3 ms"}
        return {
            "notification_delay_mean_ns": 60 if special and algorithm is SNR else 100,
            "subscription_delay_mean_ns": 30 if special and algorithm is SNR else 100,
        }

    found = measures(change=faster)
    quoted = "40.0% less at `identification_ns x 10`"
    none = "0.0% less at `matching_per_subscription_ns x 0`"
    assert quoted in reasons.notification_delay(found)
    assert none in reasons.notification_delay(found)
    assert "70.0% less at `a subscription every 3 ms`." in reasons.subscription_delay(found)
    assert "sensitivity" not in reasons.notification_delay(without_sensitivity(found))


def test_delays_are_given_for_the_fewest_and_the_most_subscribers():
    def change(point, algorithm):
        less = {125: 0.8, 1000: 1.5}.get(point.x, 1) if algorithm is SNR else 1
        return {"notification_delay_mean_ns": 1000 * less}

    said = reasons.notification_delay(measures(change=change))
    assert "the delay is 20.0% less with 125 and 50.0% more with 1,000 subscribers." in said


def test_brokers_that_match_are_counted_by_messages():
    """A message to each of 9 further brokers."""

    def change(point, _algorithm):
        return {"notification_ims": 9 * point.plan.publishers * point.plan.notifications_each}

    assert "at 10 brokers on average" in reasons.matching_delay(measures(change=change))


def test_queues_of_the_fastest_burst_are_given():
    def change(point, algorithm):
        length = {BID: 4321, SNR: 1234, DNR: 56}.get(algorithm, 8) if point.x == 100_000 else 7
        return {"high_rate_queue_mean": length, "high_rate_links": 9}

    found = measures(change=change)
    for reason in (reasons.burst_against_snr, reasons.burst_against_bid):
        assert "at 100K are BID 4,321 messages on 9 links" in reason(found)
        assert "SNR 1,234 messages on 9 links" in reason(found)
        assert "DNR 56 messages on 9 links" in reason(found)


def test_ends_of_overload_are_given_for_every_rate_and_algorithm():
    def change(point, algorithm):
        if algorithm is BID:
            return {"series": Series([9.0], [2.0])}
        return {"series": Series([point.x / 1000 + 0.2, 500.0], [2.0, 0.1])}

    said = reasons.stabilisation(measures(change=change))
    assert "100K: BID never, DNR 100 s, SNR 100 s; 80K: BID never, DNR 80 s" in said
    assert "6.0 ms or less" in said


def test_messages_of_the_burst_are_given():
    said = reasons.burst_ims(measures(change=by_algorithm("notification_ims", 30_000, 1234, 5678)))
    assert said.startswith("At 100K: BID 30,000, SNR 1,234, DNR 5,678. ")


def test_notifications_that_are_not_of_the_burst_are_counted():
    assert reasons.within_a_second(measures()).startswith("20,000 of 30,000 notifications are not")


def test_leads_are_by_number_of_high_rate_publishers_and_of_one_seed():
    def change(point, algorithm):
        if algorithm is not DNR:
            return {"notification_delay_mean_ns": 100}
        several = point.experiment is Experiment.SEVERAL
        return {"notification_delay_mean_ns": (90 if several else 70) - 10 * (point.seed == 2)}

    found = measures(2, change)
    assert reasons.leads(found, 1) == {1: pytest.approx(30), 5: pytest.approx(10)}
    assert reasons.leads(found, 2) == {1: pytest.approx(40), 5: pytest.approx(20)}
    assert reasons.several(found).endswith("publishers: 1: 30.0%, 5: 10.0%.")
