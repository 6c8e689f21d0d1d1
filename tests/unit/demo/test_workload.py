from pathlib import Path

from pyspark.sql import SparkSession

from octopis.demo.workload import FULL, SMALL, prepare
from octopis.pipeline.scenarios.truth import true_pairs
from octopis.scenario.folder import Scenario


def test_every_size_is_a_sound_plan_with_a_high_rate_publisher():
    for plan in (FULL, SMALL):
        plan.check()
        assert plan.high_rate_notifications > plan.publishers * plan.notifications_each / 2


def test_scenario_is_prepared_with_its_ground_truth(
    spark: SparkSession, tmp_path: Path, scenario: Scenario
):
    prepared = prepare(spark, SMALL, tmp_path / "scenario")
    assert prepared.scenario.notification_count == scenario.notification_count == 330
    assert [(each.name, each.broker) for each in prepared.scenario.publishers] == [
        (each.name, each.broker) for each in scenario.publishers
    ]
    assert prepared.due == true_pairs(spark, prepared.scenario).count() >= 900
