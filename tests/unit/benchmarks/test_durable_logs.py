"""What the logs of durable subscribers prove: each kind of breach is seen, and nothing else."""

from pathlib import Path

import numpy as np
import pytest

from octopis.benchmarks.channels.logs import Wants
from octopis.benchmarks.durable.logs import (
    TAKEN,
    DurableVerdict,
    judge,
    read_lives,
    read_said,
)

Row = tuple[int, int, int]
SAID = "0 4\n? 4 2\n6 2\n"
WHOLE: list[Row] = [(1, 0, 0), (2, 0, 1), (3, 0, 2), (4, 0, 3), (5, 0, 6), (6, 0, 7)]


def verdict_of(folder: Path, *lives: list[Row]) -> DurableVerdict:
    (folder / "p.said").write_text(SAID, encoding="utf-8")
    for number, life in enumerate(lives):
        torn = b"\1\2\3" if number < len(lives) - 1 else b""  # killed while it wrote
        (folder / f"s.{number:04d}.taken").write_bytes(np.array(life, TAKEN).tobytes() + torn)
    said = {"p": read_said(folder / "p.said")}
    return judge({"s": Wants(("p",))}, said, {"s": read_lives(folder, "s")})


def test_what_is_taken_again_after_a_death_is_the_same_and_no_breach(tmp_path: Path):
    found = verdict_of(tmp_path, WHOLE[:4], WHOLE[2:])
    assert found.breaches == []
    assert (found.accepted, found.unknown, found.expected, found.again) == (6, 2, 6, 2)


def test_what_nobody_was_told_of_may_come_or_not(tmp_path: Path):
    assert verdict_of(tmp_path, [*WHOLE[:4], (5, 0, 4), (6, 0, 6), (7, 0, 7)]).breaches == []


@pytest.mark.parametrize(
    ("lives", "breaches"),
    [
        ([WHOLE[:5]], ["1 lost"]),
        ([[*WHOLE, (7, 0, 7)]], ["1 twice"]),
        ([[*WHOLE[:2], (3, 0, 3), (4, 0, 2), *WHOLE[4:]]], ["1 out of order"]),
        ([[*WHOLE, WHOLE[-1]]], ["1 out of order"]),
        ([[*WHOLE, (7, 0, 9)]], ["1 unasked"]),
        ([[*WHOLE[:5], (7, 0, 7)]], ["1 positions skipped"]),
        ([WHOLE[:3], [(3, 0, 9), *WHOLE[3:]]], ["1 positions changed"]),
    ],
)
def test_each_breach_is_named(lives: list[list[Row]], breaches: list[str], tmp_path: Path):
    assert verdict_of(tmp_path, *lives).breaches == breaches
