import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from octopis.errors import SparkUnavailable
from octopis.pipeline.spark import session
from octopis.pipeline.spark.session import is_connect, open_spark, ship, task_count

OCTOPIS = Path(sys.executable).with_name("octopis")
OPEN_TWICE = """
import signal, sys
from octopis.pipeline.spark.session import open_spark
before = signal.getsignal(signal.SIGINT)
for _ in range(2):
    with open_spark("local[1]") as spark:
        print(spark.range(3).count())
assert signal.getsignal(signal.SIGINT) is before
"""


def test_existing_session_is_used_and_not_stopped(spark: SparkSession):
    with open_spark() as found:
        assert found is spark
    assert spark.range(2).count() == 2


def test_workers_run_the_drivers_interpreter(spark: SparkSession):
    def tell(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    rows = spark.range(1).mapInArrow(tell, "python string").collect()
    assert [row["python"] for row in rows] == [sys.executable]


def test_shipped_value_arrives(spark: SparkSession):
    shipped = ship(spark, {"a": 41})

    def read(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"value": [shipped()["a"] + 1]})

    assert spark.range(1).mapInArrow(read, "value long").first()["value"] == 42
    assert not is_connect(spark)
    assert task_count(spark) == 8


def test_sessions_come_one_after_the_other_quietly_and_leave_no_java(tmp_path: Path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", OPEN_TWICE],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n3\n", "")
    assert not list(tmp_path.glob("octopis-*"))
    assert str(tmp_path) not in _running()


def test_no_java_is_one_sentence_and_no_traceback(tmp_path: Path):
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        [OCTOPIS, "workload", "ingest", "--synthetic"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("octopis: Spark needs Java")
    assert done.stderr.count("\n") == 1


def test_server_that_cannot_be_reached_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    monkeypatch.setattr(session.SparkSession, "getActiveSession", lambda: None)
    said = r"cannot reach Spark at sc://127\.0\.0\.1:1"
    with pytest.raises(SparkUnavailable, match=said), open_spark():
        pytest.fail("must not come here")


def test_ctrl_c_ends_java_and_leaves_nothing(tmp_path: Path):
    out = tmp_path / "out"
    process = subprocess.Popen(
        [OCTOPIS, "workload", "build", "--notifications", "20000", "--out", str(out)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while process.poll() is None and not list(tmp_path.glob(".out.*.draft/publishers.parquet")):
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, told) == (130, "octopis: stopped\n")
    assert not out.exists()
    assert not list(tmp_path.glob(".out.*"))
    assert str(tmp_path) not in _running()


def _running() -> str:
    return subprocess.run(
        ["ps", "-eo", "args"],  # noqa: S607 - the system's own
        capture_output=True,
        text=True,
        check=True,
    ).stdout
