import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from octopis.errors import SparkUnavailable
from octopis.pipeline import session
from octopis.pipeline.session import interrupt_wins, is_connect, open_spark, ship, task_count

OCTOPIS = Path(sys.executable).with_name("octopis")
OPEN_TWICE = """
import signal, sys
from octopis.pipeline.session import open_spark
before = signal.getsignal(signal.SIGINT)
for _ in range(2):
    with open_spark("local[1]") as spark:
        print(spark.range(3).count())
assert signal.getsignal(signal.SIGINT) is before
"""
INTERRUPTED = """
import os, signal, sys, threading
from octopis.pipeline import session
step = getattr(session, sys.argv[1])
def begin(*facts):
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    return step(*facts)
setattr(session, sys.argv[1], begin)
try:
    with session.open_spark("local[1]") as spark:
        while True:
            spark.range(3).count()
except KeyboardInterrupt:
    print("stopped")
"""
"""Ctrl-C comes a moment after a step of the start has begun."""


INTERRUPT_HIDDEN = """
import signal
from octopis.pipeline.session import open_spark
try:
    with open_spark("local[1]") as spark:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            spark.range(3).count()  # as PySpark does at some places, of a Java that has gone
except KeyboardInterrupt:
    print("stopped")
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


def test_ctrl_c_stays_one_where_what_is_tidied_up_fails():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT_HIDDEN], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")


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


@pytest.mark.parametrize("step", ["launch_gateway", "_session"])
def test_ctrl_c_while_spark_starts_is_as_quiet_and_leaves_no_java(step: str):
    # Java would hold the pipes, and this would wait for their end.
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, step],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")


def test_interrupt_is_not_hidden_by_what_it_makes_fail():
    interrupted = threading.Event()
    with pytest.raises(ConnectionRefusedError), interrupt_wins(interrupted):
        raise ConnectionRefusedError
    interrupted.set()
    with pytest.raises(KeyboardInterrupt), interrupt_wins(interrupted):
        raise ConnectionRefusedError


def _running() -> str:
    return subprocess.run(
        ["ps", "-eo", "args"],  # noqa: S607 - the system's own
        capture_output=True,
        text=True,
        check=True,
    ).stdout
