"""The default dialect: the SQL-92 selector that JMS and AMQP brokers share (grammar: sql.lark)."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar

from lark import Lark, Token, Transformer

from octopis.core.filters import tree, values
from octopis.core.filters.filter import Filter
from octopis.core.filters.like import parse_like
from octopis.core.filters.operands import (
    DEPTH_MAX,
    Arithmetic,
    Attribute,
    Literal,
    Operand,
    negative,
    positive,
)
from octopis.core.filters.operands import arithmetic as calculated
from octopis.core.filters.operands import attribute as checked_attribute
from octopis.core.filters.operands import literal as checked_literal
from octopis.core.filters.syntax import parse_text
from octopis.core.filters.terms import PresenceTerm, ValueTerm, comparison, like, membership
from octopis.core.filters.tree import Node
from octopis.core.model.notification import INTEGER_MAX
from octopis.errors import InvalidFilter

T = TypeVar("T")

TOKENS_MAX = 2_000
"""Words, values and signs in the text; only reachable with very long IN lists."""


class _Joined(NamedTuple):
    """Conditions joined by AND or (`any_holds`) OR, as they stand in the text."""

    any_holds: bool
    word: Token
    parts: "list[Condition]"


class _Negated(NamedTuple):
    """NOT before a condition, as it stands in the text."""

    part: "Node | _Joined"


Condition = Node | _Joined | _Negated
Item = Operand | Condition
"""What a place in the text may hold: a value or a condition."""


def parse_sql(text: str) -> Filter:
    """Return the filter written in the SQL dialect, or raise InvalidFilter."""
    return Filter(_normal(_as_condition(parse_text(_parser(), text), column=1)))


def tokens_of(text: str) -> list[Token]:
    """Return the words, values and signs of a text that `parse_sql` takes."""
    return list(_parser().lex(text))


@cache
def _parser() -> Lark:
    return Lark.open_from_package(
        "octopis.core.filters",
        "sql.lark",
        parser="lalr",
        lexer="basic",
        transformer=_Builder(),
        postlex=_Limits(),
        maybe_placeholders=False,
    )


_COMMENTS = {"--": "; for two signs write - -5 or -(-5)", "/*": ""}
"""What starts a comment in SQL, and what to write if none was meant."""


class _Limits:
    """Stops a text at the first token that is too many or too deep, and at comments."""

    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        depth = 0
        for count, token in enumerate(stream):
            if token.type == "LPAR":
                depth += 1
            elif token.type == "RPAR":
                depth -= 1
            if depth > DEPTH_MAX:
                raise InvalidFilter(f"brackets are nested deeper than {DEPTH_MAX}", _column(token))
            if count >= TOKENS_MAX:
                raise InvalidFilter(f"the filter has more than {TOKENS_MAX} words", _column(token))
            if token in _COMMENTS:
                reason = f"filters have no comments, but there is '{token}'"
                raise InvalidFilter(reason, _column(token), _COMMENTS[token])
            yield token


class _Builder(Transformer[Token, Item]):
    """Builds terms while the text is read; each method is a rule of the grammar.

    AND, OR and NOT wait until all is read, so that no NOT turns the same conditions over again.
    """

    def disjunction(self, items: list[Any]) -> Condition:
        return _joined(True, items)

    def conjunction(self, items: list[Any]) -> Condition:
        return _joined(False, items)

    def negated(self, items: list[Any]) -> Condition:
        word, item = items
        condition = _as_condition(item, _column(word))
        return condition.part if isinstance(condition, _Negated) else _Negated(condition)

    def compared(self, items: list[Any]) -> Node:
        left, sign, right = items
        comparator = "<>" if sign == "!=" else str(sign)
        return _compared(sign, comparator, _as_operand(left, sign), _as_operand(right, sign))

    def between(self, items: list[Any]) -> Node:
        subject, *negated, word, low, word_and, high = items
        subject, low, high = (_as_operand(item, word) for item in (subject, low, high))
        node = tree.conjunction(
            (_compared(word, ">=", subject, low), _compared(word_and, "<=", subject, high))
        )
        return tree.negation(node) if negated else node

    def member_of(self, items: list[Any]) -> Node:
        subject = items[0]
        negated = items[1].type == "NOT"
        word, *members = items[2:] if negated else items[1:]
        name = _name(subject, word)
        node = tree.disjunction(_at(word, membership, name, [item.literal for item in members]))
        return tree.negation(node) if negated else node

    def like(self, items: list[Any]) -> Node:
        subject, *words, pattern = [item for item in items if not _is(item, "STRING")] + [
            [_unquoted(item) for item in items if _is(item, "STRING")]
        ]
        name = _name(subject, words[-1])
        term: Node = like(name, _at(words[-1], parse_like, *pattern))
        return tree.negation(term) if len(words) == 2 else term

    def is_null(self, items: list[Any]) -> Node:
        subject, word, *negated = items
        return PresenceTerm(_name(subject, word), present=bool(negated))

    def calculated(self, items: list[Any]) -> Operand:
        left, sign, right = items
        return _at(sign, calculated, str(sign), _as_operand(left, sign), _as_operand(right, sign))

    def signed(self, items: list[Any]) -> Operand:
        sign, item = items
        operand = _as_operand(item, sign)
        return _at(sign, negative if sign == "-" else positive, operand)

    def attribute(self, items: list[Token]) -> Operand:
        return _at(items[0], checked_attribute, str(items[0]))

    def quoted_attribute(self, items: list[Token]) -> Operand:
        return _at(items[0], checked_attribute, _unquoted(items[0]))

    def number(self, items: list[Token]) -> Operand:
        digits = items[-1]
        value = _at(digits, _number, str(digits))
        if len(items) == 2 and items[0] == "-":
            value = -value
        if value == INTEGER_MAX + 1:  # fits only behind a minus; checked again where it is used
            return Literal(value)
        checked = _at(digits, checked_literal, value)
        return Literal(value) if isinstance(value, float) else checked  # 2.0 makes * a float's

    def text(self, items: list[Token]) -> Operand:
        return _at(items[0], checked_literal, _unquoted(items[0]))

    def true(self, _: list[Token]) -> Operand:
        return Literal(True)

    def false(self, _: list[Token]) -> Operand:
        return Literal(False)


def _number(digits: str) -> int | float:
    """Return a number written as in SQL or Java, or raise InvalidFilter."""
    if digits[:2] in ("0x", "0X"):
        return int(digits.rstrip("lL"), 16)
    whole = digits.rstrip("lL")
    if not whole.isdecimal():
        return float(digits.rstrip("dDfF"))
    if len(whole) > 1 and int(whole[0]) == 0:
        plain = whole.lstrip(whole[0]) or "0"
        hint = f"; write {plain}" if len(plain) < 20 else ""
        raise InvalidFilter(
            "a number with 0 in front, which is octal in Java, is refused", hint=hint
        )
    return int(whole)


def _compared(sign: Token, comparator: str, left: Operand, right: Operand) -> Node:
    term = _at(sign, comparison, comparator, left, right)
    if isinstance(term, bool):
        return tree.ALWAYS if term else tree.NEVER
    return term


def _joined(any_holds: bool, items: list[Any]) -> _Joined:
    words = [items[1], *items[1::2]]  # the word beside each condition
    parts = [
        _as_condition(item, _column(word)) for item, word in zip(items[::2], words, strict=True)
    ]
    return _Joined(any_holds, items[1], parts)


def _normal(condition: Condition, negated: bool = False) -> Node:
    """Return the normal form of `condition`, or of its opposite."""
    if isinstance(condition, _Negated):
        return _normal(condition.part, not negated)
    if isinstance(condition, _Joined):
        any_holds = condition.any_holds is not negated
        join = tree.disjunction if any_holds else tree.conjunction
        return _at(condition.word, join, list(_parts(condition, any_holds, negated)))
    return tree.negation(condition) if negated else condition


def _parts(condition: _Joined, any_holds: bool, negated: bool) -> Iterator[Node]:
    """Yield the normal forms of the parts, and of parts of parts where the same word joins them."""
    for part in condition.parts:
        inner, flipped = (part.part, not negated) if isinstance(part, _Negated) else (part, negated)
        if isinstance(inner, _Joined) and (inner.any_holds is not flipped) is any_holds:
            yield from _parts(inner, any_holds, flipped)
        else:
            yield _normal(inner, flipped)


def _as_condition(item: Item, column: int) -> Condition:
    if isinstance(item, Attribute):  # a boolean attribute stands for itself
        return ValueTerm(item.name, values.only(True))
    if isinstance(item, Literal) and isinstance(item.literal, bool):
        return tree.ALWAYS if item.literal else tree.NEVER
    if isinstance(item, Literal | Arithmetic):
        what = (
            "a text" if isinstance(item, Literal) and isinstance(item.literal, str) else "a number"
        )
        raise InvalidFilter(f"expected a condition such as price > 50, not just {what}", column)
    return item


def _as_operand(item: Item, sign: Token) -> Operand:
    if isinstance(item, Attribute | Literal | Arithmetic):
        return item
    raise InvalidFilter(f"'{sign}' needs a value on each side, not a condition", _column(sign))


def _name(item: Item, word: Token) -> str:
    if isinstance(item, Attribute):
        return item.name
    raise InvalidFilter(f"expected an attribute before {word.upper()}", _column(word))


def _is(item: object, kind: str) -> bool:
    return isinstance(item, Token) and item.type == kind


def _unquoted(token: Token) -> str:
    quote = token[0]
    return token[1:-1].replace(quote + quote, quote)


def _column(token: Token) -> int:
    return (token.start_pos or 0) + 1


def _at(token: Token, function: Callable[..., T], *arguments: Any) -> T:
    """Call `function`; an error that knows no place gets the token's."""
    try:
        return function(*arguments)
    except InvalidFilter as error:
        column = _column(token) if error.column is None else error.column
        raise InvalidFilter(error.reason, column, error.hint) from None
