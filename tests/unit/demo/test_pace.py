"""A machine that does not keep pace is noticed: by late publishers, or by silent brokers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from octopis.demo.pace import Pace, pace_of
from octopis.demo.watching import OverlayMoment
from octopis.errors import OperationFailed
from octopis.trace import Level
from octopis.trace.writer import TraceWriter

MS = 1_000_000


def publications(folder: Path, late_ms: list[float]) -> None:
    with TraceWriter(folder, Level.DELIVERIES) as writer:
        rows = [
            ("p", number, "a,0", number * MS, int((number + late) * MS), *(None,) * 4)
            for number, late in enumerate(late_ms, 1)
        ]
        if rows:
            writer.write_rows("publications", rows)


def test_lateness_is_over_the_publications_of_all_brokers(
    tmp_path: Path, snapshot: Callable[..., OverlayMoment]
):
    publications(tmp_path / "a,0", [1] * 98)
    publications(tmp_path / "b,0", [400, 900])
    publications(tmp_path / "c,0", [])
    seen = [snapshot(seen_ns=at * MS) for at in (0, 200, 1_700, 1_900)]

    found = pace_of(tmp_path, seen)

    assert found == Pace(1.0, 400.0, 1.5)
    assert len(found.troubles) == 2
    assert found.document() == {
        "publications_late_ms": {"median": 1.0, "p99": 400.0},
        "longest_without_status_s": 1.5,
        "kept": False,
    }


def test_machine_that_keeps_pace_has_no_troubles(
    tmp_path: Path, snapshot: Callable[..., OverlayMoment]
):
    # A clock may be read a little early: that is no lateness below 0.
    publications(tmp_path / "a,0", [-0.1, 3, 20])
    found = pace_of(tmp_path, [snapshot(seen_ns=at * MS) for at in (0, 220)])
    assert found == Pace(3.0, 20.0, 0.22)
    assert found.troubles == []


def test_round_without_publications_is_an_error(tmp_path: Path):
    with pytest.raises(OperationFailed, match="have left no publications"):
        pace_of(tmp_path, [])
