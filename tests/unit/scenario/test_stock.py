import numpy as np
import pytest

from octopis.benchmarks.core.matching import BruteForce
from octopis.core.filters.tree import to_conjunctions
from octopis.core.matching import LinearIndex
from octopis.scenario.drawing import DrawnFilters
from octopis.scenario.stock import StockWorkload


def test_same_seed_gives_the_same_workload():
    one, other = StockWorkload(7), StockWorkload(7)
    assert one.filters(20) == other.filters(20)
    assert one.notifications(20) == other.notifications(20)
    assert StockWorkload(8).filters(20) != one.filters(20)


def test_notifications_have_ten_attributes():
    assert {len(quote) for quote in StockWorkload(1).notifications(100)} == {10}


def test_filters_have_two_to_four_terms_and_match_about_two_percent():
    workload = StockWorkload(3)
    filters = workload.filters(150)
    assert {len(terms) for wanted in filters for terms in to_conjunctions(wanted.tree)} == {2, 3, 4}
    quotes = workload.notifications(1_000)
    matched = sum(wanted.matches(quote) for wanted in filters for quote in quotes)
    assert 0.015 < matched / (len(filters) * len(quotes)) < 0.025


def test_brute_force_agrees_with_the_oracle():
    workload = StockWorkload(5)
    filters = workload.filters(200)
    oracle: LinearIndex[int, int] = LinearIndex()
    oracle.add_many((number, wanted, 0) for number, wanted in enumerate(filters))
    quotes = workload.notifications(50)
    found = [numbers.tolist() for numbers in BruteForce(filters, workload).matches(quotes)]
    assert found == oracle.matches(quotes)


ROWS = 2_000


@pytest.fixture(scope="module")
def sample() -> dict[str, list[object]]:
    random = np.random.default_rng(5)
    return {
        "price": np.round(random.lognormal(4, 1, ROWS), 2).tolist(),
        "volume": random.integers(0, 50, ROWS).tolist(),
        "symbol": [f"S{number:02d}" for number in random.integers(0, 90, ROWS)],
        "change": random.normal(0, 1, ROWS).tolist(),
    }


@pytest.mark.parametrize("selectivity", [0.02, 0.2])
def test_share_is_what_the_filter_really_matches(sample, selectivity: float):
    random = np.random.default_rng(1)
    maker = DrawnFilters(sample, selectivity)
    rows = [dict(zip(sample, row, strict=True)) for row in zip(*sample.values(), strict=True)]
    for _ in range(30):
        drawn = maker.draw(random)
        assert drawn.share == sum(drawn.filter.matches(row) for row in rows) / ROWS


def test_filters_match_about_the_wanted_share(sample):
    random = np.random.default_rng(2)
    maker = DrawnFilters(sample, 0.05)
    shares = [maker.draw(random).share for _ in range(200)]
    assert 0.04 < np.median(shares) < 0.07


def test_same_draws_give_the_same_filters(sample):
    maker = DrawnFilters(sample, 0.02)
    one, other = (maker.draw(np.random.default_rng(seed)).filter for seed in (3, 3))
    assert one == other
    assert maker.draw(np.random.default_rng(4)).filter != one
