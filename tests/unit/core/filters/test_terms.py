"""Single terms: TRUE, FALSE or UNKNOWN with absent attributes and values of all kinds."""

import pytest

from octopis.core.filters import parse_filter
from octopis.core.filters.like import parse_like
from octopis.core.filters.operands import Arithmetic, Attribute, Literal
from octopis.core.filters.terms import (
    ComparisonTerm,
    LikeTerm,
    PresenceTerm,
    Truth,
    ValueTerm,
    compare,
    comparison,
    like,
    membership,
)
from octopis.core.filters.values import any_of, only
from octopis.core.model import Value
from octopis.errors import InvalidFilter

A, B = Attribute("a"), Attribute("b")
SUM = Arithmetic("+", A, B, 2)


def truth(text: str, **attributes: Value) -> Truth:
    return parse_filter(text).truth(attributes)


@pytest.mark.parametrize(
    "condition",
    [
        "a = 1", "a <> 1", "a < 1", "a <= 1", "a > 1", "a >= 1", "a BETWEEN 0 AND 2",
        "a NOT BETWEEN 0 AND 2", "a IN (1, 2)", "a NOT IN (1, 2)", "a IN (1, TRUE)",
    ],
)  # fmt: skip
def test_comparison_with_an_absent_or_different_kind_is_unknown(condition: str):
    assert truth(condition) is None
    assert truth(condition, b=1) is None
    assert truth(condition, a="1") is None
    assert truth(f"NOT ({condition})", a="1") is None
    assert truth(condition, a=1) is not None


def test_boolean_is_not_the_number_that_python_takes_it_for():
    assert truth("a = 1", a=True) is None
    assert truth("a = TRUE", a=1) is None
    assert truth("a IN (0, 1)", a=False) is None
    assert truth("a + 1 > 0", a=True) is None
    assert truth("a = b", a=1, b=True) is None
    assert truth("a = TRUE", a=True) is True
    assert truth("a <> TRUE", a=False) is True
    assert truth("a", a=True) is True
    assert truth("a", a=False) is False
    assert truth("a", a="TRUE") is None
    assert truth("a < b", a=False, b=True) is None


@pytest.mark.parametrize("condition", ["a LIKE 'x%'", "a LIKE '%x'", "a LIKE '_'", "a LIKE '%'"])
def test_like_is_unknown_for_all_but_text(condition: str):
    for no in ("", "NOT "):
        for attributes in ({}, {"a": 5}, {"a": True}):
            assert parse_filter(f"{no}{condition}").truth(attributes) is None


def test_is_null_is_never_unknown():
    assert truth("a IS NULL") is True
    assert truth("a IS NOT NULL") is False
    assert truth("a IS NULL", a="") is False
    assert truth("NOT a IS NULL", a=0) is True


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("a = 9007199254740993", 2.0**53, False),
        ("a > 9007199254740992.0", 2**53 + 1, True),
        ("a < 9007199254740993", 2.0**53, True),
        ("a = 9007199254740992", 2.0**53, True),
        ("a = 9223372036854775807", 2.0**63, False),
        ("a < 9223372036854775808.0", 2**63 - 1, True),
        ("a = -9223372036854775808", -(2.0**63), True),
        ("a >= -9223372036854775808", -(2**63), True),
        ("a > -9223372036854775808", -(2**63), False),
        ("a IN (9223372036854775806)", 2**63 - 1, False),
        ("a = 5", 5.0, True),
        ("a = 5.0", 5, True),
        ("a = 0", -0.0, True),
        ("a = 0.1", 0.1, True),
        ("a BETWEEN 1 AND 1", 1.0, True),
        ("a BETWEEN 2 AND 1", 1.5, False),
    ],
)
def test_integers_and_floats_compare_by_value_exactly(
    condition: str, value: int | float, expected: bool
):
    assert truth(condition, a=value) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a / b > 0", None),
        ("a % b > 0", None),
        ("a / 2 = 3.5", True),
        ("a * 1e308 * 10 > 0", None),
        ("a + 9223372036854775807 > 9223372036854775807", True),
        ("-a = -7", True),
        ("- -a = 7", True),
        ("a - 1 - 1 = 5", True),
        ("a - (1 - 1) = 7", True),
        ("1 + 2 * 3 = a", True),
        ("a % 4 = 3", True),
        ("-a % 4 = -3", True),
        ("a + c > 0", None),
        ("a + t > 0", None),
        ("a > t", None),
        ("t = t", True),
        ("c = c", None),
        ("a BETWEEN b AND 2 * 5", True),
    ],
)
def test_arithmetic_and_attributes_on_both_sides(condition: str, expected: Truth):
    assert truth(condition, a=7, b=0, t="text") is expected
    negated = None if expected is None else not expected
    assert truth(f"NOT ({condition})", a=7, b=0, t="text") is negated


