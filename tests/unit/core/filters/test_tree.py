"""SQL's three-valued logic, entry by entry, and the normal form."""

from functools import reduce
from itertools import product
from operator import or_

import pytest

from octopis.core.filters import Filter, attr, parse_filter
from octopis.core.filters.terms import Truth
from octopis.core.filters.tree import (
    ALWAYS,
    NEVER,
    And,
    Or,
    conjunction,
    disjunction,
    is_term,
    terms_of,
    text_of,
    to_conjunctions,
)
from octopis.errors import InvalidFilter

ATTRIBUTES = {"yes": 1, "text": "x"}
T, F, U = True, False, None
AND = {
    (T, T): T, (T, F): F, (T, U): U,
    (F, T): F, (F, F): F, (F, U): F,
    (U, T): U, (U, F): F, (U, U): U,
}  # fmt: skip
OR = {
    (T, T): T, (T, F): T, (T, U): T,
    (F, T): T, (F, F): F, (F, U): U,
    (U, T): T, (U, F): U, (U, U): U,
}  # fmt: skip
NOT = {T: F, F: T, U: U}
TERMS: dict[Truth, tuple[str, ...]] = {
    T: ("yes = 1", "absent IS NULL", "text LIKE '%x'", "yes + yes = 2", "TRUE"),
    F: ("yes = 2", "yes IS NULL", "text NOT LIKE '_'", "yes + yes = 1", "FALSE"),
    U: ("absent = 1", "text > 5", "absent NOT LIKE '_x'", "yes / 0 = 1", "text"),
}


def truth(text: str) -> Truth:
    return parse_filter(text).truth(ATTRIBUTES)


@pytest.mark.parametrize("expected", TERMS)
def test_terms_below_are_what_they_are_said_to_be(expected: Truth):
    assert [truth(text) for text in TERMS[expected]] == [expected] * 5


@pytest.mark.parametrize(("left", "right"), AND)
def test_and_table(left: Truth, right: Truth):
    for first, second in product(TERMS[left], TERMS[right]):
        assert truth(f"{first} AND {second}") is AND[left, right]


@pytest.mark.parametrize(("left", "right"), OR)
def test_or_table(left: Truth, right: Truth):
    for first, second in product(TERMS[left], TERMS[right]):
        assert truth(f"{first} OR {second}") is OR[left, right]


@pytest.mark.parametrize("inner", NOT)
def test_not_table(inner: Truth):
    for text in TERMS[inner]:
        assert truth(f"NOT {text}") is NOT[inner]


def test_only_true_matches():
    assert [parse_filter(f"{TERMS[found][0]}").matches(ATTRIBUTES) for found in (T, F, U)] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x > 1 AND x <= 5", "NOT (x <= 1 OR x > 5)"),
        ("x = 1 OR x = 2", "x IN (2, 1, 1)"),
        ("a = 1 AND b = 2", "b = 2 AND a = 1 AND b = 2"),
        ("(a = 1 AND b = 2) AND c = 3", "a = 1 AND (b = 2 AND c = 3)"),
        ("a = 1 AND TRUE", "a = 1"),
        ("a = 1 AND FALSE", "FALSE"),
        ("a = 1 OR TRUE", "TRUE"),
        ("a = 1 OR FALSE", "a = 1"),
        ("x >= 'a' AND x < 'b'", "x LIKE 'a%'"),
        ("x = TRUE", "x"),
        ("x <> TRUE", "x = FALSE"),
        ("NOT (a = 1 OR b LIKE '%x')", "a <> 1 AND b NOT LIKE '%x'"),
        ("NOT (a < b AND c IS NULL)", "b <= a OR c IS NOT NULL"),
        ("x < 1 OR x >= 1", "x <= 7 OR x > 7"),
        ("a > 5.0", "5 < a"),
        ("a != 1", "NOT a = 1"),
    ],
)
def test_same_conditions_give_the_same_filter(one: str, other: str):
    assert parse_filter(one) == parse_filter(other)
    assert hash(parse_filter(one)) == hash(parse_filter(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a = 1", "a = '1'"),
        ("a = 1", "a = TRUE"),
        ("a = TRUE OR a = FALSE", "a IS NOT NULL"),
        ("a <= 0 OR a > 0", "TRUE"),
        ("a < 1 AND a > 1", "FALSE"),
        ("a < b", "a <= b"),
        ("a - b = 0", "b - a = 0"),
        ("Price = 1", "price = 1"),
    ],
)
def test_different_conditions_give_different_filters(one: str, other: str):
    assert parse_filter(one) != parse_filter(other)


def test_contradiction_and_tautology_stay_unknown_where_the_attribute_is_absent():
    assert truth("absent < 1 AND absent > 1") is None
    assert truth("absent <= 0 OR absent > 0") is None
    assert truth("yes < 1 AND yes > 1") is False
    assert truth("yes <= 0 OR yes > 0") is True


def test_nodes_know_their_terms():
    tree = parse_filter("a = 1 AND (b = 2 OR c = 3)").tree
    assert isinstance(tree, And)
    assert terms_of(tree) == 3
    assert [is_term(child) for child in tree.children] == [True, False]
    assert isinstance(tree.children[1], Or)
    assert conjunction([]) == ALWAYS
    assert disjunction([]) == NEVER
    assert (terms_of(ALWAYS), terms_of(attr("a").is_null().tree)) == (0, 1)


def test_terms_joined_in_python_are_limited_too():
    terms = [attr(f"a{number}").is_null() for number in range(201)]
    assert terms_of(reduce(or_, terms[:200]).tree) == 200
    with pytest.raises(InvalidFilter, match="the filter has more than 200 terms"):
        reduce(or_, terms)


def test_depth_of_what_is_joined_in_python_is_limited_too():
    def nested(levels: int) -> Filter:
        wanted = attr("a").is_null()
        for level in range(levels):
            term = attr(f"a{level}").is_null()
            wanted = wanted | term if level % 2 else wanted & term
        return wanted

    assert parse_filter(str(nested(33))) == nested(33)
    with pytest.raises(InvalidFilter, match="the filter is nested deeper than 32"):
        nested(34)


def conjunctions_of(text: str, limit: int = 64) -> list[list[str]] | None:
    parts = to_conjunctions(parse_filter(text).tree, limit)
    return None if parts is None else [[text_of(term) for term in part] for part in parts]


class TestConjunctions:
    def test_conjunction_is_one_part(self):
        assert conjunctions_of("a = 1 AND b = 2") == [["a = 1", "b = 2"]]
        assert conjunctions_of("a = 1") == [["a = 1"]]

    def test_or_under_and_is_multiplied_out(self):
        assert conjunctions_of("a = 1 AND (b = 2 OR c = 3)") == [
            ["a = 1", "b = 2"],
            ["a = 1", "c = 3"],
        ]

    def test_terms_on_one_attribute_are_joined_in_each_part(self):
        assert conjunctions_of("a < 5 AND (a > 1 AND b = 1 OR c = 1)") == [
            ["a < 5", "c = 1"],
            ["a > 1 AND a < 5", "b = 1"],
        ]

    def test_true_is_one_empty_part_and_false_is_none(self):
        assert conjunctions_of("TRUE") == [[]]
        assert conjunctions_of("FALSE") == []

    def test_past_the_limit_there_are_none(self):
        at_limit = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(6))
        parts = conjunctions_of(at_limit)
        assert parts is not None
        assert len(parts) == 64
        assert conjunctions_of(f"{at_limit} OR c = 1") is None
        assert conjunctions_of("a = 1 OR b = 1", limit=1) is None
        assert conjunctions_of("a = 1 AND b = 1", limit=1) is not None
