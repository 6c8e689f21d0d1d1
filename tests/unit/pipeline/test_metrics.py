from pathlib import Path
from random import Random
from statistics import fmean

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from octopis.core.routing import Algorithm
from octopis.errors import InvalidConfiguration
from octopis.pipeline.results import metrics as m
from octopis.pipeline.results.metrics import stability_series, write_results
from octopis.trace import Level, read_summary
from support.traces import make_scenario, make_trace


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    scenario = make_scenario(folder / "s", high_rate_notifications=200)
    return [
        make_trace(scenario, folder / "dnr", Algorithm.DNR, Level.FULL),
        make_trace(scenario, folder / "snr", Algorithm.SNR),
        make_trace(scenario, folder / "counts", Algorithm.SNR, Level.SUMMARY),
    ]


def test_metrics_are_those_of_the_rows(spark: SparkSession, runs: list[Path]):
    rows = {row["run"]: row for row in m.run_metrics(m.Traces(spark, runs)).collect()}
    assert list(rows) == ["counts", "dnr", "snr"]
    for folder in runs[:2]:
        row, summary = rows[folder.name], read_summary(folder)
        publications = pq.read_table(folder / "publications.parquet").to_pylist()
        deliveries = pq.read_table(folder / "deliveries.parquet").to_pylist()
        subscriptions = pq.read_table(folder / "subscriptions.parquet").to_pylist()
        due = {(each["publisher"], each["sequence"]): each["intended_ns"] for each in publications}
        delays = sorted(
            each["delivered_ns"] - due[each["publisher"], each["sequence"]] for each in deliveries
        )
        assert row["deliveries"] == row["deliveries_timed"] == len(delays)
        assert row["notification_delay_mean_ns"] == pytest.approx(fmean(delays), rel=1e-12)
        assert row["notification_delay_max_ns"] == delays[-1]
        median = delays[(len(delays) + 1) // 2 - 1]
        assert row["notification_delay_p50_ns"] == pytest.approx(median, rel=1e-3)
        assert row["notification_delay_p50_ns"] <= median
        assert row["delivered_within_1s_share"] == sum(d <= 10**9 for d in delays) / len(delays)
        assert row["path_length_mean"] == fmean(each["hops"] for each in deliveries)
        settled = [each["settled_ns"] - each["subscribed_ns"] for each in subscriptions]
        assert row["subscription_delay_mean_ns"] == pytest.approx(fmean(settled))
        assert row["tree_length_mean"] == pytest.approx(
            fmean(each["tree_length_mean"] for each in subscriptions), abs=1e-6
        )
        assert row["matching_delay_mean_ns"] == fmean(each["matching_ns"] for each in publications)
        assert row["notification_ims"] == summary.notification_ims
        assert row["subscription_ims"] == sum(each["ims"] for each in subscriptions)


def test_run_that_wrote_only_counts_has_only_counts(spark: SparkSession, runs: list[Path]):
    row = m.run_metrics(m.Traces(spark, runs)).where("run = 'counts'").first()
    assert row["deliveries"] > 0
    assert row["notification_delay_mean_ns"] is None


def test_queues_and_cases_are_counted(spark: SparkSession, runs: list[Path]):
    traces = m.Traces(spark, runs)
    links, queues = traces.table("links"), traces.table("queues")
    assert links is not None
    assert queues is not None
    rows = m.queue_metrics(links, traces.summary_frame()).collect()
    for folder in runs:
        own = [row for row in rows if row["run"] == folder.name]
        assert max(row["queue_length_max"] for row in own) == read_summary(folder).queue_length_max
        assert all(row["queue_length_mean"] <= row["queue_length_max"] for row in own)
    series = m.queue_series(queues).collect()
    assert {row["run"] for row in series} == {"dnr"}
    assert max(row["queued"] for row in series) >= max(row["queue_length_max"] for row in series)
    cases = m.case_counts(spark, traces.summaries).collect()
    assert {row["case"]: row["count"] for row in cases} == read_summary(runs[0]).dnr_cases


def test_two_runs_of_one_name_are_refused(spark: SparkSession, runs: list[Path], tmp_path: Path):
    (tmp_path / "snr").symlink_to(runs[1])
    with pytest.raises(InvalidConfiguration, match="have the same name: rename one"):
        m.Traces(spark, [runs[1], tmp_path / "snr"])


def test_every_table_is_there_as_parquet_and_as_csv(spark: SparkSession, tmp_path: Path):
    scenario = make_scenario(tmp_path / "s")
    full = make_trace(scenario, tmp_path / "full", level=Level.FULL)
    rows = write_results(spark, [full], tmp_path / "out")
    assert [row["run"] for row in rows] == ["full"]
    names = {"metrics", "cases", "queues", "stability", "queue_series"}
    for name in names:
        table = pq.read_table(tmp_path / "out" / f"{name}.parquet")
        text = pa_csv.read_csv(tmp_path / "out" / f"{name}.csv")
        assert (table.column_names, len(table)) == (text.column_names, len(text))
    assert {path.stem for path in (tmp_path / "out").iterdir()} == names
    stability = pq.read_table(tmp_path / "out" / "stability.parquet").to_pylist()
    assert sum(row["deliveries"] for row in stability) == rows[0]["deliveries"]


def test_series_is_the_longest_delay_of_each_block_in_order_of_arrival(spark: SparkSession):
    random = Random(1)  # noqa: S311 - repeatable on purpose
    rows = [
        (run, random.randrange(5_000_000_000), random.randrange(10**9), 1)
        for run, count in (("a", 257), ("b", 30))
        for _ in range(count)
    ]
    frame = spark.createDataFrame(rows, "run string, delivered_ns long, delay_ns long, hops int")
    found = {
        (row["run"], row["block"]): (row["deliveries"], row["end_ns"], row["delay_max_ns"])
        for row in stability_series(frame.repartition(5), block=10).collect()
    }
    wanted = {}
    for run in ("a", "b"):
        own = sorted(row[1:3] for row in rows if row[0] == run)
        for start in range(0, len(own), 10):
            part = own[start : start + 10]
            wanted[run, start // 10] = (len(part), part[-1][0], max(delay for _, delay in part))
    assert found == wanted
