import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.pipeline.runs.run_table import Loaders, RunTable, parse_runs
from octopis.pipeline.runs.sweep import scenario_of, sweep
from octopis.scenario.costs import profile_named
from octopis.trace import read_summary
from support.traces import make_scenario, make_trace

SIZES = "subscribers = 20\npublishers = 2\nnotifications = 5\n"


def table(folder: Path, text: str) -> RunTable:
    return parse_runs(text, folder / "runs.toml", Loaders(from_catalogue, profile_named))


def states(reports: list) -> dict[str, str]:
    return {each.run: each.state for each in reports}


def test_runs_are_done_once_and_each_is_whole(spark: SparkSession, tmp_path: Path):
    runs = table(tmp_path, f'[[runs]]\nalgorithm = ["snr", "dnr"]\nseed = [1, 2]\n{SIZES}')
    out = tmp_path / "out"
    first = sweep(spark, runs, out)
    assert set(states(first).values()) == {"done"}
    assert len(list((out / "scenarios").iterdir())) == 2, "algorithms share a scenario"
    for run in runs.runs:
        summary = read_summary(out / run.name)
        assert (summary.state, summary.algorithm) == ("complete", run.algorithm.value)
        assert scenario_of(out / run.name) == out / "scenarios" / run.name.rpartition("-")[0]
    removed = out / runs.runs[0].name
    shutil.rmtree(removed)
    (out / ".left.1.draft").mkdir()
    kept = (out / runs.runs[1].name / "run.json").stat().st_mtime_ns
    again = states(sweep(spark, runs, out))
    assert again.pop(removed.name) == "done"
    assert set(again.values()) == {"skipped"}
    assert (out / runs.runs[1].name / "run.json").stat().st_mtime_ns == kept
    assert not (out / ".left.1.draft").exists()


def test_run_of_a_sweep_is_the_run_of_the_simulator(spark: SparkSession, tmp_path: Path):
    make_scenario(tmp_path / "s")
    sweep(spark, table(tmp_path, '[[runs]]\nscenario = "s"\nalgorithm = "snr"'), tmp_path / "out")
    alone = make_trace(tmp_path / "s", tmp_path / "alone")
    for path in alone.iterdir():
        assert (tmp_path / "out" / "s-snr" / path.name).read_bytes() == path.read_bytes()


def test_failed_run_is_written_down_and_the_others_go_on(spark: SparkSession, tmp_path: Path):
    make_scenario(tmp_path / "good")
    stopping = make_scenario(tmp_path / "stops", high_rate_notifications=300)
    document = (stopping / "scenario.toml").read_text(encoding="utf-8")
    document = document.replace("capacity_messages = 100000", "capacity_messages = 1")
    document = document.replace("drop_newest", "stop", 1)
    (stopping / "scenario.toml").write_text(document, encoding="utf-8")
    text = '[[runs]]\nscenario = ["gone", "stops", "good"]\nalgorithm = "snr"'
    reports = sweep(spark, table(tmp_path, text), tmp_path / "out")
    assert states(reports) == {"gone-snr": "failed", "stops-snr": "failed", "good-snr": "done"}
    assert "there is no" in reports[0].error
    assert not (tmp_path / "out" / "stops-snr").exists()
    assert (tmp_path / "out" / "failed" / "stops-snr" / "error.json").exists()
    assert read_summary(tmp_path / "out" / "failed" / "stops-snr").state == "partial"
    make_scenario(tmp_path / "gone")
    assert states(sweep(spark, table(tmp_path, text), tmp_path / "out"))["gone-snr"] == "done"


def test_folder_with_another_run_of_that_name_is_refused(spark: SparkSession, tmp_path: Path):
    make_scenario(tmp_path / "s")
    runs = table(tmp_path, '[[runs]]\nscenario = "s"\nalgorithm = "snr"')
    sweep(spark, runs, tmp_path / "out")
    shutil.rmtree(tmp_path / "s")
    make_scenario(tmp_path / "s", seed=2)
    with pytest.raises(InvalidConfiguration, match="was run from another scenario"):
        sweep(spark, runs, tmp_path / "out")


def test_scenario_that_is_another_of_that_name_is_refused(spark: SparkSession, tmp_path: Path):
    runs = table(tmp_path, f'[[runs]]\nalgorithm = "snr"\n{SIZES}')
    sweep(spark, runs, tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / runs.runs[0].name)
    document = next((tmp_path / "out" / "scenarios").glob("*/scenario.toml"))
    changed = document.read_text(encoding="utf-8").replace("window_ms = 50", "window_ms = 40")
    document.write_text(changed, encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match="holds another scenario of that name"):
        sweep(spark, runs, tmp_path / "out")


def test_folder_that_cannot_be_written_is_named(spark: SparkSession, tmp_path: Path):
    (tmp_path / "file").touch()
    runs = table(tmp_path, f'[[runs]]\nalgorithm = "snr"\n{SIZES}')
    with pytest.raises(InvalidConfiguration, match="cannot write"):
        sweep(spark, runs, tmp_path / "file" / "out")


def test_trace_of_no_sweep_has_no_scenario_there(tmp_path: Path):
    assert scenario_of(tmp_path / "trace") is None
