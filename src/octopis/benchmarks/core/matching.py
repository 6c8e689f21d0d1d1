"""`octopis bench matching`: the index, the linear oracle and numpy brute force in one run.

Brute force is what numpy does without an index: it compares every range of every filter with the
notification.
"""

import gc
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec
import numpy as np

from octopis.benchmarks.processes import run_child
from octopis.core.filters import Filter
from octopis.core.filters.sql import parse_sql
from octopis.core.filters.terms import ValueTerm
from octopis.core.filters.tree import to_conjunctions
from octopis.core.filters.values import Cut
from octopis.core.matching import BitsetIndex, LinearIndex
from octopis.core.matching.interface import Batch
from octopis.core.matching.positions import Integers
from octopis.core.model import Value
from octopis.report.machine import memory_peak_mb
from octopis.scenario.stock import StockWorkload

DESTINATIONS = 7
BATCH = 64
TARGETS: dict[tuple[int, str], float] = {
    (10_000, "filter of five terms parsed"): 300,
    (10_000, "destinations, batches of 64"): 7,
    (10_000, "all matches, batches of 64"): 60,
    (10_000, "destinations, one at a time"): 80,
    (10_000, "10,000 added one by one"): 2,
    (10_000, "10,000 removed one by one"): 2,
    (100_000, "destinations, batches of 64"): 60,
    (100_000, "all matches, batches of 64"): 700,
    (1_000_000, "built"): 90,
    (1_000_000, "memory"): 4_000,
    (1_000_000, "destinations, batches of 64"): 800,
}
HOSTILE_TARGETS: dict[tuple[str, str], float] = {
    ("many names", "memory of the index"): 100,
    ("many names", "destinations, batches of 64"): 20,
    ("many names", "destinations, one at a time"): 20,
}
"""What we set out to reach on a 2-core machine, in the figure's own unit."""


@dataclass(frozen=True, slots=True)
class MatchingFigure:
    """One measured figure."""

    subscriptions: int
    structure: str
    what: str
    value: float
    unit: str

    @property
    def target(self) -> float | None:
        """What it should be at most, for the index."""
        if self.structure == "index":
            return TARGETS.get((self.subscriptions, self.what))
        return HOSTILE_TARGETS.get((self.structure, self.what))


def run(sizes: list[int], seed: int) -> Iterator[list[MatchingFigure]]:
    """Yield the figures of each size, each measured in a process of its own.

    So memory is that of one size alone. An interrupt ends the process, too.
    """
    for size in sizes:
        command = [sys.executable, "-m", __name__, str(size), str(seed)]
        printed = run_child(command, f"measuring {size:,} subscriptions")
        yield msgspec.json.decode(printed, type=list[MatchingFigure])


def measure(size: int, seed: int) -> list[MatchingFigure]:
    """Return all figures for an index of `size` subscriptions."""
    workload = StockWorkload(seed)
    filters = workload.filters(size)
    batches = in_batches(workload.notifications(BATCH * 40))
    index: BitsetIndex[int, int] = BitsetIndex()
    entries = [(number, filter_, number % DESTINATIONS) for number, filter_ in enumerate(filters)]
    gc.collect()
    start = time.perf_counter()
    index.add_many(entries)
    index.destinations(batches[0][:1])
    built = time.perf_counter() - start
    matched = sum(len(found) for batch in batches[:5] for found in index.matches(batch))

    def figure(
        what: str, value: float, unit: str = "us", structure: str = "index"
    ) -> MatchingFigure:
        return MatchingFigure(size, structure, what, value, unit)

    repeats = 40 if size <= 100_000 else 5
    figures = [
        figure("matches per notification", matched / (5 * BATCH), ""),
        figure("built", built, "s"),
        figure(
            "destinations, batches of 64", per_notification(index.destinations, batches[:repeats])
        ),
        figure("all matches, batches of 64", per_notification(index.matches, batches[:repeats])),
        figure(
            "destinations, one at a time",
            per_notification(index.destinations, [[one] for batch in batches[:5] for one in batch]),
        ),
        figure("memory", memory_peak_mb(), "MB"),
    ]
    if size == 10_000:
        figures.append(figure("filter of five terms parsed", _parse_time(filters)))
        figures += [figure(what, value, "s") for what, value in _changes(entries, batches)]
    if size <= 10_000:
        linear: LinearIndex[int, int] = LinearIndex()
        linear.add_many(entries)
        slow = per_notification(linear.matches, [batches[0][:10], batches[1][:10]])
        figures.append(figure("all matches", slow, structure="linear oracle"))
    if size <= 100_000:
        brute = BruteForce(filters, workload)
        few = [batch[:16] for batch in batches[:4]]
        figures.append(
            figure(
                "all matches",
                per_notification(brute.matches, few),
                structure="numpy brute force",
            )
        )
    return figures


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
        for number, filter_ in enumerate(filters):
            for name, (low, high) in bounds(filter_).items():
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


def bounds(filter_: Filter) -> dict[str, tuple[Value, Value]]:
    """Return the first and last value of each attribute that a filter of plain ranges takes."""
    (terms,) = to_conjunctions(filter_.tree) or ()
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


def _parse_time(filters: list[Filter]) -> float:
    """Return the median of microseconds to parse a filter of five terms for the first time."""
    texts = [
        f"{filter_} AND note IS NULL" for filter_ in filters if str(filter_).count("BETWEEN") == 4
    ]
    seconds = []
    for text in texts[:500]:
        start = time.perf_counter()
        parse_sql(text)
        seconds.append(time.perf_counter() - start)
    return median(seconds) * 1e6


def _changes(
    entries: list[tuple[int, Filter, int]], batches: list[Batch]
) -> Iterator[tuple[str, float]]:
    """Yield the seconds for all adds and all removes, with a batch matched after every 64."""
    index: BitsetIndex[int, int] = BitsetIndex()
    start = time.perf_counter()
    for count, entry in enumerate(entries):
        index.add(*entry)
        if count % BATCH == 0:
            index.destinations(batches[count // BATCH % len(batches)])
    yield "10,000 added one by one", time.perf_counter() - start
    start = time.perf_counter()
    for count, entry in enumerate(entries):
        index.remove(entry[0])
        if count % BATCH == 0:
            index.destinations(batches[count // BATCH % len(batches)])
    yield "10,000 removed one by one", time.perf_counter() - start


def in_batches(notifications: Batch) -> list[Batch]:
    """Return the notifications in batches of 64."""
    return [notifications[start : start + BATCH] for start in range(0, len(notifications), BATCH)]


def per_notification(match: Callable[[Batch], object], batches: list[Batch]) -> float:
    """Return the median over batches of microseconds per notification."""
    match(batches[0])
    seconds = []
    for batch in batches:
        start = time.perf_counter()
        match(batch)
        seconds.append((time.perf_counter() - start) / len(batch))
    return median(seconds) * 1e6


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(measure(int(sys.argv[1]), int(sys.argv[2]))))
