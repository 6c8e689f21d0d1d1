"""Bad input gets one clear sentence, exit status 2, and leaves nothing behind."""

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.quotes import HEADER, csv_rows, write_lines
from support.traces import make_scenario, make_trace


@pytest.fixture
def refused(octopis, spark: SparkSession, tmp_path: Path):  # noqa: ARG001 - the session is used
    def run(*words: str) -> str:
        status, _, told = octopis(*words)
        assert status == 2, told
        assert told.startswith("octopis: ")
        assert told.count("\n") == 1, told
        assert not [path for path in tmp_path.rglob("*.draft") if path.is_dir()]
        return told

    return run


def ingest(refused, folder: Path, name: str) -> str:
    told = refused("workload", "ingest", str(folder / name), "--out", str(folder / "out"))
    assert not (folder / "out").exists()
    return told


def test_an_empty_file(refused, tmp_path: Path):
    (tmp_path / "a.csv").touch()
    assert "a.csv is empty" in ingest(refused, tmp_path, "a.csv")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b""))
    assert "b.csv.gz is empty" in ingest(refused, tmp_path, "b.csv.gz")


def test_a_header_and_nothing_else(refused, tmp_path: Path):
    write_lines(tmp_path / "a.csv", HEADER)
    assert "holds a header and no row" in ingest(refused, tmp_path, "a.csv")


def test_a_file_of_the_wrong_kind(refused, tmp_path: Path):
    (tmp_path / "a.csv").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert "a.csv is not a text file" in ingest(refused, tmp_path, "a.csv")
    write_lines(tmp_path / "a.parquet", HEADER)
    assert "a.parquet is not a Parquet file" in ingest(refused, tmp_path, "a.parquet")


def test_a_header_without_prices(refused, tmp_path: Path):
    write_lines(tmp_path / "a.csv", "Date,Symbol,Volume", "2023-01-02,A,1")
    assert "no column for open, high, low, close" in ingest(refused, tmp_path, "a.csv")


def test_a_folder_with_no_matching_file(refused, tmp_path: Path):
    (tmp_path / "notes.md").write_text("x", encoding="utf-8")
    assert "holds no file that ends in .csv" in ingest(refused, tmp_path, ".")


def test_all_rows_quarantined(refused, tmp_path: Path):
    write_lines(tmp_path / "a.csv", HEADER, "2023-01-02,A,-1,1,1,1,1", "2023-01-03,A,-1,1,1,1,1")
    told = ingest(refused, tmp_path, "a.csv")
    assert "no row is sound: 2 of 2 say 'open is negative'" in told
    assert "line 2" in told


def test_an_output_folder_that_exists(refused, tmp_path: Path):
    write_lines(tmp_path / "a.csv", HEADER, *csv_rows(symbols=1, days=2))
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").touch()
    told = refused("workload", "ingest", str(tmp_path / "a.csv"), "--out", str(out))
    assert "is not empty: choose another folder, or remove it" in told
    assert (out / "mine").exists()


def test_a_path_that_cannot_be_written(refused, tmp_path: Path):
    path = write_lines(tmp_path / "a.csv", HEADER, *csv_rows(symbols=1, days=2))
    told = refused("workload", "ingest", str(path), "--out", str(path / "out"))
    assert "cannot write" in told


def test_a_trace_cut_off_in_the_middle(refused, tmp_path: Path):
    scenario = make_scenario(tmp_path / "s")
    trace = make_trace(scenario, tmp_path / "t")
    path = trace / "deliveries.parquet"
    path.write_bytes(path.read_bytes()[:1000])
    cut = "not a whole Parquet file: was it cut off? run the scenario again"
    assert cut in refused("trace", "check", str(trace), "--scenario", str(scenario))
    assert cut in refused("trace", "metrics", str(trace), "--out", str(tmp_path / "m"))
    assert not (tmp_path / "m").exists()


def test_a_scenario_that_is_not_named(refused, tmp_path: Path):
    trace = make_trace(make_scenario(tmp_path / "s"), tmp_path / "t")
    assert "say which scenario" in refused("trace", "check", str(trace))


def test_quotes_from_files_or_made_but_not_both(refused):
    assert "give files to read, or --synthetic" in refused("workload", "ingest")


def test_too_few_quotes_for_a_scenario(refused, octopis, tmp_path: Path):
    write_lines(tmp_path / "a.csv", HEADER, *csv_rows())
    quotes, out = str(tmp_path / "q"), str(tmp_path / "s")
    assert octopis("workload", "ingest", str(tmp_path / "a.csv"), "--out", quotes)[0] == 0
    told = refused("workload", "build", "--quotes", quotes, "--out", out)
    assert "95 quotes are too few for a selectivity of 0.02" in told
