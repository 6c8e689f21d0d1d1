"""Seeded stock quotes of 10 attributes, and filters of 2 to 4 ranges that match a share of them.

500 symbols walk at random, one quote a day each. A filter picks attributes, and ranges between the
quantiles of a sample: all ranges but the last are drawn freely, the last is fitted to what they
leave, so that every filter matches about the wanted share of the sample.
"""

from datetime import date, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from octopis.core.filters import Filter
from octopis.core.filters.terms import ValueTerm
from octopis.core.filters.tree import conjunction
from octopis.core.filters.values import between, cut_after, cut_before, kind_of
from octopis.core.model import Value

Integers = npt.NDArray[np.int64]
SYMBOLS = 500
SAMPLE = 5_000


class Drawn(NamedTuple):
    """A filter, and the share of the sample that it matches (equal values count together)."""

    filter: Filter
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


class StockWorkload:
    """Quotes, and filters that each match about `selectivity` of them."""

    def __init__(self, seed: int, selectivity: float = 0.02) -> None:
        self._random = np.random.default_rng(seed)
        self.columns = _quotes(self._random, days=120)
        self.names = list(self.columns)
        chosen = self._random.permutation(len(self.columns["symbol"]))
        sample = {
            name: [values[index] for index in chosen[:SAMPLE]]
            for name, values in self.columns.items()
        }
        self._ranges = RangeFilters(sample, selectivity)
        self._shuffled = chosen[SAMPLE:]

    def notifications(self, count: int) -> list[dict[str, Value]]:
        """Return quotes that were not used to make the filters, in random order."""
        rows = np.resize(self._shuffled, count).tolist()
        return [{name: self.columns[name][row] for name in self.names} for row in rows]

    def filters(self, count: int) -> list[Filter]:
        """Return `count` filters of 2 to 4 ranges each."""
        return [self._ranges.draw(self._random).filter for _ in range(count)]


def daily_quotes(seed: int, days: int) -> dict[str, list[Any]]:
    """Return one quote a day for each symbol, in columns; the same seed gives the same quotes."""
    return _quotes(np.random.default_rng(seed), days)


def _quotes(draw: np.random.Generator, days: int) -> dict[str, list[Any]]:
    market = draw.normal(0, 0.01, (days, 1))
    steps = 0.6 * market + draw.normal(0, 0.015, (days, SYMBOLS))
    close = draw.lognormal(4, 0.8, SYMBOLS) * np.exp(np.cumsum(steps, axis=0))
    opening = close * np.exp(draw.normal(0, 0.008, close.shape))
    high = np.maximum(opening, close) * (1 + draw.exponential(0.006, close.shape))
    low = np.minimum(opening, close) * (1 - draw.exponential(0.006, close.shape))
    volume = draw.lognormal(13, 1.2, close.shape).astype(np.int64)
    change = 100 * (close / opening - 1)
    spread = 100 * (high - low) / low
    first = date(2023, 1, 2)
    dates = [(first + timedelta(days=day)).isoformat() for day in range(days)]
    prices = {"open": opening, "high": high, "low": low, "close": close}
    return {
        "symbol": [f"S{number:03d}" for number in range(SYMBOLS)] * days,
        "date": [day for day in dates for _ in range(SYMBOLS)],
        **{name: np.round(price, 2).ravel().tolist() for name, price in prices.items()},
        "volume": volume.ravel().tolist(),
        "change_percent": np.round(change, 3).ravel().tolist(),
        "range_percent": np.round(spread, 3).ravel().tolist(),
        "traded_value": np.round(close * volume, 0).ravel().tolist(),
    }
