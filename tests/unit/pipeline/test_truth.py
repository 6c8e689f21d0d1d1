from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from octopis.errors import InvalidConfiguration
from octopis.pipeline.scenarios.truth import FOLDER, true_pairs, write_truth
from octopis.scenario.folder import read_scenario
from support.traces import make_scenario


def test_pairs_and_targets_say_the_same_as_the_filters(spark: SparkSession, tmp_path: Path):
    scenario = read_scenario(make_scenario(tmp_path / "s", high_rate_notifications=5))
    report = write_truth(spark, scenario, tmp_path / "t")
    wanted = {
        (scenario.publishers[publisher].name, sequence, each.subscription, each.broker.short)
        for batch in scenario.publications()
        for publisher, sequence, _, attributes in zip(*batch, strict=True)
        for each in scenario.subscribers
        if each.filter.matches(attributes)
    }
    pairs = [tuple(row) for row in spark.read.parquet(str(tmp_path / "t/pairs.parquet")).collect()]
    assert sorted(pairs) == sorted(pair[:3] for pair in wanted)
    assert report.pairs == len(pairs) > 0
    targets = spark.read.parquet(str(tmp_path / "t/targets.parquet")).collect()
    assert len(targets) == scenario.notification_count
    for row in targets:
        brokers = {pair[3] for pair in wanted if pair[:2] == (row["publisher"], row["sequence"])}
        assert row["brokers"] == sorted(brokers)


def test_truth_beside_the_scenario_is_used_and_must_be_its_own(spark: SparkSession, tmp_path: Path):
    folder = make_scenario(tmp_path / "s")
    scenario = read_scenario(folder)
    made_now = sorted(map(tuple, true_pairs(spark, scenario).collect()))
    write_truth(spark, scenario, folder / FOLDER)
    assert sorted(map(tuple, true_pairs(spark, scenario).collect())) == made_now
    other = read_scenario(make_scenario(tmp_path / "other", seed=2))
    (folder / FOLDER).rename(other.folder / FOLDER)
    with pytest.raises(InvalidConfiguration, match="was made from another scenario: remove it"):
        true_pairs(spark, other)
    (other.folder / FOLDER / "truth.json").unlink()
    with pytest.raises(InvalidConfiguration, match="is not a whole ground truth: remove it"):
        true_pairs(spark, other)
