"""The `padres` dialect: bracketed predicates that must all hold (grammar: padres.lark)."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from lark import Lark, Token, Transformer

from octopis.core.filters.filter import Filter
from octopis.core.filters.like import Element, LikePattern, Wildcard, pattern_of
from octopis.core.filters.operands import Attribute, attribute, is_number, literal
from octopis.core.filters.operands import Literal as LiteralOperand
from octopis.core.filters.print_sql import bounds_of, prefix_of, without_holes
from octopis.core.filters.syntax import parse_text
from octopis.core.filters.terms import LikeTerm, PresenceTerm, Term, ValueTerm, comparison, like
from octopis.core.filters.tree import TERMS_MAX, Node, conjunction, text_of, to_conjunctions
from octopis.core.filters.values import Interval, Kind, ValueSet
from octopis.core.model import Value
from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidFilter

_COMPARISONS = {"eq": "=", "neq": "<>", "=": "=", "<>": "<>"}
_COMPARISONS |= {"<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TEXT_COMPARISONS = {"str-lt": "<", "str-le": "<=", "str-gt": ">", "str-ge": ">="}
_AS_TEXT = {comparator: name for name, comparator in _TEXT_COMPARISONS.items()}
_PATTERNS: dict[str, tuple[Wildcard | None, Wildcard | None]] = {
    "str-prefix": (None, Wildcard.MANY),
    "str-postfix": (Wildcard.MANY, None),
    "str-contains": (Wildcard.MANY, Wildcard.MANY),
}
_CONTRADICTIONS: dict[Kind, tuple[tuple[str, Value], ...]] = {
    Kind.NUMBER: (("<", 0), (">", 0)),
    Kind.TEXT: (("str-lt", ""),),
    Kind.BOOLEAN: (("eq", True), ("eq", False)),
}
OPERATORS = (*_COMPARISONS, *_TEXT_COMPARISONS, *_PATTERNS, "isPresent")

_PLAIN_NAME = re.compile(r"(?:[^\W\d]|\$)[\w$.-]*")


def parse_padres(text: str) -> Filter:
    """Return the filter written in the padres dialect, or raise InvalidFilter."""
    return Filter(parse_text(_parser(), text))


def print_padres(filter_: Filter) -> str:
    """Return the filter in the padres dialect, or raise InvalidFilter if it cannot say that."""
    conjunctions = to_conjunctions(filter_.tree)
    if conjunctions is None or len(conjunctions) != 1 or not conjunctions[0]:
        raise InvalidFilter("the padres dialect has no OR, so it cannot say this filter")
    return ",".join(part for term in conjunctions[0] for part in _print_term(term))


@cache
def _parser() -> Lark:
    return Lark.open_from_package(
        "octopis.core.filters",
        "padres.lark",
        parser="lalr",
        lexer="contextual",
        transformer=_Builder(),
        maybe_placeholders=False,
    )


class _Builder(Transformer[Token, Node]):
    """Builds the normal form while the text is read; each method is a rule of the grammar."""

    def start(self, predicates: list[Any]) -> Node:
        if len(predicates) > TERMS_MAX:
            raise InvalidFilter(f"the filter has more than {TERMS_MAX} terms")
        return conjunction(predicates)

    def predicate(self, items: list[Any]) -> Node:
        name, operator, value = items
        at_fault = name
        try:
            subject = attribute(_unquoted(name) if name.type == "QUOTED_NAME" else str(name))
            at_fault = operator
            return _term(subject, str(operator), literal(value).literal)
        except InvalidFilter as error:
            raise InvalidFilter(error.reason, (at_fault.start_pos or 0) + 1, error.hint) from None

    def number(self, items: list[Token]) -> Value:
        digits = items[0]
        return int(digits) if digits.lstrip("+-").isdecimal() else float(digits)

    def text(self, items: list[Token]) -> Value:
        return _unquoted(items[0])

    def word(self, items: list[Token]) -> Value:
        return str(items[0])

    def true(self, _: list[Token]) -> Value:
        return True

    def false(self, _: list[Token]) -> Value:
        return False


def _unquoted(token: str) -> str:
    quote = token[0]
    return token[1:-1].replace(quote + quote, quote)


def _term(subject: Attribute, operator: str, value: Value) -> Node:
    if operator == "isPresent":  # its value is there for the form only
        return PresenceTerm(subject.name, present=True)
    if operator in _COMPARISONS:
        term = comparison(_COMPARISONS[operator], subject, LiteralOperand(value))
        assert not isinstance(term, bool), "an attribute is not a literal"
        return term
    if operator not in _TEXT_COMPARISONS and operator not in _PATTERNS:
        hint = did_you_mean(operator, OPERATORS)
        raise InvalidFilter(f"unknown operator {operator!r}", hint=hint)
    if not isinstance(value, str):
        raise InvalidFilter(f"{operator} needs text in quotes, not {value!r}")
    if operator in _TEXT_COMPARISONS:
        return _term(subject, _TEXT_COMPARISONS[operator], value)
    before, after = _PATTERNS[operator]
    elements: list[Element | None] = [before, value, after]
    return like(subject.name, pattern_of([element for element in elements if element]))


def _print_term(term: Term) -> Iterator[str]:
    """Yield the predicates that together say `term`."""
    if isinstance(term, PresenceTerm) and term.present:
        yield _predicate(term.attribute, "isPresent", "")
    elif isinstance(term, LikeTerm) and not term.negated:
        operator, text = _operator_of(term.pattern)
        yield _predicate(term.attribute, operator, text)
    elif isinstance(term, ValueTerm):
        yield from _print_values(term)
    else:
        raise InvalidFilter(f"the padres dialect cannot say {text_of(term)}")


def _operator_of(pattern: LikePattern) -> tuple[str, str]:
    for operator, (before, after) in _PATTERNS.items():
        texts = [element for element in pattern.elements if isinstance(element, str)]
        if len(texts) == 1 and pattern.elements == tuple(
            element for element in (before, texts[0], after) if element
        ):
            return operator, texts[0]
    raise InvalidFilter("the padres dialect has no such pattern")


def _print_values(term: ValueTerm) -> Iterator[str]:
    name, values = term.attribute, term.values
    if values.is_empty():
        for operator, value in _CONTRADICTIONS[values.kind]:
            yield _predicate(name, operator, value)
        return
    points = values.points()
    if points is not None and len(points) == 1:
        yield _predicate(name, "=" if is_number(points[0]) else "eq", points[0])
        return
    whole, holes = without_holes(values)
    intervals = whole.intervals()
    if len(intervals) != 1 or (intervals[0] == (None, None) and not holes and not _is_text(whole)):
        raise InvalidFilter(f"the padres dialect cannot say {text_of(term)}")
    yield from _print_interval(name, intervals[0], holes)


def _print_interval(name: str, interval: Interval, holes: list[Value]) -> Iterator[str]:
    prefix = "" if interval == (None, None) and not holes else prefix_of(interval)
    if prefix is not None:
        yield _predicate(name, "str-prefix", prefix)
    else:
        for comparator, value in bounds_of(interval):
            operator = _AS_TEXT[comparator] if isinstance(value, str) else comparator
            yield _predicate(name, operator, value)
    for hole in holes:
        yield _predicate(name, "<>" if is_number(hole) else "neq", hole)


def _is_text(values: ValueSet) -> bool:
    return values.kind is Kind.TEXT


def _predicate(name: str, operator: str, value: Value) -> str:
    shown = name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'
    if isinstance(value, bool):
        return f"[{shown},{operator},{'true' if value else 'false'}]"
    if isinstance(value, str):
        return f"[{shown},{operator},'" + value.replace("'", "''") + "']"
    return f"[{shown},{operator},{value!r}]"
