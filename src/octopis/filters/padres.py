"""The `padres` dialect: bracketed predicates that must all hold (grammar: padres.lark)."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from lark import Lark, Token, Transformer

from octopis.errors import InvalidFilter
from octopis.filters.filter import Filter
from octopis.filters.like import Element, LikePattern, Wildcard, pattern_of
from octopis.filters.limits import TERMS_MAX
from octopis.filters.operands import Attribute, attribute, literal
from octopis.filters.operands import Literal as LiteralOperand
from octopis.filters.print_sql import bounds_of, prefix_of
from octopis.filters.spread import spread
from octopis.filters.syntax import parse_text
from octopis.filters.terms import LikeTerm, PresenceTerm, Term, ValueTerm, comparison, like
from octopis.filters.tree import Node, conjunction, text_of
from octopis.model import Value
from octopis.model.suggestion import did_you_mean

_COMPARISONS = {"eq": "=", "neq": "<>", "=": "=", "<>": "<>"}
_COMPARISONS |= {"<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TEXT_COMPARISONS = {"str-lt": "<", "str-le": "<=", "str-gt": ">", "str-ge": ">="}
_AS_TEXT = {comparator: name for name, comparator in _TEXT_COMPARISONS.items()}
_PATTERNS: dict[str, tuple[Wildcard | None, Wildcard | None]] = {
    "str-prefix": (None, Wildcard.MANY),
    "str-postfix": (Wildcard.MANY, None),
    "str-contains": (Wildcard.MANY, Wildcard.MANY),
}
OPERATORS = (*_COMPARISONS, *_TEXT_COMPARISONS, *_PATTERNS, "isPresent")

_PLAIN_NAME = re.compile(r"(?:[^\W\d]|\$)[\w$.-]*")


def parse_padres(text: str) -> Filter:
    """Return the filter written in the padres dialect, or raise InvalidFilter."""
    return Filter(parse_text(_parser(), text))


def print_padres(wanted: Filter) -> str:
    """Return the filter in the padres dialect, or raise InvalidFilter if it cannot say that."""
    conjunctions = spread(wanted.tree)
    if conjunctions is None or len(conjunctions) != 1 or not conjunctions[0]:
        raise InvalidFilter("the padres dialect has no OR, so it cannot say this filter")
    return ",".join(part for term in conjunctions[0] for part in _print_term(term))


@cache
def _parser() -> Lark:
    return Lark.open_from_package(
        "octopis.filters",
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
        try:
            subject = attribute(_unquoted(name) if name.type == "QUOTED_NAME" else str(name))
            return _term(subject, str(operator), literal(value).literal)
        except InvalidFilter as error:
            raise InvalidFilter(error.reason, (name.start_pos or 0) + 1, error.hint) from None

    def number(self, items: list[Token]) -> Value:
        digits = items[0]
        return int(digits) if digits.lstrip("+-").isdecimal() else float(digits)

    def text(self, items: list[Token]) -> Value:
        return _unquoted(items[0])

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
    for points, number, text in (
        (values.points(), "=", "eq"),
        (values.complement().points(), "<>", "neq"),
    ):
        if points is not None and len(points) == 1:
            operator = number if isinstance(points[0], int | float) else text
            yield _predicate(name, text if isinstance(points[0], bool) else operator, points[0])
            return
    intervals = values.intervals()
    if len(intervals) != 1 or intervals[0] == (None, None):
        raise InvalidFilter(f"the padres dialect cannot say {text_of(term)}")
    prefix = prefix_of(intervals[0])
    if prefix is not None:
        yield _predicate(name, "str-prefix", prefix)
        return
    for comparator, value in bounds_of(intervals[0]):
        operator = _AS_TEXT[comparator] if isinstance(value, str) else comparator
        yield _predicate(name, operator, value)


def _predicate(name: str, operator: str, value: Value) -> str:
    shown = name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'
    if isinstance(value, bool):
        return f"[{shown},{operator},{'true' if value else 'false'}]"
    if isinstance(value, str):
        return f"[{shown},{operator},'" + value.replace("'", "''") + "']"
    return f"[{shown},{operator},{value!r}]"
