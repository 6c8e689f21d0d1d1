import pickle

import pytest

from octopis.core.filters import Filter, attr, parse_filter
from octopis.errors import InvalidFilter

WANTED = parse_filter("price > 50 AND (symbol LIKE '%x' OR volume IS NULL) AND a + 1 > b")


def test_only_true_matches_and_truth_tells_the_rest():
    wanted = parse_filter("a > 1")
    for attributes, truth in (({"a": 2}, True), ({"a": 1}, False), ({}, None)):
        assert wanted.truth(attributes) is truth
        assert wanted.matches(attributes) is (truth is True)


def test_filters_are_joined_by_operators():
    a, b = attr("a") == 1, attr("b") == 1
    assert str(a & b) == "a = 1 AND b = 1"
    assert str(a | b) == "a = 1 OR b = 1"
    assert str(~(a | b)) == "a <> 1 AND b <> 1"


def test_has_no_truth_of_its_own():
    with pytest.raises(InvalidFilter, match=r"join conditions with & \| ~"):
        bool(WANTED)


def test_equal_filters_are_one_key():
    again = parse_filter("a + 1 > b AND (volume IS NULL OR symbol LIKE '%x') AND price > 50.0")
    assert len({WANTED, again}) == 1
    assert parse_filter("a = 1") != parse_filter("a = 2")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol: int):
    for wanted in (WANTED, parse_filter("TRUE"), parse_filter("a IN (1, 'x', TRUE)")):
        restored = pickle.loads(pickle.dumps(wanted, protocol))  # noqa: S301 - our own
        assert isinstance(restored, Filter)
        assert restored == wanted
        assert hash(restored) == hash(wanted)
        assert str(restored) == str(wanted)
