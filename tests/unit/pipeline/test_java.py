import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from octopis.errors import SparkUnavailable
from octopis.pipeline.spark.ending import interrupt_wins
from octopis.pipeline.spark.java import check_java, java_version, reason_in


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_202"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("nonsense", None),
    ],
)
def test_version_is_read_in_old_and_new_style(text: str, version: int | None):
    assert java_version(text) == version


def test_java_of_this_machine_will_do():
    assert check_java() >= 17


def test_missing_java_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=r"none on the PATH: install Java 17 or newer"):
        check_java()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'java version \"1.8.0_202\"' >&2", "is Java 8, too old for Spark: install Java 17"),
        ("echo hello", "tells no version"),
    ],
)
def test_java_that_will_not_do_is_named(
    script: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=message):
        check_java()


def test_java_home_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="does not run"):
        check_java()


INTERRUPTED = """
import os, signal, sys, threading
from octopis.pipeline.spark import java as java_process, session
room = java_process if hasattr(java_process, sys.argv[1]) else session
step = getattr(room, sys.argv[1])
def begin(*facts):
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    return step(*facts)
setattr(room, sys.argv[1], begin)
try:
    with session.open_spark("local[1]") as spark:
        while True:
            spark.range(3).count()
except KeyboardInterrupt:
    print("stopped")
"""
"""Ctrl-C comes a moment after a step of the start has begun."""


STOP_HIDDEN = """
import signal
from pathlib import Path
from octopis.files import whole_folder
from octopis.pipeline.spark.session import open_spark
try:
    with open_spark("local[1]") as spark, whole_folder(Path("out")):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            spark.range(3).count()  # as PySpark does at some places, of a Java that has gone
except KeyboardInterrupt:
    print("stopped")
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""


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


def test_stop_from_outside_is_a_ctrl_c_and_stays_one_where_what_is_tidied_up_fails(
    tmp_path: Path,
):
    done = subprocess.run(
        [sys.executable, "-c", STOP_HIDDEN],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")
    assert list(tmp_path.iterdir()) == [], "neither Spark nor we leave a folder"


YARN = """\
Exception in thread "main" org.apache.spark.SparkException: When running with master 'yarn' set X.
\tat org.apache.spark.deploy.SparkSubmitArguments.error(SparkSubmitArguments.scala:651)
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
"""
NO_VM = """\
Invalid maximum heap size: -Xmx4x
Error: Could not create the Java Virtual Machine.
Error: A fatal exception has occurred. Program will exit.
"""
NESTED = """\
10:00:00 ERROR SparkContext: Error initializing SparkContext.
org.apache.spark.SparkException: it did not work
\tat a.b.C.d(C.scala:1)
Caused by: java.net.UnknownHostException: nowhere
\tat a.b.C.e(C.scala:2)
\t... 12 more
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("one\n  two \n\n", "two"),
        ("", "it said nothing"),
        (YARN, "When running with master 'yarn' set X."),
        (NESTED, "nowhere"),
        (NO_VM, "Invalid maximum heap size: -Xmx4x"),
    ],
)
def test_reason_is_found_in_what_java_said(said: str, reason: str, tmp_path: Path):
    log = tmp_path / "java.log"
    log.write_text(said, encoding="utf-8")
    assert reason_in(log) == reason
