"""What must hold exactly, and how one run among many breaks it."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.evaluation.exact import distances, exact, tree_lengths
from octopis.evaluation.experiments import Experiment
from octopis.pipeline.spark.traces import Traces
from support.measures import Change, by_algorithm, measures
from support.traces import make_scenario, make_trace

BID, SNR, DNR, TNR = Algorithm.BID, Algorithm.SNR, Algorithm.DNR, Algorithm.TNR


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


@pytest.mark.parametrize("algorithm", [SNR, DNR, TNR])
@pytest.mark.parametrize(
    ("broken", "values"),
    [
        (0, {"subscription_ims_max": 75}),
        (0, {"subscription_ims_min": 73}),
        (0, {"brokers": 74}),
        (1, {"trees_longer": 1}),
        (2, {"subscription_duplicates": 1}),
        (4, {"is_exact": False}),
        (4, {"deliveries_lost": 1}),
    ],
)
def test_one_run_breaks_it(algorithm: Algorithm, broken: int, values: dict):
    assert holds(one_run(algorithm, **values)) == [place != broken for place in range(5)]


@pytest.mark.parametrize("algorithm", [SNR, DNR])
def test_one_other_delay_breaks_it(algorithm: Algorithm):
    found = holds(one_run(algorithm, subscription_delay_mean_ns=5_000_000.5))
    assert found == [True, True, True, False, True]


def test_subscriptions_may_take_another_time_under_tnr_whose_messages_are_longer():
    assert holds(one_run(TNR, subscription_delay_mean_ns=5_000_000.5)) == [True] * 5


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
    # Quick: 4 + 3 + 3 points under four algorithms, 1 under three, and 2 x 7 variations.
    assert deliveries.found == "99 of 99 runs, 99,000 deliveries"
    # Three algorithms: 1,875 + 3 x 300 + 4 x 500 subscriptions, and 7 x (250 + 500) variations.
    assert trees.found == f"0 of {3 * (1875 + 900 + 2000 + 5250):,} trees are longer"


SCHEMA = "run string, broker string, tree_length_max long, tree_length_mean double, ims long"
AT_AN_END = ("a,0", 3, 1.875, 8)
"""Of Figure 7, 3 x 3: 1 + 1 + 1 + 2 + 2 + 2 + 3 + 3 over 8 others."""
IN_THE_MIDDLE = ("b,0", 2, 1.5, 8)


@pytest.fixture
def far(spark: SparkSession) -> DataFrame:
    return distances(spark, from_catalogue("figure-7").scot)


def counted(spark: SparkSession, far: DataFrame, *rows: tuple) -> dict[str, tuple[int, ...]]:
    found = tree_lengths(spark.createDataFrame(list(rows), SCHEMA), far).collect()
    return {row["run"]: tuple(row)[1:] for row in found}


def test_distances_are_those_of_the_graph(far: DataFrame):
    found = {row["broker"]: (row["furthest"], row["mean"]) for row in far.collect()}
    assert len(found) == 9
    assert found["a,0"] == found["c,2"] == (3, 1.875)
    assert found["b,0"] == found["b,1"] == (2, 1.5)


def test_trees_as_short_as_the_graph_allows_are_not_counted_as_longer(
    spark: SparkSession, far: DataFrame
):
    rows = [("run", *AT_AN_END), ("run", *IN_THE_MIDDLE), ("run", *AT_AN_END)]
    assert counted(spark, far, *rows) == {"run": (3, 0, 8, 8)}


def test_longer_trees_are_counted_by_their_longest_way_and_by_their_mean(
    spark: SparkSession, far: DataFrame
):
    found = counted(
        spark,
        far,
        ("one", *AT_AN_END),
        ("one", "a,0", 4, 1.875, 9),
        ("one", "a,0", 3, 2.0, 7),
        ("other", *IN_THE_MIDDLE),
        ("other", "b,0", 3, 1.875, 8),
    )
    assert found == {"one": (3, 2, 7, 9), "other": (2, 1, 8, 8)}


def test_trees_of_real_runs_are_shortest_and_take_a_message_for_each_other_broker(
    spark: SparkSession, tmp_path: Path
):
    scenario = make_scenario(tmp_path / "s")
    traces = [
        make_trace(scenario, tmp_path / each.value, each) for each in (Algorithm.SNR, Algorithm.BID)
    ]
    subscriptions = Traces(spark, traces).table("subscriptions")
    far = distances(spark, from_catalogue("figure-3").scot)
    bid, snr = tree_lengths(subscriptions, far).collect()
    assert tuple(snr) == ("snr", 40, 0, 17, 17)
    assert (bid["run"], bid["trees"]) == ("bid", 40)
    assert bid["subscription_ims_min"] > 17, "a flood takes more"
