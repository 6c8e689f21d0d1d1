"""Delays are told of every delivery whose notification is known, in one folder or in many."""

from pathlib import Path

import numpy as np
import pytest

from octopis.errors import InvalidConfiguration
from octopis.trace import Level
from octopis.trace.delays import parts_of, quantile, read_delays
from octopis.trace.writer import TraceWriter


def write(folder: Path, publications: list[tuple[str, int, int]], deliveries: list) -> None:
    """Write a trace: (publisher, sequence, intended), and (publisher, sequence, delivered)."""
    with TraceWriter(folder, Level.DELIVERIES) as writer:
        for publisher, sequence, intended in publications:
            row = (publisher, sequence, "a,0", intended, intended, *(None,) * 4)
            writer.write_rows("publications", [row])
        for publisher, sequence, delivered in deliveries:
            row = (publisher, sequence, "s", "a,0", delivered, None)
            writer.write_rows("deliveries", [row])
    (folder / "run.json").touch()


def delays(trace: Path) -> list[tuple[int, int]]:
    found = read_delays(trace)
    assert found is not None
    return sorted(zip(*(column.tolist() for column in found), strict=True))


def test_delay_is_from_the_intended_time(tmp_path: Path):
    write(tmp_path / "t", [("p", 1, 10), ("q", 1, 20), ("p", 2, 30)], [("p", 2, 35), ("q", 1, 27)])
    assert delays(tmp_path / "t") == [(27, 7), (35, 5)]


def test_live_overlay_has_a_folder_for_each_broker(tmp_path: Path):
    write(tmp_path / "live" / "a,0", [("p", 1, 10)], [("q", 9, 100)])
    write(tmp_path / "live" / "a,1", [("q", 9, 20)], [("p", 1, 13), ("q", 9, 120)])
    assert delays(tmp_path / "live") == [(13, 3), (100, 80), (120, 100)]
    assert [part.name for part in parts_of(tmp_path / "live")] == ["a,0", "a,1"]


def test_delivery_of_an_unknown_notification_is_left_out(tmp_path: Path):
    write(tmp_path / "t", [("p", 1, 10)], [("p", 2, 35), ("x", 1, 35), ("p", 1, 12)])
    assert delays(tmp_path / "t") == [(12, 2)]
    write(tmp_path / "none", [], [("p", 2, 35)])
    assert delays(tmp_path / "none") == []


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
