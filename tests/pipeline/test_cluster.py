"""The same work on a real standalone cluster: one master, two workers, on loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.cluster import HOST, standalone_cluster
from support.quotes import HEADER, csv_rows, write_lines
from support.traces import make_scenario

OCTOPIS = Path(sys.executable).with_name("octopis")
ALGORITHMS = ("snr", "dnr", "bid")

PROGRAM = """
import json, sys
import pyarrow as pa
from octopis.cli.main import app
from octopis.pipeline.spark.session import open_spark

def tell(batches):
    import octopis
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [octopis.__file__], "python": [sys.executable]})

with open_spark(sys.argv[1]) as spark:  # commands use the session that is there
    app(["workload", "truth", "s", "--json"], standalone_mode=False)
    app(["sweep", "runs.toml", "--out", "runs", "--json"], standalone_mode=False)
    rows = spark.range(0, 4, 1, 4).mapInArrow(tell, "file string, python string").collect()
    print(json.dumps([row.asDict() for row in rows]))
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


def run(folder: Path, *words: str) -> list:
    """Run a program; return the JSON values that it prints."""
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "SPARK_LOCAL_IP": HOST},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    values, at, decoder = [], 0, json.JSONDecoder()
    text = done.stdout.strip()
    while at < len(text):
        value, end = decoder.raw_decode(text, at)
        values.append(value)
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return values


def test_ingest_runs_on_the_cluster(master: str, tmp_path: Path):
    write_lines(tmp_path / "quotes.csv", HEADER, *csv_rows(days=4), "2023-01-02,S000,x,1,1,1,1")
    words = ("workload", "ingest", "quotes.csv", "--out", "q", "--master", master, "--json")
    (report,) = run(tmp_path, str(OCTOPIS), *words)
    assert (report["read"], report["accepted"], report["quarantined"]) == (21, 20, 1)
    assert pq.read_table(tmp_path / "q" / "quotes.parquet").num_rows == 20


def test_truth_and_a_sweep_run_on_the_cluster_with_the_package_that_was_sent(
    master: str, tmp_path: Path
):
    make_scenario(tmp_path / "s")
    listed = ", ".join(f'"{name}"' for name in ALGORITHMS)
    write_lines(tmp_path / "runs.toml", "[[runs]]", 'scenario = "s"', f"algorithm = [{listed}]")
    truth, runs, told = run(tmp_path, sys.executable, "-c", PROGRAM, master)
    assert {each["state"] for each in runs} == {"done"}
    assert truth["pairs"] > 0
    for name in ALGORITHMS:
        deliveries = pq.read_table(tmp_path / "runs" / f"s-{name}" / "deliveries.parquet")
        assert len(deliveries) == truth["pairs"]
    assert len(told) == 4
    assert all("octopis.zip" in each["file"] for each in told)
    assert {each["python"] for each in told} == {sys.executable}
