"""Terms: the smallest conditions, each TRUE, FALSE or UNKNOWN (None) of a notification.

A term knows its own opposite, so that NOT never has to be kept: see tree.py.
"""

import operator
from collections.abc import Callable

import msgspec

from octopis.core.filters import values
from octopis.core.filters.like import LikePattern
from octopis.core.filters.operands import (
    Attribute,
    Attributes,
    Literal,
    Operand,
    is_number,
    literal,
    without_plus,
)
from octopis.core.filters.values import Kind, ValueSet, kind_of
from octopis.core.model import Value
from octopis.errors import InvalidFilter

Truth = bool | None


class ValueTerm(msgspec.Struct, frozen=True, gc=False):
    """The attribute's value lies in a set. UNKNOWN where it is absent or of another kind."""

    attribute: str
    values: ValueSet

    def truth(self, attributes: Attributes) -> Truth:
        """Return whether the term holds."""
        value = attributes.get(self.attribute)
        if value is None or kind_of(value) is not self.values.kind:
            return None
        return value in self.values

    def opposite(self) -> "ValueTerm":
        """Return the term that is TRUE where this is FALSE."""
        return ValueTerm(self.attribute, self.values.complement())


class PresenceTerm(msgspec.Struct, frozen=True, gc=False):
    """The attribute is there (IS NOT NULL) or is not (IS NULL). Never UNKNOWN."""

    attribute: str
    present: bool

    def truth(self, attributes: Attributes) -> Truth:
        """Return whether the term holds."""
        # None is absent too, for whoever evaluates what was never published.
        return (attributes.get(self.attribute) is not None) is self.present

    def opposite(self) -> "PresenceTerm":
        """Return the term that is TRUE where this is FALSE."""
        return PresenceTerm(self.attribute, not self.present)


class LikeTerm(msgspec.Struct, frozen=True, gc=False):
    """The attribute's text matches a pattern, or (negated) does not."""

    attribute: str
    pattern: LikePattern
    negated: bool

    def truth(self, attributes: Attributes) -> Truth:
        """Return whether the term holds."""
        value = attributes.get(self.attribute)
        if value is None or kind_of(value) is not Kind.TEXT:
            return None
        return self.pattern.matches(value) is not self.negated  # type: ignore[arg-type]  # text

    def opposite(self) -> "LikeTerm":
        """Return the term that is TRUE where this is FALSE."""
        return LikeTerm(self.attribute, self.pattern, not self.negated)


class ComparisonTerm(msgspec.Struct, frozen=True, gc=False):
    """Two operands compared, for all that is not one attribute against literals."""

    comparator: str
    left: Operand
    right: Operand

    def truth(self, attributes: Attributes) -> Truth:
        """Return whether the term holds."""
        left, right = self.left.value(attributes), self.right.value(attributes)
        if left is None or right is None:
            return None
        return compare(self.comparator, left, right)

    def opposite(self) -> "ComparisonTerm":
        """Return the term that is TRUE where this is FALSE."""
        if self.comparator in _SYMMETRIC:
            other = "<>" if self.comparator == "=" else "="
            return ComparisonTerm(other, self.left, self.right)
        other = "<=" if self.comparator == "<" else "<"
        return ComparisonTerm(other, self.right, self.left)


Term = ValueTerm | PresenceTerm | LikeTerm | ComparisonTerm

_COMPARATORS: dict[str, Callable[[Value, Value], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SYMMETRIC = ("=", "<>")
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(comparator: str, left: Value, right: Value) -> Truth:
    """Compare two values; UNKNOWN across kinds, and where booleans are asked for an order."""
    kind = kind_of(left)
    if kind is not kind_of(right) or (kind is Kind.BOOLEAN and comparator not in _SYMMETRIC):
        return None
    return _COMPARATORS[comparator](left, right)


def comparison(comparator: str, left: Operand, right: Operand) -> Term | bool:
    """Return the term for `left comparator right`, or its truth where that is known already."""
    if isinstance(right, Literal):
        return _compared_with_literal(comparator, left, literal(right.literal))
    if isinstance(left, Literal):
        return _compared_with_literal(MIRRORED[comparator], right, literal(left.literal))
    return _compared(comparator, left, right)


def _compared_with_literal(comparator: str, left: Operand, right: Literal) -> Term | bool:
    value = right.literal
    if isinstance(left, Literal):
        return _truth_of_literals(comparator, literal(left.literal).literal, value)
    if is_number(value):
        left = without_plus(left)  # a comparison with a number asks for one anyway
    if isinstance(left, Attribute):
        return ValueTerm(left.name, _values(comparator, value))
    if not is_number(value):
        # Never TRUE nor FALSE; and as a literal, TRUE would be equal to 1.
        raise InvalidFilter(f"'{comparator}' cannot compare arithmetic with {value!r}")
    return _compared(comparator, left, right)


def _compared(comparator: str, left: Operand, right: Operand) -> Term | bool:
    if not left.names() and not right.names():
        truth = ComparisonTerm(comparator, left, right).truth({})
        if truth is not None:
            return truth
    if comparator in (">", ">="):  # one form of the two
        comparator, left, right = MIRRORED[comparator], right, left
    elif comparator in _SYMMETRIC and repr(right) < repr(left):
        left, right = right, left
    return ComparisonTerm(comparator, left, right)


def _values(comparator: str, value: Value) -> ValueSet:
    if isinstance(value, bool) and comparator not in _SYMMETRIC:
        raise InvalidFilter(f"booleans have no order: '{comparator}' cannot compare them")
    match comparator:
        case "=":
            return values.only(value)
        case "<>":
            return values.only(value).complement()
        case "<":
            return values.below(value)
        case "<=":
            return values.at_most(value)
        case ">":
            return values.at_most(value).complement()
        case _:
            return values.below(value).complement()


def _truth_of_literals(comparator: str, left: Value, right: Value) -> bool:
    truth = compare(comparator, left, right)
    if truth is None:
        raise InvalidFilter(f"{left!r} {comparator} {right!r} can never be true or false")
    return truth


def like(name: str, pattern: LikePattern) -> ValueTerm | LikeTerm:
    """Return the term for LIKE; equality and prefixes are sets, which the index answers."""
    if pattern.literal is not None:
        return ValueTerm(name, values.only(pattern.literal))
    if pattern.is_prefix_only():
        return ValueTerm(name, values.with_prefix(pattern.prefix))
    return LikeTerm(name, pattern, negated=False)


def membership(name: str, members: list[Value]) -> list[ValueTerm]:
    """Return the terms of IN, one for each kind among the members; any of them may hold."""
    by_kind: dict[Kind, list[Value]] = {}
    for member in members:
        value = literal(member).literal
        by_kind.setdefault(kind_of(value), []).append(value)
    return [ValueTerm(name, values.any_of(same_kind)) for same_kind in by_kind.values()]
