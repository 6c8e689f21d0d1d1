"""The third dialect, from Python: `attr("price") > 50`."""

from collections.abc import Iterable

from octopis.core.filters import tree
from octopis.core.filters.filter import Filter
from octopis.core.filters.like import Wildcard, parse_like, pattern_of
from octopis.core.filters.operands import (
    Operand,
    arithmetic,
    attribute,
    checked_text,
    literal,
    negative,
    positive,
)
from octopis.core.filters.terms import PresenceTerm, comparison, like, membership
from octopis.core.model import Value
from octopis.errors import InvalidFilter


class Expression:
    """A value to compare: an attribute, or arithmetic on attributes and numbers."""

    __slots__ = ("_operand",)
    __hash__ = None  # type: ignore[assignment]  # `==` makes a filter, so it cannot be a key

    def __init__(self, operand: Operand) -> None:
        self._operand = operand

    def __eq__(self, other: object) -> Filter:  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> Filter:  # type: ignore[override]
        return self._compared("<>", other)

    def __lt__(self, other: object) -> Filter:
        return self._compared("<", other)

    def __le__(self, other: object) -> Filter:
        return self._compared("<=", other)

    def __gt__(self, other: object) -> Filter:
        return self._compared(">", other)

    def __ge__(self, other: object) -> Filter:
        return self._compared(">=", other)

    def between(self, low: object, high: object) -> Filter:
        """Return the filter `low <= self <= high`."""
        return (self >= low) & (self <= high)

    def __add__(self, other: object) -> "Expression":
        return Expression(arithmetic("+", self._operand, _operand(other)))

    def __radd__(self, other: object) -> "Expression":
        return Expression(arithmetic("+", _operand(other), self._operand))

    def __sub__(self, other: object) -> "Expression":
        return Expression(arithmetic("-", self._operand, _operand(other)))

    def __rsub__(self, other: object) -> "Expression":
        return Expression(arithmetic("-", _operand(other), self._operand))

    def __mul__(self, other: object) -> "Expression":
        return Expression(arithmetic("*", self._operand, _operand(other)))

    def __rmul__(self, other: object) -> "Expression":
        return Expression(arithmetic("*", _operand(other), self._operand))

    def __truediv__(self, other: object) -> "Expression":
        return Expression(arithmetic("/", self._operand, _operand(other)))

    def __rtruediv__(self, other: object) -> "Expression":
        return Expression(arithmetic("/", _operand(other), self._operand))

    def __mod__(self, other: object) -> "Expression":
        return Expression(arithmetic("%", self._operand, _operand(other)))

    def __rmod__(self, other: object) -> "Expression":
        return Expression(arithmetic("%", _operand(other), self._operand))

    def __neg__(self) -> "Expression":
        return Expression(negative(self._operand))

    def __pos__(self) -> "Expression":
        return Expression(positive(self._operand))

    def _compared(self, comparator: str, other: object) -> Filter:
        term = comparison(comparator, self._operand, _operand(other))
        if isinstance(term, bool):
            return Filter(tree.ALWAYS if term else tree.NEVER)
        return Filter(term)


class AttributeExpression(Expression):
    """An attribute, with the conditions that only attributes have."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        super().__init__(attribute(name))
        self._name = name

    def is_in(self, members: Iterable[Value]) -> Filter:
        """Return the filter that holds for any of `members`."""
        if isinstance(members, str):
            raise InvalidFilter(f"is_in takes a list of values, not the text {members!r}")
        return Filter(tree.disjunction(membership(self._name, list(members))))

    def is_true(self) -> Filter:
        """Return the filter that holds where the attribute is TRUE."""
        return self._compared("=", True)

    def is_null(self) -> Filter:
        """Return the filter that holds where the attribute is absent."""
        return Filter(PresenceTerm(self._name, present=False))

    def is_present(self) -> Filter:
        """Return the filter that holds where the attribute is there."""
        return Filter(PresenceTerm(self._name, present=True))

    def like(self, pattern: str, escape: str | None = None) -> Filter:
        """Return the filter for a LIKE pattern: `%` many characters, `_` one."""
        text = checked_text(pattern)
        return Filter(like(self._name, parse_like(text, escape)))

    def startswith(self, prefix: str) -> Filter:
        """Return the filter for texts that start with `prefix`."""
        return Filter(like(self._name, pattern_of([checked_text(prefix), Wildcard.MANY])))

    def endswith(self, suffix: str) -> Filter:
        """Return the filter for texts that end with `suffix`."""
        return Filter(like(self._name, pattern_of([Wildcard.MANY, checked_text(suffix)])))

    def contains(self, text: str) -> Filter:
        """Return the filter for texts with `text` somewhere in them."""
        inner = checked_text(text)
        return Filter(like(self._name, pattern_of([Wildcard.MANY, inner, Wildcard.MANY])))


def attr(name: str) -> AttributeExpression:
    """Return an attribute, to build conditions on.

    `(attr("price") > 50) & attr("note").is_null()` is a filter.
    """
    return AttributeExpression(name)


def _operand(value: object) -> Operand:
    return value._operand if isinstance(value, Expression) else literal(value)  # noqa: SLF001
