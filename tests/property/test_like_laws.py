"""LIKE matches what a regular expression matches."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from octopis.core.filters import like
from octopis.core.filters.like import parse_like


def is_like(text: str, pattern: str) -> bool:
    meanings = {"%": ".*", "_": "."}
    expression = "".join(meanings.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, text, re.DOTALL) is not None


@settings(max_examples=800, deadline=None)
@given(st.text("ab%_", max_size=10), st.text("ab", max_size=14))
@example("%a____%", "aaa")  # a part longer than the text
@example("a%b___%b", "abb")
def test_like_equals_a_regular_expression(pattern: str, text: str):
    assert parse_like(pattern).matches(text) is is_like(text, pattern)


@pytest.mark.parametrize("tries", [0, 1, 8])
@pytest.mark.parametrize("long", [0, 5_000])
@settings(max_examples=500, deadline=None)
@given(
    st.text("ab\u00e9\U0001f600%_", max_size=12) | st.text("ab%%__", max_size=16),
    st.text("ab", max_size=24) | st.text("ab\u00e9\U0001f600", max_size=14),
)
def test_every_way_of_searching_equals_a_regular_expression(
    long: int, tries: int, pattern: str, text: str
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(like, "_LONG", long)
        patch.setattr(like, "_TRIES", tries)
        assert parse_like(pattern).matches(text) is is_like(text, pattern)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(("a", "b", "ab", "ba" * 30, "a" * 60, "%", "%", "_")), max_size=8),
    st.lists(st.sampled_from(("a", "b", "ab" * 30, "a" * 4_000, "b" * 30_000)), max_size=8),
)
def test_like_on_long_texts_equals_a_simple_search(pattern: list[str], text: list[str]):
    whole = "".join(text)
    assert parse_like("".join(pattern)).matches(whole) is is_like_slowly(whole, "".join(pattern))


def is_like_slowly(text: str, pattern: str) -> bool:
    """Return what LIKE says, by a row of flags: may the pattern so far end at this place?"""
    ends = np.zeros(len(text) + 1, np.bool_)
    ends[0] = True
    codes = np.array([ord(character) for character in text])
    for character in pattern:
        if character == "%":
            ends = np.logical_or.accumulate(ends)
        else:
            here = ends[:-1] if character == "_" else ends[:-1] & (codes == ord(character))
            ends = np.concatenate([[False], here])
    return bool(ends[-1])


@settings(max_examples=200, deadline=None)
@given(st.text("ab%_", max_size=10), st.text("ab%_", max_size=6))
def test_like_patterns_with_equal_forms_match_equally(pattern: str, text: str):
    again = parse_like(pattern.replace("%_", "_%").replace("%%", "%"))
    assert again.matches(text) is parse_like(pattern).matches(text)
