"""Covers is right on patterns, and complete for all that is no pattern: tried on small cases."""

from itertools import product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from octopis.core.filters import Filter, covers, parse_filter
from octopis.core.filters.like import parse_like

COMPARATOR = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))


def shown(value: str | int | bool) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


EDGE_NUMBERS = (1, 2, 3)
EDGE_TEXTS = ("", "a", "ab", "b")
DOMAIN = (
    None, False, True,
    0.5, 1, 1.5, 2, 2.5, 3, 3.5,
    "", "\0", "a", "aa", "ab", "abx", "ac", "b", "ba", "c",
)  # fmt: skip
"""A value on and between all boundaries that filters of EDGE values can have; None is absent."""

EDGE = st.sampled_from(EDGE_NUMBERS) | st.sampled_from(EDGE_TEXTS)
SIMPLE_TERM = (
    st.builds(
        lambda name, sign, value: f"{name} {sign} {shown(value)}",
        st.sampled_from("xy"), COMPARATOR, EDGE,
    )
    | st.builds(
        lambda name, word, members: f"{name} {word} ({', '.join(map(shown, members))})",
        st.sampled_from("xy"), st.sampled_from(("IN", "NOT IN")),
        st.lists(EDGE | st.booleans(), min_size=1, max_size=4),
    )
    | st.builds(
        lambda name, prefix: f"{name} LIKE '{prefix}%'",
        st.sampled_from("xy"), st.sampled_from(EDGE_TEXTS),
    )
)  # fmt: skip
SIMPLE = st.lists(SIMPLE_TERM, min_size=1, max_size=4).map(" AND ".join).map(parse_filter)
SPACE = [
    {name: value for name, value in zip("xy", pair, strict=True) if value is not None}
    for pair in product(DOMAIN, repeat=2)
]


@settings(max_examples=600, deadline=None)
@given(SIMPLE, SIMPLE)
@example(
    parse_filter("x = 1 AND x = 1 AND x IN (1, '', True)"),
    parse_filter("x IN (1, '', False) AND x IN (1, 'a', False) AND x IN (2, '', False)"),
)
def test_covers_is_complete_for_intervals_equalities_sets_and_prefixes(f: Filter, g: Filter):
    for wide, narrow in ((f, g), (f, f & g), (g, f)):
        expected = all(wide.matches(point) for point in SPACE if narrow.matches(point))
        assert covers(wide, narrow) is expected


TEXTS = ["".join(word) for length in range(7) for word in product("abc", repeat=length)]
"""All short ones; c is a letter that no pattern below knows."""

PATTERN = st.text("ab%_", max_size=5)


@settings(max_examples=1_000, deadline=None)
@given(PATTERN, PATTERN)
def test_pattern_includes_another_only_if_it_matches_all_that_the_other_matches(p: str, q: str):
    wide, narrow = parse_like(p), parse_like(q)
    matched = [text for text in TEXTS if narrow.matches(text)]
    if wide.includes(narrow):
        assert all(map(wide.matches, matched))
    elif "%" not in q:  # then these are all, and it is found wherever it is so
        assert not all(map(wide.matches, matched))


PATTERN_TERM = st.builds(
    lambda no, pattern: f"x {no}LIKE '{pattern}'", st.sampled_from(("", "NOT ")), PATTERN
)
MIXED = (
    st.lists(PATTERN_TERM | SIMPLE_TERM, min_size=1, max_size=3).map(" AND ".join).map(parse_filter)
)
POINTS: list[dict[str, str | int | float | bool]] = [{}, {"x": 1}, {"x": True}, {"x": 2, "y": "a"}]
POINTS += [{"x": text} for text in TEXTS] + [{"x": text, "y": 2} for text in TEXTS[::3]]


@settings(max_examples=1_000, deadline=None)
@given(MIXED, MIXED)
def test_covers_is_sound_with_patterns(f: Filter, g: Filter):
    for wide, narrow in ((f, g), (f, f & g), (f | g, g), (parse_filter("FALSE"), f)):
        if covers(wide, narrow):
            assert all(wide.matches(point) for point in POINTS if narrow.matches(point))
    assert covers(f, f & g)
