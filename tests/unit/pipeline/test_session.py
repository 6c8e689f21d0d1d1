import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from octopis.errors import InvalidConfiguration, OperationFailed, SparkUnavailable
from octopis.pipeline.ingest.ingest import ingest_synthetic
from octopis.pipeline.spark import session
from octopis.pipeline.spark.session import (
    cached,
    is_connect,
    open_spark,
    package_to_ship,
    plain_errors,
    sentence,
    ship,
    task_count,
    zip_package,
)
from support.terminal import on_terminal

OCTOPIS = Path(sys.executable).with_name("octopis")
OPEN_TWICE = """
import signal
from pyspark import SparkContext
from octopis.errors import SparkDied
from octopis.pipeline.spark.session import open_spark
PARTITIONS = "spark.sql.shuffle.partitions"
before = signal.getsignal(signal.SIGINT)
with open_spark("local[1]") as spark:
    print(spark.range(3).count(), spark.conf.get(PARTITIONS))
try:
    with open_spark("local[1]", {PARTITIONS: "5", "spark.driver.memory": "900m"}) as spark:
        print(spark.range(3).count(), spark.conf.get(PARTITIONS))
        SparkContext._gateway.proc.kill()
        spark.range(3).count()
except SparkDied as death:
    print(death)
assert signal.getsignal(signal.SIGINT) is before
"""
DIED = (
    "Spark has died: its Java was killed, as happens when the machine has no memory left; "
    "it had 900m, and --conf spark.driver.memory=SIZE gives it another size; start the command "
    "again"
)


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


def test_sessions_come_one_after_the_other_quietly_and_leave_nothing_also_where_java_is_killed(
    tmp_path: Path,
):
    users = tmp_path / "conf"
    shutil.copytree(os.environ["SPARK_CONF_DIR"], users)
    with (users / "spark-defaults.conf").open("a", encoding="utf-8") as defaults:
        defaults.write("\nspark.sql.shuffle.partitions 7\n")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    # Java would hold the pipes, and this would wait for their end.
    done = subprocess.run(
        [sys.executable, "-c", OPEN_TWICE],
        env={**os.environ, "TMPDIR": str(temporary), "SPARK_CONF_DIR": str(users)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["3 7", "3 5", DIED]
    assert list(temporary.iterdir()) == []


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


@pytest.mark.parametrize("remote", ["sc://127.0.0.1:1", "sc://127.0.0.1:1/;user_id=me"])
def test_server_that_cannot_be_reached_is_one_sentence_at_once(
    remote: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SPARK_REMOTE", remote)
    monkeypatch.setattr(session.SparkSession, "getActiveSession", lambda: None)
    began = time.monotonic()
    said = rf"cannot reach Spark at {remote}: is the server up\? \(.*refused"
    with pytest.raises(SparkUnavailable, match=said), open_spark():
        pytest.fail("must not come here")
    assert time.monotonic() - began < 5.0


def test_address_that_makes_no_sense_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:door")
    monkeypatch.setattr(session.SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(SparkUnavailable, match=r"cannot reach Spark at .*'door'"), open_spark():
        pytest.fail("must not come here")


def test_spark_connect_without_its_libraries_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    monkeypatch.setattr(session.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(session, "find_spec", lambda _: None)
    with pytest.raises(SparkUnavailable) as caught, open_spark():
        pytest.fail("must not come here")
    assert str(caught.value).endswith(
        "pip install 'octopis[connect]' (in a checkout: pip install -e '.[connect]')"
    )


def test_ctrl_c_ends_java_and_leaves_nothing(spark: SparkSession, tmp_path: Path):
    ingest_synthetic(spark, 1, 3, tmp_path / "quotes")
    words = ("--quotes", "quotes", "--notifications", "20000", "--subscribers", "20")
    build = ("workload", "build", *words, "--master", "local[1]", "--out", "out")
    with on_terminal(tmp_path, *build) as running:
        running.wait_until(lambda: list(tmp_path.glob(".out.*.draft/publishers.parquet")))
        assert running.has_java
        assert running.end() == 130
        assert running.shown == ["octopis: stopped"]
    assert [path.name for path in tmp_path.iterdir()] == ["quotes"]


@pytest.mark.parametrize(
    ("number", "times"), [(signal.SIGINT, 3), (signal.SIGTERM, 1)], ids=["impatient", "stopped"]
)
def test_stop_while_java_starts_leaves_nothing(number: int, times: int, tmp_path: Path):
    build = ("workload", "ingest", "--synthetic", "--master", "local[1]", "--out", "out")
    with on_terminal(tmp_path, *build) as running:
        running.wait_until(lambda: running.has_java)
        assert running.end(number, times) == 130
        assert running.shown == ["octopis: stopped"]
    assert list(tmp_path.iterdir()) == []


def test_frame_is_kept_inside_and_forgotten_after(spark: SparkSession):
    with cached(spark.range(3)) as frame:
        assert frame.is_cached
        assert frame.count() == 3
    assert not frame.is_cached


def test_what_goes_wrong_inside_is_not_hidden_by_a_spark_that_is_gone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    frame = spark.range(3)

    def gone(*_: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(frame, "unpersist", gone, raising=False)
    with pytest.raises(KeyboardInterrupt), cached(frame):
        raise KeyboardInterrupt


PROGRAM = """
import octopis
from octopis.core.filters import parse_filter
from octopis.pipeline.scenarios import truth
print(octopis.__file__, parse_filter("x > 1").matches({"x": 2}))
"""


def test_zip_alone_is_enough_to_parse_and_match(tmp_path: Path):
    archive = zip_package(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [f"{archive}/octopis/__init__.py", "True"]


def test_package_to_ship_stays_while_the_process_runs():
    assert package_to_ship().exists()
    assert package_to_ship() == package_to_ship()


def test_our_own_sentence_from_a_worker_is_found():
    text = "Traceback...\n  File x\noctopis.errors.InvalidConfiguration: a is not b\n\nand so on"
    assert sentence(PySparkException(text)) == "a is not b"


def test_deepest_cause_of_java_is_found():
    text = "Job aborted.\nCaused by: java.io.IOException: first\nCaused by: x.Y: disk is full\n\tat"
    assert sentence(PySparkException(text)) == "disk is full"


def test_fault_in_a_worker_is_found():
    text = "An exception was thrown from the Python worker:\nTraceback\nKeyError: 'x'\n\tat java.Y"
    assert sentence(PySparkException(text)) == "KeyError: 'x'"


def test_class_of_an_exception_is_left_out():
    assert sentence(PySparkException("org.apache.spark.SparkException: no.\n\tat x")) == "no."


def test_long_sentences_are_cut():
    assert len(sentence(PySparkException("x" * 1000))) < 310


def test_errors_of_workers_come_out_as_ours(spark: SparkSession):
    def fail(batches):
        for _ in batches:
            raise InvalidConfiguration("the worker says no")
        yield

    said = "Spark could not finish: the worker says no"
    with pytest.raises(OperationFailed, match=said), plain_errors():
        spark.range(0, 1, 1, 1).mapInArrow(fail, "id long").collect()