@pytest.mark.parametrize("comparator", ["=", "<>", "<", "<=", ">", ">="])
def test_opposite_of_each_comparison_is_its_negation_and_undoes_itself(comparator: str):
    for right in (B, SUM, Literal(3), Literal("x")):
        term = comparison(comparator, A, right)
        assert not isinstance(term, bool)
        assert term.opposite() != term
        assert term.opposite().opposite() == term
        for attributes in ({"a": 1, "b": 2}, {"a": 2, "b": 2}, {"a": 3, "b": 2}, {"a": "x"}):
            found = term.truth(attributes)
            assert term.opposite().truth(attributes) is (None if found is None else not found)


@pytest.mark.parametrize(
    "term",
    [
        ValueTerm("a", only(1)),
        PresenceTerm("a", present=True),
        LikeTerm("a", parse_like("%x"), negated=False),
    ],
)
def test_opposite_of_other_terms_undoes_itself(term: ValueTerm | PresenceTerm | LikeTerm):
    assert term.opposite() != term
    assert term.opposite().opposite() == term


def test_comparison_has_one_form_whichever_side_comes_first():
    assert comparison("<", A, B) == comparison(">", B, A) == ComparisonTerm("<", A, B)
    assert comparison("=", A, B) == comparison("=", B, A)
    assert comparison("<=", Literal(3), A) == comparison(">=", A, Literal(3))
    assert isinstance(comparison("<=", Literal(3), A), ValueTerm)


def test_literals_are_compared_at_once():
    assert comparison("<", Literal(1), Literal(1.5)) is True
    assert comparison("=", Literal("a"), Literal("b")) is False


@pytest.mark.parametrize(
    ("comparator", "left", "right"),
    [
        ("=", Literal("x"), Literal(1)),
        ("<", Literal(False), Literal(True)),
        ("<", A, Literal(True)),
        ("=", SUM, Literal(True)),
        ("<", Literal("x"), SUM),
        ("=", A, Literal(2**63)),
    ],
)
def test_comparison_that_can_never_hold_nor_fail_is_refused(
    comparator: str, left: Attribute | Literal | Arithmetic, right: Literal | Arithmetic
):
    with pytest.raises(InvalidFilter):
        comparison(comparator, left, right)


def test_compare_is_unknown_across_kinds():
    assert compare("=", 1, "1") is None
    assert compare("<", True, False) is None
    assert compare("<>", True, False) is True
    assert compare("<", 2.0**53, 2**53 + 1) is True


def test_like_is_a_set_where_that_says_it_all():
    assert like("a", parse_like("x")) == ValueTerm("a", only("x"))
    assert isinstance(like("a", parse_like("x%")), ValueTerm)
    assert isinstance(like("a", parse_like("%x")), LikeTerm)


def test_membership_has_one_term_for_each_kind():
    assert membership("a", [1, "x", 2.0, True]) == [
        ValueTerm("a", any_of([1, 2])),
        ValueTerm("a", only("x")),
        ValueTerm("a", only(True)),
    ]
    with pytest.raises(InvalidFilter):
        membership("a", [None])  # type: ignore[list-item]
