"""The same commands on a real standalone cluster: one master, two workers, on loopback."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from support.cluster import HOST, standalone_cluster
from support.quotes import HEADER, csv_rows, write_lines

OCTOPIS = Path(sys.executable).with_name("octopis")

WHERE = """
import sys
from octopis.pipeline.session import open_spark
import pyarrow as pa

def tell(batches):
    import octopis
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [octopis.__file__], "python": [sys.executable]})

with open_spark(sys.argv[1]) as spark:
    rows = spark.range(0, 4, 1, 4).mapInArrow(tell, "file string, python string").collect()
    for row in rows:
        print(row["file"], row["python"])
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


def run(master: str, folder: Path, *words: str) -> str:
    environment = {**os.environ, "SPARK_LOCAL_IP": HOST}
    done = subprocess.run(
        [*words, *([] if "-c" in words else ["--master", master])],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_package_travels_and_workers_run_the_drivers_interpreter(master: str, tmp_path: Path):
    told = run(master, tmp_path, sys.executable, "-c", WHERE, master)
    lines = [line.split() for line in told.splitlines()]
    assert len(lines) == 4
    assert all("octopis.zip" in file for file, _ in lines)
    assert {python for _, python in lines} == {sys.executable}


def test_ingest_truth_and_a_sweep_run_on_the_cluster(
    master: str, tmp_path: Path, octopis, spark: SparkSession
):
    write_lines(tmp_path / "quotes.csv", HEADER, *csv_rows(days=4), "2023-01-02,S000,x,1,1,1,1")
    told = run(master, tmp_path, str(OCTOPIS), "workload", "ingest", "quotes.csv", "--out", "q")
    assert re.search(r"quarantined +1\b", told)
    octopis("sim", "example", "--out", str(tmp_path / "s"), "--notifications", "5")
    run(master, tmp_path, str(OCTOPIS), "workload", "truth", "s")
    write_lines(
        tmp_path / "runs.toml", "[[runs]]", 'scenario = "s"', 'algorithm = ["snr", "dnr", "bid"]'
    )
    told = run(master, tmp_path, str(OCTOPIS), "sweep", "runs.toml", "--out", "runs")
    assert "3 done" in told
    pairs = pq.read_table(tmp_path / "s" / "truth" / "pairs.parquet")
    for algorithm in ("snr", "dnr", "bid"):
        deliveries = pq.read_table(tmp_path / "runs" / f"s-{algorithm}" / "deliveries.parquet")
        assert len(deliveries) == len(pairs) > 0
    quotes = spark.read.parquet(str(tmp_path / "q" / "quotes.parquet"))
    assert quotes.count() == 20
