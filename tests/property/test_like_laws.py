"""LIKE matches what a regular expression matches."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.filters.like import parse_like


def is_like(text: str, pattern: str) -> bool:
    meanings = {"%": ".*", "_": "."}
    expression = "".join(meanings.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, text, re.DOTALL) is not None


@settings(max_examples=800, deadline=None)
@given(st.text("ab%_", max_size=10), st.text("ab", max_size=14))
def test_like_equals_a_regular_expression(pattern: str, text: str):
    assert parse_like(pattern).matches(text) is is_like(text, pattern)


@settings(max_examples=200, deadline=None)
@given(st.text("ab%_", max_size=10), st.text("ab%_", max_size=6))
def test_like_patterns_with_equal_forms_match_equally(pattern: str, text: str):
    again = parse_like(pattern.replace("%_", "_%").replace("%%", "%"))
    assert again.matches(text) is parse_like(pattern).matches(text)
