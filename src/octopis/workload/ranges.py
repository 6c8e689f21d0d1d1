"""Filters of 2 to 4 ranges, fitted to the quantiles of a sample.

All ranges but the last are drawn freely, the last is fitted to what they leave, so that every
filter matches about the wanted share of the sample.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from octopis.filters import Filter
from octopis.filters.terms import ValueTerm
from octopis.filters.tree import conjunction
from octopis.filters.values import between, cut_after, cut_before, kind_of
from octopis.model import Value

Integers = npt.NDArray[np.int64]


class Drawn(NamedTuple):
    """A filter, and the share of the sample that it matches (equal values count together)."""

    wanted: Filter
    share: float


class RangeFilters:
    """Draws filters that each match about `selectivity` of the rows in `sample`."""

    def __init__(self, sample: dict[str, list[Any]], selectivity: float) -> None:
        self._names = list(sample)
        self._sample = sample
        self._selectivity = selectivity
        self.size = len(next(iter(sample.values())))
        self._orders: dict[str, Integers] = {}
        self._ranks: dict[str, Integers] = {}
        for name, values in sample.items():
            order = np.array(sorted(range(self.size), key=values.__getitem__), np.int64)
            self._orders[name] = order
            self._ranks[name] = _ranks(values, order)

    def draw(self, random: np.random.Generator) -> Drawn:
        """Return a filter of 2 to 4 ranges."""
        while True:
            drawn = self._try(random)
            if drawn is not None:
                return drawn

    def _try(self, random: np.random.Generator) -> Drawn | None:
        """Return a filter, or None where its ranges exclude each other."""
        terms = int(random.integers(2, 5))
        picks = random.permutation(len(self._names))[:terms]
        free = int(self.size * self._selectivity ** (1 / terms))
        fitted = int(self.size * self._selectivity)
        left = np.ones(self.size, np.bool_)
        matched = np.ones(self.size, np.bool_)
        ranges = []
        for step, pick in enumerate(picks.tolist()):
            name = self._names[pick]
            order, size = self._orders[name], free
            if step == terms - 1:  # fit the last range to what the others leave
                order, size = order[left[order]], fitted
            start = int(random.integers(0, max(1, len(order) - size + 1)))
            window = order[start : start + size]
            if not len(window):
                return None
            inside = np.zeros(self.size, np.bool_)
            inside[window] = True
            left &= inside
            ranks, values = self._ranks[name], self._sample[name]
            matched &= (ranks >= ranks[window[0]]) & (ranks <= ranks[window[-1]])
            ranges.append(_range(name, values[window[0]], values[window[-1]]))
        share = np.count_nonzero(matched) / self.size
        return Drawn(Filter(conjunction(ranges)), share)


def _ranks(values: list[Any], order: Integers) -> Integers:
    """Number the values from the smallest; equal values have one number."""
    ranks = np.zeros(len(order), np.int64)
    rank, places = 0, order.tolist()
    for before, place in pairwise(places):
        rank += values[place] != values[before]
        ranks[place] = rank
    return ranks


def _range(name: str, low: Value, high: Value) -> ValueTerm:
    return ValueTerm(name, between(cut_before(low), cut_after(high), kind_of(low)))
