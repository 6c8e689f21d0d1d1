"""The whole way by commands: quotes, scenario, truth, sweep, metrics, check."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from octopis.pipeline.ingest.folder import read_data
from support.quotes import HEADER, csv_rows, write_lines
from support.traces import make_scenario, make_trace, rewrite


@pytest.fixture
def done(octopis, spark: SparkSession):  # noqa: ARG001 - commands use the session that is there
    def run(*words: str) -> str:
        status, printed, told = octopis(*words)
        assert (status, told) == (0, "")
        return printed

    return run


def test_from_quotes_to_checked_runs(done, tmp_path: Path):
    rows = csv_rows(symbols=40, days=60)
    write_lines(tmp_path / "a.csv", HEADER, *rows, "broken")
    at = {name: str(tmp_path / name) for name in ("a.csv", "q", "s", "runs", "m", "runs.toml")}
    assert "quarantined" in done("workload", "ingest", at["a.csv"], "--out", at["q"])
    sizes = ("--subscribers", "30", "--publishers", "3", "--notifications", "20")
    built = done(
        "workload", "build", "--quotes", at["q"], "--out", at["s"], "--topology", "figure-3",
        *sizes, "--json",
    )  # fmt: skip
    assert json.loads(built)["notifications"] == 60
    pairs = json.loads(done("workload", "truth", at["s"], "--json"))["pairs"]
    assert pairs > 0
    write_lines(
        Path(at["runs.toml"]), "[[runs]]", 'scenario = "s"', 'algorithm = ["bid", "snr", "dnr"]'
    )
    assert "3 done" in done("sweep", at["runs.toml"], "--out", at["runs"])
    assert "3 skipped" in done("sweep", at["runs.toml"], "--out", at["runs"])
    traces = [str(tmp_path / "runs" / f"s-{name}") for name in ("bid", "snr", "dnr")]
    measured = json.loads(done("trace", "metrics", *traces, "--out", at["m"], "--json"))
    assert {row["deliveries"] for row in measured} == {pairs}
    for trace in traces:
        assert "lost" in done("trace", "check", trace)


def test_wrong_deliveries_exit_1_and_are_shown(octopis, spark: SparkSession, tmp_path: Path):  # noqa: ARG001
    scenario = make_scenario(tmp_path / "s")
    trace = make_trace(scenario, tmp_path / "t")
    rewrite(trace, "deliveries", lambda rows: rows[1:])
    status, printed, told = octopis("trace", "check", str(trace), "--scenario", str(scenario))
    assert status == 1
    assert told == f"octopis: the deliveries of {trace} are wrong: 1 lost\n"
    assert "The first of each kind" in printed


def test_order_counts_unless_it_is_let_pass(octopis, done, tmp_path: Path):
    scenario = make_scenario(tmp_path / "s")
    trace = make_trace(scenario, tmp_path / "t")

    def later(rows: pa.Table) -> pa.Table:
        plain = rows.to_pylist()
        pairs = [(row["publisher"], row["subscription"]) for row in plain]
        first = next(at for at, pair in enumerate(pairs) if pairs.count(pair) > 1)
        plain[first]["delivered_ns"] = max(row["delivered_ns"] for row in plain) + 1
        return pa.Table.from_pylist(plain, rows.schema)

    rewrite(trace, "deliveries", later)
    words = ("trace", "check", str(trace), "--scenario", str(scenario))
    status, _, told = octopis(*words)
    assert status == 1
    assert "out of order" in told
    assert "out of order" in done(*words, "--any-order")


def test_failed_runs_exit_1_and_are_named(octopis, spark: SparkSession, tmp_path: Path):  # noqa: ARG001
    runs = write_lines(tmp_path / "runs.toml", "[[runs]]", 'scenario = "gone"', 'algorithm = "snr"')
    status, printed, told = octopis("sweep", str(runs), "--out", str(tmp_path / "out"))
    assert status == 1
    assert told.startswith("octopis: 1 of 1 runs failed; gone-snr: there is no")
    assert "failed" in printed


def test_synthetic_quotes_need_no_file(done, tmp_path: Path):
    told = done("workload", "ingest", "--synthetic", "--days", "2", "--out", str(tmp_path / "q"))
    assert "1,000" in told


def test_a_table_that_spark_knows_is_ingested_with_times_as_wanted(
    done, octopis, spark: SparkSession, tmp_path: Path
):
    rows = [("a", "2024-05-01 12:00:00", 20.5), ("b", "2024-05-01 12:00:01", None)]
    frame = spark.createDataFrame(rows, "device string, at string, temperature double")
    frame.selectExpr("device", "to_timestamp(at) AS at", "temperature").createOrReplaceTempView(
        "readings_of_a_table"
    )
    words = ("workload", "ingest", "--table", "readings_of_a_table")
    about = (*words, "--attributes", "device,at:time,temperature")
    found = {}
    for times in ("ns", "iso"):
        out = tmp_path / times
        report = json.loads(done(*about, "--times", times, "--out", str(out), "--json"))
        assert (report["read"], report["accepted"]) == (2, 2)
        assert report["sources"] == ["readings_of_a_table"]
        rows = read_data(spark, out).frame.orderBy("device").collect()
        found[times] = [(row.device, row.at, row.temperature) for row in rows]
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    start_ns = round(noon.timestamp()) * 10**9
    assert found["ns"] == [("a", start_ns, 20.5), ("b", start_ns + 10**9, None)]
    assert [at for _, at, _ in found["iso"]] == [
        "2024-05-01T12:00:00.000000Z", "2024-05-01T12:00:01.000000Z"
    ]  # fmt: skip
    status, _, told = octopis(*words, str(tmp_path / "a.csv"), "--out", str(tmp_path / "both"))
    assert status == 2
    assert "files to read, or --synthetic, or --table: one of them" in told
    status, _, told = octopis("workload", "ingest", "--table", "none", "--out", str(tmp_path / "n"))
    assert status == 2
    assert "Spark knows no table 'none'" in told
