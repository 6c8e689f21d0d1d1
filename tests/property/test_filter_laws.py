"""Laws of the filter language, against a naive reading of every condition."""

import pickle
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from octopis.core.filters import covers, parse_filter, quick
from octopis.core.filters.tree import conjunction, to_conjunctions
from support.conditions import (
    CONDITION,
    NOTIFICATIONS,
    Drawn,
    kleene_and,
    kleene_not,
    kleene_or,
    made,
    sql,
    truth_of,
)


@settings(max_examples=600, deadline=None)
@given(CONDITION, st.lists(NOTIFICATIONS, min_size=3, max_size=8))
def test_truth_is_what_a_naive_reading_says(drawn: Drawn, batch: list[dict[str, Any]]):
    wanted = parse_filter(sql(drawn))
    for attributes in batch:
        expected = truth_of(drawn, attributes)
        assert wanted.truth(attributes) is expected
        assert wanted.matches(attributes) is (expected is True)


@settings(max_examples=600, deadline=None)
@given(CONDITION, st.lists(NOTIFICATIONS, min_size=3, max_size=8))
def test_filter_as_a_function_matches_the_same(drawn: Drawn, batch: list[dict[str, Any]]):
    wanted = made(drawn)
    holds = quick(wanted)
    for attributes in batch:
        assert holds(attributes) is wanted.matches(attributes)


@pytest.mark.parametrize(
    "text",
    [
        *("x < 5", "x <= 5", "x > 5", "x >= 5", "x BETWEEN 5 AND 7", "x > 5 AND x < 7", "x = 5"),
        *("x = 'a'", "x IN ('a', 'b')", "x <> 'a'", "x NOT IN ('a', 'b')", "x > 'a'", "x = TRUE"),
        *("x < 5 OR x = 'a' OR x IS NULL", "x <> 5 AND y <> 'a' AND z < 1", "TRUE", "FALSE"),
    ],
)
def test_filter_as_a_function_knows_kinds_apart(text: str):
    wanted = parse_filter(text)
    values = [4, 5, 6, 7, 8, 5.0, 6.5, 2**62, -0.0, True, False, "a", "b", "", "5", None]
    for value in values:
        attributes = {} if value is None else {"x": value, "y": value, "z": 0}
        assert quick(wanted)(attributes) is wanted.matches(attributes)


@settings(max_examples=300, deadline=None)
@given(CONDITION)
def test_sql_and_python_give_the_same_object(drawn: Drawn):
    from_text, from_python = parse_filter(sql(drawn)), made(drawn)
    assert from_text == from_python
    assert hash(from_text) == hash(from_python)


@settings(max_examples=500, deadline=None)
@given(CONDITION)
def test_printed_text_parses_to_the_same_filter(drawn: Drawn):
    wanted = made(drawn)
    assert parse_filter(str(wanted)) == wanted
    assert str(parse_filter(str(wanted))) == str(wanted)


@settings(max_examples=200, deadline=None)
@given(CONDITION)
def test_pickled_filter_is_the_same(drawn: Drawn):
    wanted = made(drawn)
    restored = pickle.loads(pickle.dumps(wanted))  # noqa: S301 - our own
    assert restored == wanted
    assert hash(restored) == hash(wanted)


@settings(max_examples=300, deadline=None)
@given(CONDITION, CONDITION)
def test_negation_undoes_itself_and_de_morgan_holds(first: Drawn, second: Drawn):
    f, g = made(first), made(second)
    assert ~~f == f
    assert ~(f & g) == ~f | ~g
    assert ~(f | g) == ~f & ~g
    assert f & g == g & f
    assert f | g == g | f
    assert f & f == f == f | f


@settings(max_examples=300, deadline=None)
@given(CONDITION, CONDITION, NOTIFICATIONS)
def test_operators_are_kleenes(first: Drawn, second: Drawn, attributes: dict[str, Any]):
    f, g = made(first), made(second)
    of_f, of_g = f.truth(attributes), g.truth(attributes)
    assert (~f).truth(attributes) is kleene_not(of_f)
    assert (f & g).truth(attributes) is kleene_and([of_f, of_g])
    assert (f | g).truth(attributes) is kleene_or([of_f, of_g])


@settings(max_examples=300, deadline=None)
@given(CONDITION, st.lists(NOTIFICATIONS, min_size=3, max_size=6))
def test_conjunctions_are_true_exactly_where_the_filter_is(
    drawn: Drawn, batch: list[dict[str, Any]]
):
    wanted = made(drawn)
    parts = to_conjunctions(wanted.tree)
    assume(parts is not None)
    assert parts is not None
    for attributes in batch:
        found = any(conjunction(part).truth(attributes) is True for part in parts)
        assert found is wanted.matches(attributes)


@settings(max_examples=300, deadline=None)
@given(CONDITION, CONDITION, st.lists(NOTIFICATIONS, min_size=5, max_size=10))
def test_covers_is_sound(first: Drawn, second: Drawn, batch: list[dict[str, Any]]):
    f, g = made(first), made(second)
    for wide, narrow in ((f, g), (f | g, g), (f, f & g), (f, ~f)):
        if covers(wide, narrow):
            assert all(wide.matches(a) for a in batch if narrow.matches(a))


@pytest.mark.parametrize(
    "text",
    [
        f"a IN ({','.join(map(str, range(400)))}) OR a > 1000",
        f"a > 0 AND a NOT IN ({','.join(map(str, range(400)))})",
        f"(a BETWEEN 3 AND 5 OR a > 500) AND a NOT IN ({','.join(map(str, range(501, 800)))})",
        " AND ".join(f"(a <> {n} OR b)" for n in range(100)),
        "a=1 OR b=2 AND (c=3 OR d=4 AND ("
        + "+".join("xyz"[n % 3] for n in range(32))
        + "=1 OR e))",
        "a + (b - (c * (d / (e % (-f - -1))))) > -(-a)",
        "(a=1 OR (b=1 AND " * 15 + "(c IN (1, 2) OR c > 5) AND x=1" + "))" * 15,
        " OR ".join(f"a > {n} AND a < {n + 1}" for n in range(0, 200, 2)),
    ],
)
def test_large_filter_prints_as_text_that_parses_to_it(text: str):
    for wanted in (parse_filter(text), ~parse_filter(text)):
        assert parse_filter(str(wanted)) == wanted
