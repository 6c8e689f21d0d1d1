from enum import Enum, IntEnum

import numpy as np
import pytest

from octopis.core.filters.operands import (
    Arithmetic,
    Attribute,
    Literal,
    Number,
    arithmetic,
    attribute,
    calculate,
    literal,
    negative,
    positive,
)
from octopis.errors import InvalidFilter

A = Attribute("a")


class Colour(str, Enum):  # noqa: UP042 - one whose str() is another text
    RED = "red"


class Plain(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("operator", "left", "right", "result"),
    [
        ("+", 2**62, 2**62, 2**63),
        ("-", 2**53 + 1, 1, 2**53),
        ("*", 2**40, 2**40, 2**80),
        ("/", 7, 2, 3.5),
        ("/", 6, 2, 3.0),
        ("%", 7, 3, 1),
        ("%", -7, 3, -1),
        ("%", 7, -3, 1),
        ("%", -7, -3, -1),
        ("%", -7.5, 2, -1.5),
        ("%", 2**63 - 1, 10, 7),
        ("/", 1, 0, None),
        ("/", 1, 0.0, None),
        ("%", 1, 0, None),
        ("%", 1.5, 0, None),
        ("*", 1e300, 1e300, None),
        ("+", 1e308, 1e308, None),
        ("*", 2**2000, 0.5, None),
        ("/", 2**2000, 3, None),
        ("%", 2**2000, 0.5, None),
    ],
)
def test_arithmetic_is_exact_or_has_no_result(
    operator: str, left: Number, right: Number, result: Number | None
):
    found = calculate(operator, left, right)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (5.0, 5),
        (-0.0, 0),
        (0.5, 0.5),
        (2.0**63, 2.0**63),
        (-(2.0**63), -(2**63)),
        (np.float64(1.5), 1.5),
        (np.float32(1.5), 1.5),
        (np.int64(5), 5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (True, True),
    ],
)
def test_literal_has_one_plain_form(value: object, found: object):
    made = literal(value).literal
    assert made == found
    assert type(made) is type(found)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (2**63, "the integer 9223372036854775808 does not fit in 64 bits"),
        (-(2**63) - 1, "does not fit in 64 bits"),
        (float("nan"), "nan is not a number that can be compared"),
        (float("-inf"), "-inf is not a number that can be compared"),
        ("\ud800", "lone surrogate"),
        (None, "a value is text, a number or a boolean, not NoneType"),
        (b"x", "not bytes"),
        (np.datetime64("2008-03-01"), "not datetime64"),
        (np.array([1, 2]), "not ndarray"),
        (np.float32("nan"), "nan is not a number"),
        (Plain.RED, "not Plain"),
    ],
)
def test_what_is_no_value_is_refused(value: object, reason: str):
    with pytest.raises(InvalidFilter, match=reason):
        literal(value)


def test_integer_too_long_to_print_is_refused_with_its_length():
    with pytest.raises(InvalidFilter, match="the integer of 16610 bits does not fit in 64 bits"):
        literal(10**5000)


@pytest.mark.parametrize("name", ["", "n" * 256, "\udc00", 5, None])
def test_name_that_no_attribute_can_have_is_refused(name: str):
    with pytest.raises(InvalidFilter):
        attribute(name)


def test_value_of_an_operand_with_something_missing_is_none():
    wanted = arithmetic("+", A, Literal(1))
    assert wanted.value({"a": 2}) == 3
    assert wanted.value({}) is None
    assert wanted.value({"a": "2"}) is None
    assert wanted.value({"a": True}) is None
    assert wanted.names() == {"a"}


def test_arithmetic_on_literals_is_done_at_once():
    assert arithmetic("/", Literal(6), Literal(2)) == Literal(3)
    assert arithmetic("-", arithmetic("+", Literal(2**63 - 1), Literal(1)), Literal(1)) == Literal(
        2**63 - 1
    )


@pytest.mark.parametrize(
    ("operator", "left", "right", "value"),
    [("/", 1, 0, None), ("%", 0, 0, None), ("*", 1e300, 1e300, None), ("*", 2**62, 2, 2**63)],
)
def test_arithmetic_on_literals_without_a_literal_result_stays_as_written(
    operator: str, left: Number, right: Number, value: Number | None
):
    made = arithmetic(operator, Literal(left), Literal(right))
    assert made == Arithmetic(operator, Literal(left), Literal(right), 2)
    assert made.value({}) == value


def test_arithmetic_on_a_float_literal_is_a_floats():
    product = arithmetic("*", Literal(2**63 - 1), Literal(2.0))
    assert isinstance(product, Literal)
    assert (product.literal, type(product.literal)) == (2.0**64, float)


@pytest.mark.parametrize("value", ["x", True, 2**63])
def test_arithmetic_refuses_literals_other_than_numbers_of_64_bits(value: str | bool | int):
    for sides in ((A, Literal(value)), (Literal(value), A)):
        with pytest.raises(InvalidFilter):
            arithmetic("+", *sides)


def test_sign_goes_into_a_literal():
    assert negative(Literal(5)) == Literal(-5)
    assert negative(Literal(2**63)) == Literal(-(2**63))
    assert negative(A) == Arithmetic("-", Literal(0), A, 2)
    assert negative(Literal(-(2**63))) == Arithmetic("-", Literal(0), Literal(-(2**63)), 2)
    with pytest.raises(InvalidFilter, match="'-' needs numbers, not 'x'"):
        negative(Literal("x"))
    with pytest.raises(InvalidFilter, match=r"'\+' needs numbers, not True"):
        positive(Literal(True))


def test_plus_before_an_attribute_makes_it_a_number():
    made = positive(A)
    assert [made.value({"a": value}) for value in (5, -1.5, "x", True)] == [5, -1.5, None, None]
    assert positive(made) == made
    assert negative(made) == negative(A)
    assert arithmetic("*", made, made) == arithmetic("*", A, A)
