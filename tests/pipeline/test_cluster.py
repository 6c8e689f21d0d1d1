"""The same work on a real standalone cluster: one master, two workers, on loopback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from support.cluster import HOST, standalone_cluster
from support.quotes import HEADER, csv_rows, write_lines
from support.traces import make_scenario

ALGORITHMS = ("snr", "dnr", "bid")

PROGRAM = """
import json, sys
import pyarrow as pa
from octopis.cli import workload
from octopis.cli.main import app

def tell(batches):
    import octopis
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [octopis.__file__], "python": [sys.executable]})

ingest = workload.ingest

def ingest_and_go_on(spark, paths, out, mapping):  # commands use the session that is there
    report = ingest(spark, paths, out, mapping)
    app(["workload", "truth", "s", "--json"], standalone_mode=False)
    app(["sweep", "runs.toml", "--out", "runs", "--json"], standalone_mode=False)
    rows = spark.range(0, 4, 1, 4).mapInArrow(tell, "file string, python string").collect()
    print(json.dumps([row.asDict() for row in rows]))
    print(json.dumps(spark.sparkContext.master))
    return report

workload.ingest = ingest_and_go_on
words = ["workload", "ingest", "quotes.csv", "--out", "q", "--json", "--master", sys.argv[1]]
app(words, standalone_mode=False)
"""
"""The command starts the only session, and what else is tried goes on in it."""


def values(text: str) -> list:
    """Return the JSON values that a program has printed one after the other."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return found


def test_ingest_truth_and_a_sweep_run_on_the_cluster_with_the_package_that_was_sent(
    tmp_path: Path,
):
    write_lines(tmp_path / "quotes.csv", HEADER, *csv_rows(days=4), "2023-01-02,S000,x,1,1,1,1")
    make_scenario(tmp_path / "s")
    listed = ", ".join(f'"{name}"' for name in ALGORITHMS)
    write_lines(tmp_path / "runs.toml", "[[runs]]", 'scenario = "s"', f"algorithm = [{listed}]")
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster") as master:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, master],
            cwd=tmp_path,
            env={**os.environ, "SPARK_LOCAL_IP": HOST},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    truth, runs, told, used, ingested = values(done.stdout)
    assert used == master
    assert (ingested["read"], ingested["accepted"], ingested["quarantined"]) == (21, 20, 1)
    assert pq.read_table(tmp_path / "q" / "quotes.parquet").num_rows == 20
    assert {each["state"] for each in runs} == {"done"}
    assert truth["pairs"] > 0
    for name in ALGORITHMS:
        deliveries = pq.read_table(tmp_path / "runs" / f"s-{name}" / "deliveries.parquet")
        assert len(deliveries) == truth["pairs"]
    assert len(told) == 4
    assert all("octopis.zip" in each["file"] for each in told)
    assert {each["python"] for each in told} == {sys.executable}
