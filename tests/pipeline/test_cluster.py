"""The same work on a real standalone cluster: one master, two workers, on loopback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.cluster import HOST, standalone_cluster
from support.descendants import descendants
from support.durable_disk import broker_with_disk, desk
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


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as found:
        yield found


def values(text: str) -> list:
    """Return the JSON values that a program has printed one after the other."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return found


def test_ingest_truth_and_a_sweep_run_on_the_cluster_with_the_package_that_was_sent(
    tmp_path: Path, master: str
):
    write_lines(tmp_path / "quotes.csv", HEADER, *csv_rows(days=4), "2023-01-02,S000,x,1,1,1,1")
    make_scenario(tmp_path / "s")
    listed = ", ".join(f'"{name}"' for name in ALGORITHMS)
    write_lines(tmp_path / "runs.toml", "[[runs]]", 'scenario = "s"', f"algorithm = [{listed}]")
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


ROWS, BATCHES = 16_000, 8
STREAM = """
import sys
from octopis.pipeline.spark.session import open_spark
from pyspark.sql import functions as F

master, url, checkpoint, most = sys.argv[1:]
with open_spark(master, {"spark.executor.memory": "512m"}) as spark:
    source = spark.readStream.format("octopis").option("subscription", "in")
    limited = source.option("maxOffsetsPerTrigger", most).option("minPartitions", 4)
    frame = limited.schema("n LONG, _position LONG").load(url)
    rows = frame.select("n", (2 * F.col("_position")).alias("twice"), F.lit("out").alias("part"))
    writer = rows.writeStream.format("octopis").option("address", url)
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
"""


def executors() -> list[int]:
    """Return the executors of the cluster that this process has started."""
    found = descendants(os.getpid())
    backends = [pid for pid, words in found.items() if "CoarseGrainedExecutorBackend" in words]
    return sorted(pid for pid in backends if "java" in found[pid].split()[0])


def test_a_stream_on_the_cluster_is_exact_though_its_executors_are_killed(
    tmp_path: Path, master: str
):
    commits = tmp_path / "checkpoint" / "commits"
    most = str(ROWS // BATCHES)
    with broker_with_disk(tmp_path / "disk") as url, desk(url) as at_broker:
        at_broker.make("in", "part = 'in'")
        at_broker.make("out", "part = 'out'")
        at_broker.publish({"part": "in", "n": n} for n in range(ROWS))
        words = [master, url, str(tmp_path / "checkpoint"), most]
        driver = subprocess.Popen(
            [sys.executable, "-c", STREAM, *words],
            env={**os.environ, "SPARK_LOCAL_IP": HOST},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            killed = set()
            for done in (2, 5):
                until = time.monotonic() + 200
                while len(list(commits.glob("[0-9]*"))) < done or not set(executors()) - killed:
                    assert driver.poll() is None, driver.stderr and driver.stderr.read()
                    assert time.monotonic() < until
                    time.sleep(0.05)
                victim = max(set(executors()) - killed)
                os.kill(victim, signal.SIGKILL)
                killed.add(victim)
                assert len(list(commits.glob("[0-9]*"))) < BATCHES
            _, said = driver.communicate(timeout=200)
        finally:
            driver.kill()
            driver.wait()
        assert driver.returncode == 0, said
        assert len(killed) == 2
        assert len(list(commits.glob("[0-9]*"))) == BATCHES
        found = at_broker.read("out", ROWS)
    assert sorted(each["n"] for each in found) == list(range(ROWS))
    assert all(each["twice"] == 2 * each["n"] + 2 for each in found)
