"""Filters drawn from a sample of rows, so that each matches about the wanted share of them.

A filter picks 2 to 4 attributes. Of numbers (and of texts, where that is asked for) it wants a
range between quantiles; of others a value, several, or a prefix that are frequent enough. All terms
but the last are drawn freely, the last is fitted to what they leave.
"""

from bisect import bisect_left
from collections.abc import Collection
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from octopis.core.filters import Filter
from octopis.core.filters.terms import ValueTerm
from octopis.core.filters.tree import conjunction
from octopis.core.filters.values import (
    ValueSet,
    any_of,
    between,
    cut_after,
    cut_before,
    kind_of,
    only,
    prefix_end,
    with_prefix,
)

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MEMBERS_MAX = 16
"""How many values a filter names at most for one attribute."""


class Drawn(NamedTuple):
    """A filter, and the share of the sample that it matches (equal values count together)."""

    filter: Filter
    share: float


class _Term(NamedTuple):
    """A term of a filter: which rows it matches, and which it was meant to."""

    term: ValueTerm
    meant: Mask
    matched: Mask


class DrawnFilters:
    """Draws filters that each match about `selectivity` of the rows in `sample`.

    An attribute that is None in a row is absent there. Of those in `by_value` filters name values.
    """

    def __init__(
        self, sample: dict[str, list[Any]], selectivity: float, by_value: Collection[str] = ()
    ) -> None:
        self._names = [
            name for name, values in sample.items() if any(v is not None for v in values)
        ]
        self._sample = sample
        self._by_value = frozenset(by_value)
        self._selectivity = selectivity
        self.size = len(next(iter(sample.values()), []))
        self._orders: dict[str, Integers] = {}
        self._ranks: dict[str, Integers] = {}
        self._distinct: dict[str, list[Any]] = {}
        for name in self._names:
            values = sample[name]
            present = (place for place in range(self.size) if values[place] is not None)
            order = np.array(sorted(present, key=values.__getitem__), np.int64)
            self._orders[name] = order
            self._ranks[name] = _ranks(values, order)
            if name in self._by_value:
                self._distinct[name] = sorted({value for value in values if value is not None})

    def draw(self, random: np.random.Generator) -> Drawn:
        """Return a filter of 2 to 4 terms, or fewer where there are fewer attributes."""
        assert self._names, "some attribute has a value"
        while True:
            drawn = self._try(random)
            if drawn is not None:
                return drawn

    def _try(self, random: np.random.Generator) -> Drawn | None:
        """Return a filter, or None where its terms exclude each other."""
        terms = min(int(random.integers(2, 5)), len(self._names))
        names = [self._names[pick] for pick in random.permutation(len(self._names))[:terms]]
        names.sort(key=self._is_coarse)
        free = int(self.size * self._selectivity ** (1 / terms))
        fitted = int(self.size * self._selectivity)
        left = np.ones(self.size, np.bool_)
        matched = np.ones(self.size, np.bool_)
        found = []
        for step, name in enumerate(names):
            order, size = self._orders[name], free
            if step == terms - 1:  # fit the last term to what the others leave
                order, size = order[left[order]], fitted
            make = self._values if name in self._by_value else self._range
            term = make(name, order, size, random)
            if term is None:
                return None
            left &= term.meant
            matched &= term.matched
            found.append(term.term)
        share = np.count_nonzero(matched) / self.size
        return Drawn(Filter(conjunction(found)), share)

    def _is_coarse(self, name: str) -> bool:
        """Tell what comes last: a range can be fitted to any share, a value only to its own."""
        return bool(self._by_value) and name not in self._by_value

    def _range(
        self, name: str, order: Integers, size: int, random: np.random.Generator
    ) -> _Term | None:
        start = int(random.integers(0, max(1, len(order) - size + 1)))
        window = order[start : start + size]
        if not len(window):
            return None
        inside = np.zeros(self.size, np.bool_)
        inside[window] = True
        ranks, values = self._ranks[name], self._sample[name]
        low, high = window[0], window[-1]
        matched = (ranks >= ranks[low]) & (ranks <= ranks[high])
        kept = between(cut_before(values[low]), cut_after(values[high]), kind_of(values[low]))
        return _Term(ValueTerm(name, kept), inside, matched)

    def _values(
        self, name: str, order: Integers, size: int, random: np.random.Generator
    ) -> _Term | None:
        if not len(order):
            return None
        ranks, distinct = self._ranks[name], self._distinct[name]
        counts = np.bincount(ranks[order], minlength=len(distinct))
        first = int(ranks[order[int(random.integers(0, len(order)))]])
        style = int(random.integers(0, 3))
        chosen = np.array([first])
        kept = only(distinct[first])
        if style == 1 and isinstance(distinct[first], str):
            chosen, kept = _prefix(distinct, first, counts, size)
        elif style == 2:
            chosen = _members(first, counts, size, random)
            kept = any_of([distinct[rank] for rank in chosen])
        matched = np.isin(ranks, chosen)
        return _Term(ValueTerm(name, kept), matched, matched)


def _prefix(
    distinct: list[str], first: int, counts: Integers, size: int
) -> tuple[Integers, ValueSet]:
    """Return the prefix of a value that as many rows have as are wanted, about."""
    before = np.append(0, np.cumsum(counts))
    value, found = distinct[first], []
    for length in range(1, len(value)):
        low, end = bisect_left(distinct, value[:length]), prefix_end(value[:length])
        high = bisect_left(distinct, end) if end else len(distinct)
        found.append((abs(int(before[high] - before[low]) - size), -length, low, high))
    found.append((abs(int(counts[first]) - size), -len(value), first, first + 1))
    _, length, low, high = min(found)
    kept = only(value) if -length == len(value) else with_prefix(value[:-length])
    return np.arange(low, high), kept


def _members(first: int, counts: Integers, size: int, random: np.random.Generator) -> Integers:
    """Return values, `first` among them, that as many rows have together as are wanted, about."""
    chosen, total = [first], int(counts[first])
    for rank in random.permutation(len(counts)).tolist():
        if total >= size or len(chosen) == MEMBERS_MAX:
            break
        more = int(counts[rank])
        if rank != first and more and abs(total + more - size) < size - total:
            chosen.append(rank)
            total += more
    return np.array(chosen)


def _ranks(values: list[Any], order: Integers) -> Integers:
    """Number the values from the smallest; equal values have one number, absent ones -1."""
    ranks = np.full(len(values), -1, np.int64)
    places = order.tolist()
    rank = 0
    if places:
        ranks[places[0]] = 0
    for before, place in pairwise(places):
        rank += values[place] != values[before]
        ranks[place] = rank
    return ranks
