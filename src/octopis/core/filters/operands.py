"""The two sides of a comparison: attributes, literals and arithmetic on them."""

import math
from collections.abc import Mapping

import msgspec

from octopis.core.filters.values import kind_of
from octopis.core.model import Value
from octopis.core.model.notification import (
    INTEGER_MAX,
    INTEGER_MIN,
    NAME_LENGTH_MAX,
    plain_value,
)
from octopis.errors import InvalidFilter

Attributes = Mapping[str, Value]
Number = int | float

DEPTH_MAX = 32
"""Arithmetic inside arithmetic, and brackets inside brackets."""


class Attribute(msgspec.Struct, frozen=True, gc=False):
    """The value of a named attribute; absent where the notification has none."""

    name: str
    depth = 1

    def value(self, attributes: Attributes) -> Value | None:
        """Return the attribute's value, None where it is absent."""
        return attributes.get(self.name)

    def names(self) -> set[str]:
        """Return the names of the attributes that this operand reads."""
        return {self.name}


class Literal(msgspec.Struct, frozen=True, gc=False):
    """A value written in the filter."""

    literal: Value
    depth = 1

    def value(self, attributes: Attributes) -> Value | None:  # noqa: ARG002 - as all operands
        """Return the literal."""
        return self.literal

    def names(self) -> set[str]:
        """Return the names of the attributes that this operand reads: none."""
        return set()


class Arithmetic(msgspec.Struct, frozen=True):
    """`left operator right` on numbers."""

    operator: str
    left: "Operand"
    right: "Operand"
    depth: int

    def value(self, attributes: Attributes) -> Value | None:
        """Return the result, None where an operand is not a number or there is no result."""
        left, right = self.left.value(attributes), self.right.value(attributes)
        if not is_number(left) or not is_number(right):
            for side in (left, right):
                if side is not None:
                    kind_of(side)  # is a value at all
            return None
        return calculate(self.operator, left, right)  # type: ignore[arg-type]  # numbers

    def names(self) -> set[str]:
        """Return the names of the attributes that this operand reads."""
        return self.left.names() | self.right.names()


Operand = Attribute | Literal | Arithmetic


def is_number(value: Value | None) -> bool:
    """Tell whether `value` is a number; a boolean is not."""
    return type(value) is int or type(value) is float


def attribute(name: str) -> Attribute:
    """Return the attribute `name`, or raise InvalidFilter if there can be none of that name."""
    if not isinstance(name, str) or not 1 <= len(name) <= NAME_LENGTH_MAX:
        raise InvalidFilter(f"an attribute's name is text of 1 to {NAME_LENGTH_MAX} characters")
    return Attribute(checked_text(name))


def checked_text(value: object) -> str:
    """Return `value` as plain text, or raise InvalidFilter if it is not Unicode text."""
    if not isinstance(value, str):
        raise InvalidFilter(f"expected text, not {type(value).__name__}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidFilter("a text in a filter has a lone surrogate, which is not Unicode")
    return str.__str__(value)  # a plain one, also of an enumeration's


def literal(value: object) -> Literal:
    """Return `value` as a literal in its one form, or raise InvalidFilter if it is no value.

    Whole floats become integers, so that 5 and 5.0 are one literal and print as one. What stands
    for a plain value (numpy's numbers, enumerations of texts) becomes it.
    """
    plain = plain_value(value)
    if isinstance(plain, bool):
        return Literal(plain)
    if isinstance(plain, str):
        return Literal(checked_text(plain))
    if isinstance(plain, float):
        if not math.isfinite(plain):
            raise InvalidFilter(f"{plain} is not a number that can be compared")
        whole = plain.is_integer() and INTEGER_MIN <= plain <= INTEGER_MAX
        return Literal(int(plain) if whole else plain)
    if isinstance(plain, int):
        if not _fits(plain):
            raise InvalidFilter(f"the integer {_shortened(plain)} does not fit in 64 bits")
        return Literal(plain)
    raise InvalidFilter(f"a value is text, a number or a boolean, not {type(value).__name__}")


def arithmetic(operator: str, left: Operand, right: Operand) -> Operand:
    """Return `left operator right`, calculated at once where both are constants.

    What has no result, or an integer past 64 bits, which no literal can say, stays as it was
    written and is calculated, exactly, when it is compared.
    """
    left, right = _number(operator, left), _number(operator, right)
    depth = max(left.depth, right.depth) + 1
    if depth > DEPTH_MAX:
        raise InvalidFilter(f"the arithmetic is deeper than {DEPTH_MAX} operations")
    if not left.names() and not right.names():
        result = Arithmetic(operator, left, right, depth).value({})
        if isinstance(result, float) or (result is not None and _fits(result)):
            return Literal(result)  # a float stays one, for the next operation
    return Arithmetic(operator, _in_one_form(left), _in_one_form(right), depth)


def _in_one_form(side: Operand) -> Operand:
    return literal(side.literal) if isinstance(side, Literal) else side


def _number(operator: str, side: Operand) -> Operand:
    """Return a side of `operator`, without a plus before it, or raise InvalidFilter."""
    if isinstance(side, Literal):
        if not is_number(side.literal):
            raise InvalidFilter(f"'{operator}' needs numbers, not {side.literal!r}")
        literal(side.literal)
    return without_plus(side)


def negative(operand: Operand) -> Operand:
    """Return `-operand`; the sign goes into a literal."""
    if isinstance(operand, Literal) and is_number(operand.literal):
        opposite = -operand.literal  # type: ignore[operator]  # a number, as just tested
        if isinstance(opposite, float) or _fits(opposite):
            return Literal(opposite)
    return arithmetic("-", Literal(0), operand)


def positive(operand: Operand) -> Operand:
    """Return `+operand`: its value where that is a number, and else nothing.

    Only before an attribute does the sign say something, and there it is kept, as `0 + operand`.
    """
    if isinstance(operand, Attribute):
        return Arithmetic("+", Literal(0), operand, 2)
    _number("+", operand)
    return operand


def without_plus(operand: Operand) -> Operand:
    """Return the attribute behind a plus, or `operand` itself where it is something else."""
    if isinstance(operand, Arithmetic) and operand.operator == "+" and operand.left == Literal(0):
        return operand.right if isinstance(operand.right, Attribute) else operand
    return operand


def calculate(operator: str, left: Number, right: Number) -> Number | None:
    """Return the result, or None where there is none: division by zero, or past all floats.

    Integers stay exact under + - * %. `/` is true division, and `%` has the sign of the
    left side, as in SQL and Java.
    """
    try:
        match operator:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                result = left * right
            case "/":
                result = left / right
            case _:
                result = _remainder(left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    return result if isinstance(result, int) or math.isfinite(result) else None


def _remainder(left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    if right == 0:
        raise ZeroDivisionError
    return math.fmod(left, right)


def _fits(value: Value) -> bool:
    return INTEGER_MIN <= value <= INTEGER_MAX  # type: ignore[operator]  # numbers only


def _shortened(value: int) -> str:
    # Python refuses to print integers of thousands of digits; nobody would read them.
    return str(value) if value.bit_length() < 256 else f"of {value.bit_length()} bits"
