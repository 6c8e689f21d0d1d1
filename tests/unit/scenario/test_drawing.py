import numpy as np
import pytest

from octopis.core.filters import covers, parse_filter
from octopis.scenario.drawing import MEMBERS_MAX, DrawnFilters

ROWS = 3_000
BY_VALUE = ("device", "site", "ok")


@pytest.fixture(scope="module")
def sample() -> dict[str, list[object]]:
    random = np.random.default_rng(3)
    return {
        "device": [f"d{number:02d}" for number in random.integers(0, 40, ROWS)],
        "site": [("north", "south", "noon")[number] for number in random.integers(0, 3, ROWS)],
        "temperature": np.round(random.normal(20, 5, ROWS), 2).tolist(),
        "humidity": [None if each < 0.3 else float(each) for each in random.random(ROWS)],
        "ok": [bool(each) for each in random.random(ROWS) < 0.9],
        "never": [None] * ROWS,
    }


def test_share_is_what_the_filter_matches(sample: dict[str, list[object]]):
    drawing = DrawnFilters(sample, 0.05, BY_VALUE)
    rows = [
        {name: values[row] for name, values in sample.items() if values[row] is not None}
        for row in range(ROWS)
    ]
    for number in range(40):
        drawn = drawing.draw(np.random.default_rng([1, number]))
        assert drawn.share == sum(map(drawn.filter.matches, rows)) / ROWS, str(drawn.filter)
        assert "never" not in drawn.filter.names()


def test_values_prefixes_and_ranges_are_drawn_each_by_its_kind(sample: dict[str, list[object]]):
    drawing = DrawnFilters(sample, 0.05, BY_VALUE)
    found = [drawing.draw(np.random.default_rng([2, number])).filter for number in range(200)]
    texts = list(map(str, found))
    assert any("device = 'd" in text for text in texts)
    assert any("device LIKE 'd" in text for text in texts)
    assert any("device IN (" in text for text in texts)
    assert any("ok = TRUE" in text for text in texts)
    assert any("temperature BETWEEN" in text for text in texts)
    assert not any("device BETWEEN" in text or "site >" in text for text in texts)
    assert max(text.count("'") for text in texts) <= 2 * (2 * MEMBERS_MAX)
    for drawn, text in zip(found, texts, strict=True):
        assert covers(drawn, parse_filter(text))
        assert covers(parse_filter(text), drawn)


def test_most_draws_hit_the_share_where_one_attribute_is_a_number(sample: dict[str, list[object]]):
    drawing = DrawnFilters(sample, 0.05, BY_VALUE)
    shares = [drawing.draw(np.random.default_rng([3, number])).share for number in range(300)]
    assert np.mean(np.abs(np.array(shares) - 0.05) <= 0.0025) > 0.4


def test_one_attribute_is_enough():
    drawing = DrawnFilters({"x": list(range(1_000))}, 0.1)
    assert drawing.draw(np.random.default_rng(1)).share == 0.1
