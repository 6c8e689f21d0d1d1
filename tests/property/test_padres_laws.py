"""The padres dialect says what the other dialects say."""

import operator
from functools import reduce
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.filters import Filter, attr, parse_filter, print_filter
from octopis.errors import InvalidFilter
from support.conditions import (
    COMPARATORS,
    CONDITION,
    NAME,
    NUMBERS,
    TEXT,
    VALUES,
    Drawn,
    made,
    sql,
)

TEXT_OPERATORS = {
    "eq": "=", "neq": "<>", "str-lt": "<", "str-le": "<=", "str-gt": ">", "str-ge": ">=",
}  # fmt: skip
PREDICATE = (
    st.tuples(NAME, st.sampled_from(tuple(TEXT_OPERATORS)), TEXT)
    | st.tuples(NAME, st.sampled_from(("eq", "neq", *COMPARATORS)), NUMBERS)
    | st.tuples(NAME, st.sampled_from(("eq", "neq", "=", "<>")), st.booleans())
    | st.tuples(NAME, st.sampled_from(("str-prefix", "str-postfix", "str-contains")), TEXT)
    | st.tuples(NAME, st.just("isPresent"), VALUES)
)


def padres(predicates: list[tuple[str, str, Any]]) -> str:
    return " , ".join(
        f"[{sql(('attribute', name))}, {sign} ,{sql(('value', value))}]"
        for name, sign, value in predicates
    )


def same_in_python(name: str, sign: str, value: Any) -> Filter:
    subject = attr(name)
    match sign:
        case "isPresent":
            return subject.is_present()
        case "str-prefix":
            return subject.startswith(value)
        case "str-postfix":
            return subject.endswith(value)
        case "str-contains":
            return subject.contains(value)
        case _:
            found: Filter = COMPARATORS[TEXT_OPERATORS.get(sign, sign)](subject, value)
            return found


@settings(max_examples=400, deadline=None)
@given(st.lists(PREDICATE, min_size=1, max_size=5))
def test_padres_python_and_sql_give_the_same_object(predicates: list[tuple[str, str, Any]]):
    wanted = parse_filter(padres(predicates), "padres")
    assert wanted == reduce(operator.and_, [same_in_python(*parts) for parts in predicates])
    assert wanted == parse_filter(str(wanted))


@settings(max_examples=400, deadline=None)
@given(st.lists(PREDICATE, min_size=1, max_size=5))
def test_what_padres_says_it_can_also_print(predicates: list[tuple[str, str, Any]]):
    wanted = parse_filter(padres(predicates), "padres")
    assert parse_filter(print_filter(wanted, "padres"), "padres") == wanted


@settings(max_examples=300, deadline=None)
@given(CONDITION)
def test_padres_prints_the_same_filter_or_says_that_it_cannot(drawn: Drawn):
    wanted = made(drawn)
    try:
        text = print_filter(wanted, "padres")
    except InvalidFilter:
        return
    assert parse_filter(text, "padres") == wanted
