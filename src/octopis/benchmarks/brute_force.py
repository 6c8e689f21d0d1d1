"""What numpy does without an index: compare every range of every filter with the notification."""

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from octopis.filters import Filter
from octopis.filters.spread import spread
from octopis.filters.terms import ValueTerm
from octopis.filters.values import Cut
from octopis.matching.interface import Batch
from octopis.matching.positions import Integers
from octopis.model import Value
from octopis.workload.stock import StockWorkload


class BruteForce:
    """One array of lows and one of highs per attribute; all filters must be plain ranges."""

    def __init__(self, filters: list[Filter], workload: StockWorkload) -> None:
        # Values become ranks among all that occur, so that text compares as fast as numbers.
        self._values: dict[str, list[Any]] = {
            name: sorted(set(column)) for name, column in workload.columns.items()
        }
        self._lows = {name: np.zeros(len(filters), np.int32) for name in workload.names}
        self._highs = {
            name: np.full(len(filters), len(values), np.int32)
            for name, values in self._values.items()
        }
        for number, wanted in enumerate(filters):
            for name, (low, high) in bounds(wanted).items():
                ranks = self._values[name]
                self._lows[name][number] = bisect_left(ranks, low)
                self._highs[name][number] = bisect_right(ranks, high) - 1

    def matches(self, batch: Batch) -> list[Integers]:
        """Return the numbers of the filters that match each notification."""
        answers = []
        for attributes in batch:
            found = np.ones(len(self._lows["symbol"]), np.bool_)
            for name, lows in self._lows.items():
                rank = bisect_left(self._values[name], attributes[name])
                found &= (lows <= rank) & (rank <= self._highs[name])
            answers.append(np.flatnonzero(found))
        return answers


def bounds(wanted: Filter) -> dict[str, tuple[Value, Value]]:
    """Return the first and last value of each attribute that a filter of plain ranges takes."""
    (terms,) = spread(wanted.tree) or ()
    found = {}
    for term in terms:
        assert isinstance(term, ValueTerm)
        ((low, high),) = term.values.intervals()
        assert low is not None
        assert high is not None
        found[term.attribute] = low[0], _last(high)
    return found


def _last(high: Cut) -> Value:
    """Return the last value before the end of a closed range."""
    return high[0][:-1] if isinstance(high[0], str) else high[0]
