import pickle
from enum import Enum, StrEnum
from typing import Any

import numpy as np
import pytest

from octopis.core.filters import Filter, attr, explain, parse_filter
from octopis.errors import InvalidFilter, InvalidNotification


class Colour(StrEnum):
    LONG = "xxx"


class Unplain(Enum):
    RED = "red"


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


READERS = (
    "a > 4", "a + 1 > 5", "a = b", "-a < b", "a LIKE '%x%'", "a IN (5, 'xxx', TRUE)", "a IS NULL",
    "a",
)  # fmt: skip


@pytest.mark.parametrize("text", READERS)
@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(5), 5),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.str_("xxx"), "xxx"),
        (np.bool_(True), True),
        (Colour.LONG, "xxx"),
    ],
)
def test_value_that_stands_for_a_plain_one_is_read_as_it(text: str, value: Any, plain: Any):
    wanted = parse_filter(text)
    assert wanted.truth({"a": value, "b": value}) is wanted.truth({"a": plain, "b": plain})
    assert explain(wanted, {"a": value}) == explain(wanted, {"a": plain})


@pytest.mark.parametrize("text", [text for text in READERS if text != "a IS NULL"])
@pytest.mark.parametrize("value", [b"x", Unplain.RED, [1], object()])
def test_what_is_no_value_is_refused_with_the_attribute(text: str, value: Any):
    wanted = parse_filter(text)
    for ask in (wanted.matches, wanted.truth, lambda attributes: explain(wanted, attributes)):
        with pytest.raises(InvalidNotification, match="attribute 'a' is of type"):
            ask({"a": value, "b": 1})


@pytest.mark.parametrize("text", READERS)
def test_none_is_absent(text: str):
    wanted = parse_filter(text)
    assert wanted.truth({"a": None}) is wanted.truth({})  # type: ignore[dict-item]
    assert explain(wanted, {"a": None}) == explain(wanted, {})  # type: ignore[dict-item]
