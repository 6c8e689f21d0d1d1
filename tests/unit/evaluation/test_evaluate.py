"""What an evaluation consists of, and what it does where something is missing or goes wrong."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from octopis.core.topology import format_topology, from_catalogue
from octopis.errors import InvalidConfiguration, SweepFailed
from octopis.evaluation import evaluate, sensitivity
from octopis.evaluation.evaluate import Evaluation, check_quotes
from octopis.evaluation.exact import exact
from octopis.evaluation.experiments import EvaluationSize, Experiment, points
from octopis.evaluation.folders import claim_folder
from octopis.evaluation.sensitivity import FULL
from octopis.pipeline.ingest.folder import read_data
from octopis.pipeline.ingest.ingest import ingest
from support.evaluations import evaluation_in, tiny_sizes
from support.measures import PAPER, request
from support.quotes import HEADER, csv_rows, write_lines


def evaluation(out: Path, **changes) -> Evaluation:
    asked = request(**changes)
    return Evaluation(claim_folder(out, asked), asked, PAPER, lambda _progress: None)


def test_runs_are_measured_in_groups_of_an_experiment_with_a_seed(tmp_path: Path):
    groups = evaluation(tmp_path, seeds=2).groups
    assert {name: len(points) for name, points in groups.items()} == {
        "subscribers-seed1": 4,
        "publishers-seed1": 3,
        "burst-seed1": 3,
        "several-seed1": 1,
        "subscribers-seed2": 4,
        "publishers-seed2": 3,
        "burst-seed2": 3,
        "several-seed2": 1,
        "sensitivity": 14,
    }
    for name, members in groups.items():
        assert {point.experiment for point in members} == {Experiment(name.partition("-")[0])}


def test_full_evaluation_holds_every_point(tmp_path: Path):
    points = evaluation(tmp_path, size=EvaluationSize.FULL).points
    varied = [each for each in FULL if each.applies_to(PAPER)]
    assert len(points) == 7 + 5 + 3 + 3 + 2 * len(varied)
    assert len(varied) >= 27
    assert len({point.name for point in points}) == len(points)


def test_it_is_measured_when_every_group_and_every_truth_is_there(tmp_path: Path):
    found = evaluation(tmp_path)
    metrics = [found.folders.metrics(group) for group in found.groups]
    built = [point.name for point in found.points if not point.base]
    truths = [
        found.folders.truth(name) for name in (*built, "sensitivity-quiet", "sensitivity-burst")
    ]
    for path in (*metrics, *truths):
        assert not found.is_measured
        path.mkdir(parents=True)
    assert found.is_measured
    truths[0].rmdir()
    assert not found.is_measured


def test_report_is_a_stage_as_well(tmp_path: Path):
    told: list[tuple[str, int, int]] = []
    asked = request()
    found = Evaluation(
        claim_folder(tmp_path, asked),
        asked,
        PAPER,
        lambda progress: told.append((progress.stage, progress.done, progress.total)),
    )
    with found.reporting():
        found.folders.report.mkdir()
        found.folders.page.touch()
    assert (told[0], told[-1]) == (("report", 0, 1), ("report", 1, 1))


class TestQuotes:
    @pytest.fixture
    def csv(self, tmp_path: Path) -> Path:
        return write_lines(tmp_path / "a.csv", HEADER, *csv_rows(symbols=3, days=4))

    def test_file_that_is_there_is_good_and_one_that_is_not_is_named(self, csv: Path):
        check_quotes([])
        check_quotes([csv])
        check_quotes([csv.parent])
        with pytest.raises(InvalidConfiguration, match=r"gone\.csv"):
            check_quotes([csv, csv.with_name("gone.csv")])

    def test_quotes_from_files_and_from_an_ingested_folder_are_the_same(
        self, spark: SparkSession, csv: Path, tmp_path: Path
    ):
        ingest(spark, [csv], tmp_path / "ingested")
        check_quotes([tmp_path / "ingested"])
        rows = []
        for name, path in (("one", csv), ("other", tmp_path / "ingested")):
            found = evaluation(tmp_path / name, quotes=[str(path)])
            found._quotes(spark)
            found._quotes(spark)  # what is there stays
            rows.append(sorted(read_data(spark, found.folders.quotes).frame.collect()))
        assert rows[0] == rows[1]
        assert len(rows[0]) == 12

    def test_synthetic_quotes_are_of_all_days_of_the_size(
        self, spark: SparkSession, tmp_path: Path
    ):
        with tiny_sizes():
            found = evaluation_in(tmp_path / "out")
            found._quotes(spark)
        assert read_data(spark, found.folders.quotes).frame.count() == 3 * 500


def test_seed_is_added_to_a_finished_evaluation_on_another_overlay(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    topology = format_topology(from_catalogue("figure-3"))
    # One experiment of one point tells as much as all of them, and so does one varied scenario.
    monkeypatch.setattr(evaluate, "points", lambda *asked: points(*asked)[:1])

    def results() -> dict[Path, int]:
        parts = [tmp_path / part for part in ("quotes", "scenarios", "truth", "runs", "metrics")]
        files = [path for part in parts for path in part.rglob("*") if path.is_file()]
        return {path: path.stat().st_mtime_ns for path in files if path.name != "sweep.json"}

    # A context of its own ends before that of the sizes: undone after it, tiny bases would stay.
    with tiny_sizes(), pytest.MonkeyPatch.context() as patch:
        both_bases = sensitivity.bases
        patch.setattr(sensitivity, "bases", lambda *asked: both_bases(*asked)[:1])
        evaluation_in(tmp_path, topology=topology).run(spark)
        first = results()
        found = evaluation_in(tmp_path, topology=topology, seeds=2)
        assert not found.is_measured
        found.run(spark)
        assert found.is_measured
    both = results()
    assert {path: both[path] for path in first} == first, "what was there is as it was"
    added = {path.relative_to(tmp_path).parts[1] for path in both.keys() - first.keys()}
    assert added
    assert all("seed2" in name for name in added)
    measures = found.measures()
    assert measures.seeds == [1, 2]
    assert exact(measures)[0].found == "17 to 17 messages, 18 brokers"
    assert all(each.holds for each in exact(measures))


def test_run_that_fails_is_named_and_nothing_is_measured(spark: SparkSession, tmp_path: Path):
    with tiny_sizes():
        found = evaluation_in(tmp_path)
        with pytest.raises(SweepFailed, match=r"31 of 31 runs failed; .*there is no"):
            found._simulations(spark)  # there are no scenarios yet
    assert not (tmp_path / "metrics").exists()
