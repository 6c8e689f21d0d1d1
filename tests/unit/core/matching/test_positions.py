import sys

import numpy as np
import pytest

from octopis.core.filters.values import Cut
from octopis.core.matching import positions as module
from octopis.core.matching.positions import Positions
from octopis.core.model import Value

LARGEST = sys.float_info.max
BOUNDARIES: dict[str, list[Cut]] = {
    "small numbers": [(10, 0), (20, 1), (10, 1), (0.5, 0)],
    "huge integers": [(2**53 + 1, 0), (2**63 - 1, 1), (-(2**63), 0), (0, 0)],
    "huge floats": [(2.0**63, 0), (1e300, 1), (2**53, 0), (-1e300, 0)],
    "floats beside each other": [(0.5, 0), (0.5 + 2**-53, 1), (0, 0), (-5e-324, 0), (LARGEST, 1)],
    "texts": [("a", 0), ("a\0", 0), ("", 0), ("\ud7ff", 0), ("\ue000", 0), ("\U0010ffff", 0)],
    "booleans": [(True, 0)],
}
VALUES: dict[str, list[Value]] = {
    "small numbers": [-1, 0.5, 0, 10, 10.0, 15, 20, 20.5, 2**63 - 1, 2**53 + 1, -0.0],
    "huge integers": [
        2**53, 2**53 + 1, 2.0**53, 2**53 + 2, 2**63 - 2, 2**63 - 1, 2.0**63, -(2**63),
        -(2.0**63), -(2**63) + 1, -0.0, 0, 1e300,
    ],
    "huge floats": [2**63 - 1, 2.0**63, 1e300, 1e301, 2**53, 2**53 + 1, 2.0**53, -1e300, 0],
    "floats beside each other": [
        0.5, 0.5 + 2**-53, 0.5 + 2**-52, -0.0, 5e-324, -5e-324, -1e-323, LARGEST, -LARGEST, 1, 0,
    ],
    "texts": ["", "\0", "a", "a\0", "a\0\0", "b", "\ud7ff", "\ud7ffz", "\ue000", "\U0010ffff"],
    "booleans": [False, True],
}  # fmt: skip


def obvious(cuts: list[Cut], value: Value) -> int:
    """Return twice the boundaries below `value`, and one more if it lies on the next."""
    boundaries = {boundary for boundary, _ in cuts}
    below = sum(boundary < value for boundary in boundaries)  # type: ignore[operator]
    return 2 * below + (value in boundaries)


@pytest.mark.parametrize("name", BOUNDARIES)
def test_position_counts_boundaries_exactly(name: str):
    cuts, values = BOUNDARIES[name], VALUES[name]
    expected = [obvious(cuts, value) for value in values]
    positions = Positions(cuts)
    assert [positions.of(value) for value in values] == expected
    written = np.empty(len(values), np.int64)
    positions.of_many(values, written, integers=int in map(type, values))
    assert written.tolist() == expected
    for value, place in zip(values, expected, strict=True):
        alone = np.empty(1, np.int64)
        positions.of_many([value], alone, integers=type(value) is int)
        assert alone.tolist() == [place]


@pytest.mark.parametrize("name", BOUNDARIES)
def test_cut_starts_at_the_first_position_behind_it(name: str):
    cuts = BOUNDARIES[name]
    positions = Positions(cuts)
    assert positions.count == 2 * len({value for value, _ in cuts}) + 1
    for (boundary, side), start in zip(cuts, positions.starts.tolist(), strict=True):
        assert start == obvious(cuts, boundary) + side


def test_column_without_boundaries_has_one_position():
    positions = Positions([])
    assert positions.count == 1
    assert positions.of(5) == positions.of("x") == 0


def test_remembered_texts_are_bounded_and_stay_right(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_REMEMBERED_MAX", 3)
    positions = Positions([("m", 0)])
    texts = [f"{letter}{number}" for letter in "az" for number in range(20)]
    texts += ["a" * 65_535, "z" * 65_535]
    for _ in range(2):
        written = np.empty(len(texts), np.int64)
        positions.of_many(texts, written, integers=False)
        assert written.tolist() == [0] * 20 + [2] * 20 + [0, 2]
    assert len(positions._remembered) <= 3
    assert max(map(len, positions._remembered)) < 100
