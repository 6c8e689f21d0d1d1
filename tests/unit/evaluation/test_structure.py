"""Trees that are longer than the graph asks for are counted, on real Spark."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.evaluation.exact import distances, tree_lengths
from octopis.pipeline.results.metrics import Traces
from support.traces import make_scenario, make_trace

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
