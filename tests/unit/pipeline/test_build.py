from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.quotes import synthetic_quotes
from octopis.pipeline.scenarios.build import build
from octopis.scenario.folder import read_scenario
from octopis.simulator.run import run
from support.traces import small_plan


def test_simulator_runs_what_was_built(spark: SparkSession, tmp_path: Path):
    plan = small_plan(high_rate_notifications=20)
    report = build(spark, synthetic_quotes(spark, 1, 10), plan, tmp_path / "s")
    assert (report.rows, report.set_aside) == (5000, 500)
    assert (report.sampled, report.held_back) == (1500, 3000)
    assert (report.subscriptions, report.notifications) == (40, 60)
    scenario = read_scenario(tmp_path / "s")
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == [
        "notifications.parquet",
        "publishers.parquet",
        "scenario.toml",
        "subscriptions.parquet",
    ]
    assert sum(str(each.filter) == "feed = 'hrp'" for each in scenario.subscribers) == 3
    summary = run(scenario, tmp_path / "trace")
    assert (summary.state, summary.notifications, summary.deliveries_lost) == ("complete", 60, 0)
    assert summary.deliveries >= 60


def test_plan_that_makes_no_sense_is_refused_before_any_work(spark: SparkSession, tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="subscribers must be 0 or more"):
        build(
            spark,
            synthetic_quotes(spark, 1, 2),
            small_plan(subscribers=-1),
            tmp_path / "s",
        )
    assert not (tmp_path / "s").exists()
