"""All commands that use Spark, on a real server of Spark Connect with a folder of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.cluster import connect_server
from support.durable_disk import broker_with_disk, desk
from support.quotes import write_lines
from support.readings import readings, write_readings

COMMANDS = {
    "ingest": "workload ingest --synthetic --days 3 --out quotes",
    "build": "workload build --quotes quotes --topology figure-7 --subscribers 20 --publishers 2 "
    "--notifications 5 --high-rate 20 --out scenario",
    "truth": "workload truth scenario",
    "sweep": "sweep runs.toml --out runs",
    "metrics": "trace metrics runs/scenario-snr runs/scenario-dnr --out metrics",
    "check": "trace check runs/scenario-snr",
    "read": "workload ingest readings.jsonl --mapping readings.toml --out readings",
    "estimate": "workload estimate ok=TRUE --data readings",
    "record": "workload build --data readings --topology figure-7 --subscriptions wanted.txt "
    "--publisher-by device --time-by at --speed 60 --out recorded",
    "evaluate": "evaluate --out evaluation",
}

MAPPING = """
key = ["device", "at"]
[attributes]
device = { column = "device.id", type = "text" }
at = { type = "time" }
celsius = { column = "temperature", type = "number" }
ok = {}
fahrenheit = { derive = "celsius * 1.8 + 32" }
"""

PROGRAM = """
import contextlib, json, sys
from octopis.cli.main import app
from octopis.pipeline.spark import session
from support.evaluations import tiny_sizes

connect, connected = session._connect, []

def noted(remote, settings):
    connected.append(remote)
    return connect(remote, settings)

session._connect = noted
with tiny_sizes():
    for name, words in json.loads(sys.argv[1]).items():
        with open(f"{name}.json", "w") as told, contextlib.redirect_stdout(told):
            status = app([*words.split(), "--json"], standalone_mode=False)
        assert not status, (words, status)
print(json.dumps(connected))
"""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.mark.long
def test_all_commands_run_on_spark_connect(tmp_path: Path, remote: str):
    table = '[[runs]]\nscenario = "scenario"\nalgorithm = ["snr", "dnr"]\n'
    (tmp_path / "runs.toml").write_text(table, encoding="utf-8")
    write_readings(tmp_path / "readings.jsonl", readings(50), "broken")
    write_lines(tmp_path / "readings.toml", MAPPING)
    write_lines(tmp_path / "wanted.txt", "fahrenheit > 70", "ok = FALSE")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(COMMANDS)],
        cwd=tmp_path,
        env={
            **os.environ,
            "SPARK_REMOTE": remote,
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [remote] * len(COMMANDS)
    told = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in COMMANDS}
    assert told["truth"]["pairs"] > 0
    assert (told["read"]["accepted"], told["read"]["quarantined"]) == (50, 1)
    assert told["estimate"]["matches"] > 0
    assert told["record"]["notifications"] == 50
    assert [each["state"] for each in told["sweep"]] == ["done", "done"]
    for algorithm in ("snr", "dnr"):
        deliveries = pq.read_table(tmp_path / f"runs/scenario-{algorithm}" / "deliveries.parquet")
        assert len(deliveries) == told["truth"]["pairs"]
    assert pq.read_table(tmp_path / "metrics" / "metrics.parquet").num_rows == 2
    assert (tmp_path / "evaluation" / "report" / "index.html").exists()


STREAMS = """
import json, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from octopis.pipeline.spark.session import sentence
from octopis.pipeline.streaming import progress

remote, url, folder = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()

def read(**options):
    reader = spark.readStream.format("octopis").option("address", url).schema("n LONG")
    return reader.options(**options).load()

def run(frame, **options):
    writer = frame.writeStream.format("octopis").option("address", url)
    query = writer.options(**options).trigger(availableNow=True).start()
    query.awaitTermination()
    return query

frame = read(subscription="in").selectExpr("n", "'out' AS part")
query = run(frame, checkpointLocation=folder + "/a")
(seen,) = progress(query)
once = spark.read.format("octopis").option("subscription", "out").load(url)
told = []
for bad in ({"filtre": "n > 1"}, {"subscription": "gone"}):
    try:
        run(read(**{"subscription": "in", **bad}), checkpointLocation=folder + "/b")
    except PySparkException as failure:
        told.append(sentence(failure))
print(json.dumps({"read": seen.read, "rows": once.count(), "told": told}))
spark.stop()
"""


@pytest.mark.long
def test_streams_run_on_spark_connect_and_nothing_of_ours_is_needed_but_on_the_server(
    tmp_path: Path, remote: str
):
    with broker_with_disk(tmp_path / "disk") as url, desk(url) as at_broker:
        at_broker.make("in", "part = 'in'")
        at_broker.make("out", "part = 'out'")
        at_broker.publish({"part": "in", "n": n} for n in range(500))
        done = subprocess.run(
            [sys.executable, "-c", STREAMS, remote, url, str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        found = at_broker.read("out", 500)
    assert sorted(each["n"] for each in found) == list(range(500))
    said = json.loads(done.stdout)
    assert (said["read"], said["rows"]) == (500, 500)
    assert "did you mean 'filter'" in said["told"][0]
    assert "no durable subscription 'gone'" in said["told"][1]
