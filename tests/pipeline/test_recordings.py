"""Recordings of any shape go the whole way: estimate, scenario, truth, sweep, metrics, check."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from octopis.core.filters import parse_filter
from octopis.errors import InvalidConfiguration
from octopis.pipeline.ingest.folder import Data, read_data
from octopis.pipeline.ingest.ingest import ingest
from octopis.pipeline.ingest.mapping import mapping_of
from octopis.pipeline.scenarios import recording as room
from octopis.pipeline.scenarios.build import Choices, build
from octopis.pipeline.scenarios.estimate import estimate
from octopis.pipeline.scenarios.recording import Replay
from octopis.scenario.folder import FILES, read_scenario
from octopis.scenario.tables import part_files
from octopis.scenario.wanted import WantedSubscription
from support.quotes import write_lines
from support.readings import ATTRIBUTES, readings, write_readings
from support.traces import small_plan

BY_DEVICE = Replay("device", "at", 60.0)


@pytest.fixture(scope="module")
def recorded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    path = write_readings(folder / "a.jsonl", readings())
    ingest(spark, [path], folder / "data", mapping_of(ATTRIBUTES))
    return folder / "data"


@pytest.fixture
def data(spark: SparkSession, recorded: Path) -> Data:
    return read_data(spark, recorded)


def wanted(*filters: str) -> list[WantedSubscription]:
    return [WantedSubscription(text) for text in filters]


def published(folder: Path) -> list[dict]:
    return [row for part in part_files(folder) for row in pq.read_table(part).to_pylist()]


def test_recording_is_replayed_as_it_was(spark: SparkSession, data: Data, tmp_path: Path):
    choices = Choices(wanted("temperature > 30", "ok = FALSE"), BY_DEVICE)
    report = build(spark, data, small_plan(), tmp_path / "s", choices)
    assert (report.rows, report.set_aside, report.sampled) == (900, 0, 0)
    assert (report.publishers, report.subscriptions, report.notifications) == (9, 2, 900)
    rows = published(tmp_path / "s" / "notifications.parquet")
    assert [row["intended_ns"] for row in rows] == [round(n * 1e9 / 60) for n in range(900)]
    by_publisher = defaultdict(list)
    for row in rows:
        assert row["publisher"] == row["attributes"]["device"]
        by_publisher[row["publisher"]].append(row)
    for own in by_publisher.values():
        assert [row["sequence"] for row in own] == list(range(100))
        assert all(a["attributes"]["at"] < b["attributes"]["at"] for a, b in pairwise(own))
    scenario = read_scenario(tmp_path / "s")
    assert {each.name for each in scenario.publishers} == {f"d{number}" for number in range(9)}


def test_publishers_and_times_may_come_from_the_data_one_by_one(
    spark: SparkSession, data: Data, tmp_path: Path
):
    subscriptions = wanted("ok = TRUE")
    only_publishers = Choices(subscriptions, Replay("site"))
    report = build(spark, data, small_plan(), tmp_path / "a", only_publishers)
    assert (report.publishers, report.notifications) == (2, 900)
    times = defaultdict(list)
    for row in published(tmp_path / "a" / "notifications.parquet"):
        times[row["publisher"]].append(row["intended_ns"])
    steps = {b - a for own in times.values() for a, b in pairwise(own)}
    assert steps == {10**9}, "60 a minute, as the plan says"
    only_times = Choices(subscriptions, Replay(None, "at"))
    report = build(spark, data, small_plan(), tmp_path / "b", only_times)
    assert (report.publishers, report.notifications) == (4, 900)
    rows = published(tmp_path / "b" / "notifications.parquet")
    assert [row["intended_ns"] for row in rows] == [n * 10**9 for n in range(900)]


def test_scenario_is_the_same_to_the_byte_on_any_partitions(
    spark: SparkSession, data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(room, "PART_ROWS", 200)
    found = []
    for count in (1, 5):
        spread = data._replace(frame=data.frame.repartition(count))
        plan = small_plan(selectivity=0.05, high_rate_notifications=20)
        report = build(spark, spread, plan, tmp_path / f"{count}", Choices(None, BY_DEVICE))
        assert (report.sampled, report.held_back) == (300, 600)
        folder = tmp_path / f"{count}"
        found.append([part.read_bytes() for name in FILES for part in part_files(folder / name)])
    assert found[0] == found[1]
    assert len(part_files(tmp_path / "1" / "notifications.parquet")) == 3


def test_drawn_subscriptions_match_the_wanted_share_of_held_back_rows(
    spark: SparkSession, data: Data, tmp_path: Path
):
    plan = small_plan(selectivity=0.1, subscribers=60)
    build(spark, data, plan, tmp_path / "s", Choices(None, BY_DEVICE))
    rows = [
        {name: value for name, value in row["attributes"].items() if value is not None}
        for row in published(tmp_path / "s" / "notifications.parquet")
    ]
    filters = [each.filter for each in read_scenario(tmp_path / "s").subscribers]
    shares = [sum(map(each.matches, rows)) / len(rows) for each in filters]
    assert 0.08 <= sum(shares) / len(shares) <= 0.12
    texts = " ".join(map(str, filters))
    assert all(word in texts for word in ("ok = ", "device IN", "temperature BETWEEN"))


def test_estimate_counts_what_the_filter_matches(spark: SparkSession, data: Data):
    rows = [row.asDict() for row in data.frame.collect()]
    for text in ("temperature > 22 AND ok", "humidity IS NULL", "device IN ('d1')", "FALSE"):
        found = estimate(spark, data, parse_filter(text))
        expected = sum(parse_filter(text).matches(row) for row in rows)
        assert (found.rows, found.matches) == (900, expected)


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (Choices(wanted("temprature > 1")), "no row has an attribute 'temprature'; did you mean"),
        (Choices(None, Replay("devise")), "--publisher-by: there is no attribute 'devise'"),
        (Choices(None, Replay(None, "humidity")), "--time-by: humidity is integer"),
        (Choices(None, Replay(None, "at", 0.0)), "--speed must be above 0"),
        (Choices(wanted("ok"), Replay(None, "at", 1e-6)), "say --speed 1, or more"),
    ],
)
def test_what_the_data_does_not_have_is_refused(
    spark: SparkSession, data: Data, tmp_path: Path, choices: Choices, said: str
):
    with pytest.raises(InvalidConfiguration, match=said):
        build(spark, data, small_plan(), tmp_path / "s", choices)
    assert not (tmp_path / "s").exists()


def test_the_whole_way_by_commands(octopis, recorded: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def done(*words: str) -> str:
        status, printed, told = octopis(*words)
        assert (status, told) == (0, "")
        return printed

    share = json.loads(
        done("workload", "estimate", "temperature > 25", "--data", str(recorded), "--json")
    )
    write_lines(Path("subs.csv"), "filter,subscriber,broker", 'temperature > 25,ann,"a,0"')
    done(
        "workload", "build", "--data", str(recorded), "--topology", "figure-3", "--out", "s",
        "--subscriptions", "subs.csv", "--publisher-by", "device", "--time-by", "at",
        "--speed", "60",
    )  # fmt: skip
    assert json.loads(done("workload", "truth", "s", "--json"))["pairs"] == share["matches"]
    write_lines(Path("runs.toml"), "[[runs]]", 'scenario = "s"', 'algorithm = ["snr", "tnr"]')
    done("sweep", "runs.toml", "--out", "runs")
    for name in ("s-snr", "s-tnr"):
        done("trace", "check", f"runs/{name}")
    (measured,) = json.loads(done("trace", "metrics", "runs/s-snr", "--out", "m", "--json"))
    assert measured["deliveries"] == share["matches"]
    status, _, told = octopis("workload", "estimate", "temprature > 25", "--data", str(recorded))
    assert (status, "did you mean 'temperature'" in told) == (2, True)
    status, _, told = octopis("workload", "estimate", "x > 1", "--data", str(tmp_path))
    assert (status, "holds no ingested data" in told) == (2, True)
