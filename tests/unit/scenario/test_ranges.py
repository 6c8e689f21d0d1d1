import numpy as np
import pytest

from octopis.scenario.stock import RangeFilters

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
    maker = RangeFilters(sample, selectivity)
    rows = [dict(zip(sample, row, strict=True)) for row in zip(*sample.values(), strict=True)]
    for _ in range(30):
        drawn = maker.draw(random)
        assert drawn.share == sum(drawn.filter.matches(row) for row in rows) / ROWS


def test_filters_match_about_the_wanted_share(sample):
    random = np.random.default_rng(2)
    maker = RangeFilters(sample, 0.05)
    shares = [maker.draw(random).share for _ in range(200)]
    assert 0.04 < np.median(shares) < 0.07


def test_same_draws_give_the_same_filters(sample):
    maker = RangeFilters(sample, 0.02)
    one, other = (maker.draw(np.random.default_rng(seed)).filter for seed in (3, 3))
    assert one == other
    assert maker.draw(np.random.default_rng(4)).filter != one
