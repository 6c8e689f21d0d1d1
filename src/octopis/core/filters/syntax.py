"""Reading a text by its grammar, and saying in words where and why that failed."""

import re
from typing import Any

from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken

from octopis.core.filters.print_sql import KEYWORDS
from octopis.core.filters.tree import LENGTH_MAX
from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidFilter

_UNCLOSED = {
    "'": "the text that starts here has no closing quote",
    '"': "the name that starts here has no closing quote",
}
_INSTEAD = {"&": "use AND", "|": "use OR", "!": "use NOT or <>"}
_MISSPELLED = {"=>": ">=", "=<": "<=", "==": "=", "><": "<>"}

# Starting only where a word starts keeps the search linear, however long the words are.
_LAST_WORD = re.compile(r"('[^']*'|(?<![\w$.])[\w$.]+|(?<![<>=!])[<>=!]+|\S)\s*$")
_SURROGATE = re.compile("[\ud800-\udfff]")

_WORDS = (
    ({"NAME", "NUMBER", "STRING", "NOT"}, "a condition"),
    ({"NAME", "NUMBER", "STRING"}, "a number, text in quotes or an attribute"),
    ({"STRING", "NUMBER"}, "a number or text in quotes"),
    ({"STRING"}, "text in single quotes"),
    ({"NUMBER"}, "a number"),
    ({"NAME"}, "an attribute"),
    ({"OPERATOR"}, "an operator (eq, =, <, str-prefix, isPresent ...)"),
    ({"COMPARATOR"}, "an operator (=, <, BETWEEN, IN, LIKE, IS ...)"),
    ({"NOT", "NULL"}, "NULL or NOT NULL"),
    ({"BETWEEN", "IN", "LIKE"}, "BETWEEN, IN or LIKE"),
    ({"NULL"}, "NULL"),
    ({"OR"}, "OR"),
    ({"AND"}, "AND"),
    ({"LPAR"}, "'('"),
    ({"LSQB"}, "'['"),
    ({"COMMA"}, "','"),
    ({"RPAR"}, "')'"),
    ({"RSQB"}, "']'"),
    ({"$END"}, "the end"),
)
"""What the grammar's terminals are called; the first sets that apply take theirs out."""


def parse_text(parser: Lark, text: str) -> Any:
    """Return what `parser` makes of `text`, or raise InvalidFilter."""
    if not isinstance(text, str):
        raise InvalidFilter(f"a filter is text, not {type(text).__name__}")
    if len(text) > LENGTH_MAX:
        raise InvalidFilter(f"the filter has {len(text)} characters, more than {LENGTH_MAX}")
    if not text.strip():
        raise InvalidFilter("the filter is empty; write TRUE to match everything")
    if surrogate := _SURROGATE.search(text):
        reason = "a lone surrogate, which is not Unicode, stands"
        raise InvalidFilter(reason, surrogate.start() + 1)
    try:
        return parser.parse(text)
    except UnexpectedToken as fault:
        raise _unexpected_token(fault, text) from None
    except UnexpectedCharacters as fault:
        raise _unexpected_character(text, fault.pos_in_stream or 0) from None


def _unexpected_character(text: str, position: int) -> InvalidFilter:
    character = text[position]
    if character in _UNCLOSED:
        return InvalidFilter(_UNCLOSED[character], position + 1)
    hint = f"; {_INSTEAD[character]}" if character in _INSTEAD else ""
    return InvalidFilter(f"unexpected character {character!r}", position + 1, hint)


def _unexpected_token(fault: UnexpectedToken, text: str) -> InvalidFilter:
    token: Token = fault.token
    ends = token.type == "$END"
    position = len(text.rstrip()) if ends else token.start_pos or 0
    before = _LAST_WORD.search(text[:position])
    after = f" after {_shown(before[1])}" if before else ""
    if token.type == "RPAR":
        return InvalidFilter(f"unexpected ')'{after}", position + 1)
    terminals = {terminal.lstrip("_") for terminal in fault.accepts or fault.expected}
    found = ", where the filter ends" if ends else f", not {_shown(token)}"
    meant = _MISSPELLED.get(f"{before[1] if before else ''}{token}")
    hint = f"; did you mean '{meant}'?" if meant else did_you_mean(token, terminals & KEYWORDS)
    return InvalidFilter(f"expected {_in_words(terminals)}{after}", position + 1, found + hint)


def _in_words(terminals: set[str]) -> str:
    rest, words = set(terminals), []
    for wanted, word in _WORDS:
        if wanted <= rest:
            words.append(word)
            rest -= wanted
            if wanted & {"NAME", "COMPARATOR"}:  # said already: brackets, signs, other operators
                rest -= {"QUOTED_NAME", "LPAR", "SIGN", "TRUE", "FALSE"}
                rest -= {"NOT", "BETWEEN", "IN", "LIKE", "IS", "TIMES"}
                rest -= {"STRING", "NUMBER"}
    return ", ".join(words[:-1]) + (" or " if words[:-1] else "") + words[-1]


def _shown(text: str) -> str:
    return f"'{text}'" if len(text) <= 20 else f"'{text[:20]}...'"
