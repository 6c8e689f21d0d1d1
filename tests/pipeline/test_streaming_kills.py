"""Everything dies while Spark reads a stream and writes it back, and every row is there once."""

from pathlib import Path
from random import Random

from octopis.benchmarks.spark.mortal_driver import MortalDriver
from octopis.benchmarks.spark.streaming_driver import Options
from octopis.benchmarks.spark.streaming_kills import Blows, Plan, run


def test_rows_are_read_and_written_once_whatever_dies():
    said: list[str] = []
    found = run(Plan(20_000, drivers=2, brokers=1, workers=1, seed=24), said.append)
    assert found.blows["driver"] == Blows(early=1, later=1)
    assert found.blows["broker"] == Blows(later=1)
    assert found.blows["worker"] == Blows(later=1)
    assert [line for line in said if "killed" in line] == [
        "killed a driver",
        "killed a driver before any progress",
        "killed a broker",
        "killed a worker",
    ]
    assert "killed: drivers 2 (1 before any progress), brokers 1 (0" in found.told
    assert found.table == found.wanted
    assert found.written == found.wanted
    assert found.is_exact


def test_a_blow_that_finds_nobody_is_none(tmp_path: Path):
    driver = MortalDriver(Options("octopis://127.0.0.1:1", str(tmp_path), 1), tmp_path, print)
    assert not driver.kill()
    assert not driver.kill_worker(Random(1))  # noqa: S311 - no secret
    assert str(Blows(early=1, later=2, missed=1)) == "3 (1 before any progress), and 1 found none"
