import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from octopis.errors import InvalidConfiguration, SparkDied
from octopis.pipeline.spark.ending import deaths_told


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "java.log"
    path.touch()
    return path


@pytest.fixture
def living() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that stands for a Java that lives."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate()


def ended(code: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", code])
    process.wait()
    return process


@pytest.mark.parametrize(
    ("code", "said", "reason"),
    [
        ("import sys; sys.exit(52)", "", "its memory did not suffice"),
        ("import sys; sys.exit(3)", "x.Y: no\n\tat z", "its Java has ended with status 3 (no)"),
        ("import os; os.kill(os.getpid(), 9)", "", "its Java was killed, as happens when"),
        ("import os; os.kill(os.getpid(), 15)", "", "its Java was ended from outside (SIGTERM)"),
    ],
)
def test_what_has_become_of_java_is_told(code: str, said: str, reason: str, log: Path):
    log.write_text(said, encoding="utf-8")
    with pytest.raises(SparkDied) as raised, deaths_told(ended(code), "3g", log):
        raise ConnectionRefusedError
    assert raised.value.reason.startswith(reason)
    assert "it had 3g" in str(raised.value)


@pytest.mark.parametrize("in_log", [True, False])
def test_lack_of_memory_is_told_of_a_java_that_lives_on(in_log: bool, living, log: Path):
    said = "java.lang.OutOfMemoryError: Java heap space"
    if in_log:
        log.write_text(f"ERROR Executor: Exception in task\n{said}\n", encoding="utf-8")
    with pytest.raises(SparkDied, match="its memory did not suffice"):
        with deaths_told(living, "3g", log):
            raise PySparkException("anything" if in_log else f"Job aborted: {said}")


@pytest.mark.parametrize("failure", [InvalidConfiguration("no"), OSError("disk full")])
def test_what_is_no_fault_of_spark_stays_what_it_is(failure: Exception, living, log: Path):
    log.write_text("java.lang.OutOfMemoryError, from which Spark recovered", encoding="utf-8")
    with pytest.raises(type(failure)) as raised, deaths_told(living, "3g", log):
        raise failure
    assert raised.value is failure


def test_java_that_lives_has_not_died(living, log: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("octopis.pipeline.spark.ending._REAP_S", 0.1)
    with pytest.raises(Py4JError), deaths_told(living, "3g", log):
        raise Py4JError("no")
