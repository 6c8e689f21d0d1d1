"""The index takes memory by the terms in it, and gives it back when they go."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from octopis.core.filters import Filter, parse_filter
from octopis.core.filters.tree import terms_of
from octopis.core.matching import BitsetIndex

BYTES_PER_TERM_MAX = 1_500
"""In columns at most 1,024 for the bits, and some for boundaries and owners."""


SMALL = 20_000
"""Bytes that it does not matter whether they stay."""


@pytest.fixture
def trace() -> Iterator[Callable[[], None]]:
    yield tracemalloc.start
    tracemalloc.stop()


def held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def wide_ors() -> list[Filter]:
    return [
        parse_filter(" OR ".join(f"n{number}x{n} = 1" for n in range(60))) for number in range(100)
    ]


def many_names() -> list[Filter]:
    return [parse_filter(f"n{n} > {n} AND n{n * 7 % 1500} < 5") for n in range(1_500)]


def some_names() -> list[Filter]:
    return [parse_filter(f"n{n % 300} > {n} AND n{n * 7 % 301} < {n}") for n in range(1_500)]


def few_names_and_one_rare() -> list[Filter]:
    return [parse_filter(f"a > {n} AND b < {n} AND n{n} IS NULL") for n in range(1_000)]


def multiplied_out() -> list[Filter]:
    ors = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(6))
    more = " AND ".join(f"c{n} = 1" for n in range(60))
    return [parse_filter(f"{ors} AND {more} AND d{number} = 1") for number in range(100)]


@pytest.mark.parametrize(
    "made", [wide_ors, many_names, some_names, few_names_and_one_rare, multiplied_out]
)
def test_memory_grows_with_the_terms_and_is_given_back(
    made: Callable[[], list[Filter]], trace: Callable[[], None]
):
    filters = made()
    terms = sum(terms_of(each.tree) for each in filters)
    batch = [{"a": 1, "n1": 1, "n2": 2}, {"n3": 3, "a0": 1}]
    index: BitsetIndex[int, int] = BitsetIndex()
    index.destinations(batch)
    trace()  # not before: it slows the parser down
    before = held()
    index.add_many((number, each, number % 75) for number, each in enumerate(filters))
    index.destinations(batch)
    full = held() - before
    assert full <= BYTES_PER_TERM_MAX * terms
    for number in range(len(filters) - 5):
        index.remove(number)
    index.destinations(batch)
    assert held() - before <= full / 10 + SMALL
    for number in range(len(filters) - 5, len(filters)):
        index.remove(number)
    assert held() - before <= SMALL
