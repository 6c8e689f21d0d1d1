"""Where a value stands among the boundaries of all terms on one attribute.

The boundaries of a column's terms, sorted, cut the line of values into positions:

    boundaries          10        20        30
    positions      0     1    2    3    4    5    6        even: between, odd: on a boundary

Two values at one position match exactly the same terms, so comparing positions (small integers)
replaces comparing values, for numbers and text alike, and open and closed ends need no care.
"""

from bisect import bisect_right
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from octopis.core.filters.values import Cut
from octopis.core.model import Value

Integers = npt.NDArray[np.int64]

_FLOAT_EXACT = 2.0**53
"""Below this, every 64-bit integer is a float too."""

_REMEMBERED_MAX = 1_024
"""Texts whose position is kept at hand, if boundaries are not more; the same few come again."""

_REMEMBERED_LENGTH_MAX = 64
"""Characters of a text that is kept: publishers choose texts, and they may be long."""


class Positions:
    """The sorted boundaries of one column, and the position of any value among them."""

    def __init__(self, cuts: list[Cut]) -> None:
        """Take the cuts of all terms; `starts` then holds the position where each cut lies."""
        values = [value for value, _ in cuts]
        self._floats: npt.NDArray[np.float64] | None = None
        self._remembered: dict[Value, int] = {}
        if values and not isinstance(values[0], str) and _are_floats(values):
            floats, ranks = np.unique(np.array(values, np.float64), return_inverse=True)
            self._floats = floats
            # Where each position begins: on a boundary, and just after it.
            with np.errstate(over="ignore"):  # after the largest float comes infinity
                after = np.nextafter(floats, np.inf)
            self._begins = np.stack([floats, after], axis=1).ravel()
        else:
            self._sorted = sorted(set(values))
            rank_of = {value: rank for rank, value in enumerate(self._sorted)}
            ranks = np.array([rank_of[value] for value in values], np.int64)
        sides = np.array([side for _, side in cuts], np.int64)
        self.starts: Integers = 2 * ranks.astype(np.int64) + 1 + sides
        boundaries = len(self._sorted) if self._floats is None else len(self._floats)
        self.count = 2 * boundaries + 1

    @cached_property
    def _sorted(self) -> list[Any]:
        assert self._floats is not None
        return list(self._floats.tolist())

    def of(self, value: Value) -> int:
        """Return the position of one value, compared exactly."""
        rank = bisect_right(self._sorted, value)
        return 2 * rank - (rank > 0 and self._sorted[rank - 1] == value)

    def of_many(self, values: list[Any], positions: Integers, *, integers: bool) -> None:
        """Write the positions of many values of the column's kind, compared exactly.

        `integers` says whether there are integers among them, which may be too large for floats.
        """
        if self._floats is not None and not (integers and _are_large(values)):
            positions[:] = self._begins.searchsorted(np.array(values, np.float64), side="right")
            return
        find = self._remember if isinstance(values[0], str) else self.of
        positions[:] = list(map(find, values))

    def _remember(self, text: str) -> int:
        position = self._remembered.get(text)
        if position is None:
            position = self.of(text)
            if len(text) <= _REMEMBERED_LENGTH_MAX:
                if len(self._remembered) >= max(_REMEMBERED_MAX, self.count):
                    self._remembered.clear()
                self._remembered[text] = position
        return position


def _are_large(values: list[Any]) -> bool:
    return bool(max(values) >= _FLOAT_EXACT or min(values) <= -_FLOAT_EXACT)


def _are_floats(values: list[Any]) -> bool:
    """Tell whether every number is exactly a float."""
    numbers = np.array(values, np.float64)
    large = np.flatnonzero(np.abs(numbers) >= _FLOAT_EXACT).tolist()
    # Python compares integer and float exactly.
    return all(float(values[index]) == values[index] for index in large)
