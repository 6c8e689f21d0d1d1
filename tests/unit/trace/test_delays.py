"""Delays are told of every delivery, in one folder or in many."""

from pathlib import Path

import numpy as np
import pytest

from octopis.errors import InvalidConfiguration
from octopis.trace import Level
from octopis.trace.delays import quantile, read_delays
from octopis.trace.writer import TraceWriter


def write(folder: Path, deliveries: list[tuple[int, int]]) -> None:
    """Write a trace of deliveries: (delivered, delay)."""
    with TraceWriter(folder, Level.DELIVERIES) as writer:
        for number, times in enumerate(deliveries):
            writer.write_rows("deliveries", [("p", number, "s", "a,0", *times, None)])
    (folder / "run.json").touch()


def delays(trace: Path) -> list[tuple[int, int]]:
    found = read_delays(trace)
    assert found is not None
    return sorted(zip(*(column.tolist() for column in found), strict=True))


def test_delays_are_those_of_the_trace(tmp_path: Path):
    write(tmp_path / "t", [(35, 5), (27, 7)])
    assert delays(tmp_path / "t") == [(27, 7), (35, 5)]
    write(tmp_path / "none", [])
    assert delays(tmp_path / "none") == []


def test_live_overlay_has_a_folder_for_each_broker(tmp_path: Path):
    write(tmp_path / "live" / "a,0", [(100, 80)])
    write(tmp_path / "live" / "a,1", [(13, 3), (120, 100)])
    assert delays(tmp_path / "live") == [(13, 3), (100, 80), (120, 100)]


def test_folder_without_a_trace_is_named(tmp_path: Path):
    with pytest.raises(InvalidConfiguration, match="holds no finished trace"):
        read_delays(tmp_path)


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 50), (0.99, 99), (0.01, 1), (1.0, 100), (0.501, 51)]
)
def test_quantile_is_one_of_the_values(share: float, value: int):
    values = np.random.default_rng(1).permutation(np.arange(1, 101))
    assert quantile(values, share) == value


def test_nothing_has_no_quantile():
    assert quantile(np.zeros(0, np.int64), 0.5) is None
