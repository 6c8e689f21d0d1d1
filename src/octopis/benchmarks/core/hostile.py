"""`octopis bench matching --hostile`: filters that are legal, and made to exhaust an index.

Memory and time must grow with the terms that are there, whatever their shape: many names of
attributes, ORs of many, LIKE patterns that are dear to evaluate, and very many small filters.
"""

import gc
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

import msgspec

from octopis.benchmarks.core.matching import (
    BATCH,
    DESTINATIONS,
    MatchingFigure,
    in_batches,
    per_notification,
)
from octopis.benchmarks.processes import run_child
from octopis.core.filters import Filter, attr, parse_filter
from octopis.core.filters.operands import Attributes
from octopis.core.filters.tree import terms_of
from octopis.core.matching import BitsetIndex
from octopis.core.matching.interface import Batch

NOTIFICATIONS = BATCH * 10
ATTRIBUTES = 10
"""In each notification."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Filters, and notifications that are matched against them."""

    name: str
    subscriptions: int
    filters: Callable[[int, random.Random], list[Filter]]
    notification: Callable[[int, random.Random], Attributes]


def _many_names(count: int, chosen: random.Random) -> list[Filter]:
    return [
        (attr(f"name{chosen.randrange(count)}") > chosen.randrange(100))
        & (attr(f"name{chosen.randrange(count)}") < chosen.randrange(100))
        for _ in range(count)
    ]


def _of_many_names(count: int, chosen: random.Random) -> Attributes:
    names = chosen.sample(range(count), ATTRIBUTES)
    return {f"name{name}": chosen.randrange(100) for name in names}


def _wide_ors(count: int, _: random.Random) -> list[Filter]:
    return [
        reduce(or_, (attr(f"name{60 * number + n}") == 1 for n in range(60)))
        for number in range(count)
    ]


def _of_wide_ors(count: int, chosen: random.Random) -> Attributes:
    return {f"name{name}": 1 for name in chosen.sample(range(60 * count), ATTRIBUTES)}


def _like_ors(count: int, _: random.Random) -> list[Filter]:
    return [
        parse_filter(
            " OR ".join(f"text{n % 7} LIKE '%{(number + n) % 1000:03}%'" for n in range(150))
        )
        for number in range(count)
    ]


def _without_text(_: int, chosen: random.Random) -> Attributes:
    return {f"name{name}": chosen.randrange(100) for name in range(ATTRIBUTES)}


def _two_terms(count: int, _: random.Random) -> list[Filter]:
    return [
        (attr("symbol") == f"S{number}") & (attr("price") > number % 997) for number in range(count)
    ]


def _quote(count: int, chosen: random.Random) -> Attributes:
    symbol = f"S{chosen.randrange(count)}"
    return {"symbol": symbol, "price": chosen.randrange(2_000), **_without_text(0, chosen)}


WORKLOADS = {
    "many names": Workload("many names", 10_000, _many_names, _of_many_names),
    "wide ORs": Workload("wide ORs", 500, _wide_ors, _of_wide_ors),
    "wide ORs, twice as many": Workload("wide ORs", 1_000, _wide_ors, _of_wide_ors),
    "wide ORs of LIKE": Workload("wide ORs of LIKE, absent", 500, _like_ors, _without_text),
    "two terms": Workload("two terms", 120_000, _two_terms, _quote),
}


def run(seed: int) -> Iterator[tuple[str, list[MatchingFigure]]]:
    """Yield the figures of each workload, measured in a process of its own."""
    for name in WORKLOADS:
        command = [sys.executable, "-m", __name__, name, str(seed)]
        printed = run_child(command, f"measuring {name}")
        yield name, msgspec.json.decode(printed, type=list[MatchingFigure])


def measure(workload: Workload, seed: int) -> list[MatchingFigure]:
    """Return the figures of the index with a workload in it."""
    chosen = random.Random(seed)  # noqa: S311 - repeatable on purpose
    size = workload.subscriptions
    filters = workload.filters(size, chosen)
    notifications = [workload.notification(size, chosen) for _ in range(NOTIFICATIONS)]
    batches = in_batches(notifications)
    gc.collect()
    start = time.perf_counter()
    index = _built(filters, notifications[0])
    built = time.perf_counter() - start
    singles: list[Batch] = [[one] for one in notifications]
    figures = [
        ("terms", sum(terms_of(filter_.tree) for filter_ in filters), ""),
        ("built", built, "s"),
        ("destinations, batches of 64", per_notification(index.destinations, batches), "us"),
        ("destinations, one at a time", per_notification(index.destinations, singles), "us"),
        ("all matches, batches of 64", per_notification(index.matches, batches), "us"),
    ]
    figures.append(("memory of the index", _held_bytes(filters, notifications[0]) / 1e6, "MB"))
    return [MatchingFigure(size, workload.name, *figure) for figure in figures]


def _held_bytes(filters: list[Filter], attributes: Attributes) -> int:
    """Return what an index of the filters takes, without the filters themselves."""
    tracemalloc.start()
    index = _built(filters, attributes)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(index) == len(filters)
    return held


def _built(filters: list[Filter], attributes: Attributes) -> BitsetIndex[int, int]:
    index: BitsetIndex[int, int] = BitsetIndex()
    index.add_many(
        (number, filter_, number % DESTINATIONS) for number, filter_ in enumerate(filters)
    )
    index.destinations([attributes])
    return index


if __name__ == "__main__":
    measured = measure(WORKLOADS[sys.argv[1]], int(sys.argv[2]))
    sys.stdout.buffer.write(msgspec.json.encode(measured))
