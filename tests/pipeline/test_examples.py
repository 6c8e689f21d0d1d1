"""The examples run as they are."""

import runpy
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_queue_of_a_trace_is_plotted(
    spark: SparkSession,  # noqa: ARG001 - the example uses the session that is there
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "argv", ["queue_over_time.py"])

    found = runpy.run_path(str(EXAMPLES / "queue_over_time.py"))

    longest = {name: rows["queue_length"].max() for name, rows in found["series"].items()}
    assert longest["queue-burst-dnr"] < longest["queue-burst-snr"]
    assert (tmp_path / "queue.png").read_bytes().startswith(b"\x89PNG")


def test_queue_of_a_trace_that_is_given_is_plotted(
    spark: SparkSession,  # noqa: ARG001 - the example uses the session that is there
    octopis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    made = octopis("sim", "example", "--out", "s", "--high-rate", "300", "--notifications", "5")
    assert made[0] == 0
    assert octopis("sim", "run", "s", "--level", "full", "--out", "mine")[0] == 0
    monkeypatch.setattr(sys, "argv", ["queue_over_time.py", "mine"])

    found = runpy.run_path(str(EXAMPLES / "queue_over_time.py"))

    assert list(found["series"]) == ["mine"]
    assert (tmp_path / "queue.png").exists()
