"""Seeded stock quotes of 10 attributes, and filters of 2 to 4 ranges that match a share of them.

500 symbols walk at random, one quote a day each.
"""

from datetime import date, timedelta
from typing import Any

import numpy as np

from octopis.core.filters import Filter
from octopis.core.model import Value
from octopis.scenario.drawing import DrawnFilters

SYMBOLS = 500
SAMPLE = 5_000


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
        self._ranges = DrawnFilters(sample, selectivity)
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
