"""What our parts log in Spark's processes is logged in the user's, and nothing else of Spark's."""

import logging
from pathlib import Path

import pytest

from octopis.pipeline.spark.saying import MARK, mark_logs, said_again


def test_marked_lines_are_said_again_as_they_come(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    file = tmp_path / "java.log"
    file.write_text("WARN of Spark's\n")
    with said_again(file), file.open("a") as log:
        log.write(f"{MARK}3 rows were ref")
        log.flush()
        log.write(f"used\nat java.base\n{MARK}a gap: ä\n")
    assert caplog.messages == ["3 rows were refused", "a gap: ä"]


def test_lines_are_marked_in_processes_of_sparks_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.delenv("SPARK_BUFFER_SIZE", raising=False)
    monkeypatch.delenv("SPARK_REUSE_WORKER", raising=False)
    name = "octopis.tests.said"
    mark_logs(name)
    assert not logging.getLogger(name).handlers
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    for _ in range(2):
        mark_logs(name)
    logging.getLogger(f"{name}.below").warning("%d rows", 2)
    assert capsys.readouterr().err == f"{MARK}2 rows\n"
