"""Where and why a text in the SQL dialect is wrong, in words."""

import pytest

from octopis.core.filters.sql import parse_sql
from octopis.errors import InvalidFilter

OPERATORS = "expected an operator (=, <, BETWEEN, IN, LIKE, IS ...), OR, AND or the end"
OPERAND = "expected a number, text in quotes or an attribute"


def refused(text: str) -> InvalidFilter:
    with pytest.raises(InvalidFilter) as caught:
        parse_sql(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("price >", f"{OPERAND} after '>' at column 8, where the filter ends"),
        ("price >   ", f"{OPERAND} after '>' at column 8, where the filter ends"),
        ("> 5", "expected a condition at column 1, not '>'"),
        ("price 5", f"{OPERATORS} after 'price' at column 7, not '5'"),
        ("a = 1 AND", "expected a condition after 'AND' at column 10, where the filter ends"),
        ("a = 1 OR OR b", "expected a condition after 'OR' at column 10, not 'OR'"),
        ("a BETWEEN 1", "expected AND after '1' at column 12, where the filter ends"),
        ("a BETWEEN 1 OR 5", "expected AND after '1' at column 13, not 'OR'"),
        ("a LIKE 5", "expected text in single quotes after 'LIKE' at column 8, not '5'"),
        ("a IS 5", "expected NULL or NOT NULL after 'IS' at column 6, not '5'"),
        ("a IS NOT 5", "expected NULL after 'NOT' at column 10, not '5'"),
        ("a NOT 5", "expected BETWEEN, IN or LIKE after 'NOT' at column 7, not '5'"),
        ("a IN 5", "expected '(' after 'IN' at column 6, not '5'"),
        ("a IN (b)", "expected a number or text in quotes after '(' at column 7, not 'b'"),
        ("a IN (- 'x')", "expected a number after '-' at column 9, not ''x''"),
        ("a IN ()", "unexpected ')' after '(' at column 7"),
        ("a IN (1", "expected ',' or ')' after '1' at column 8, where the filter ends"),
        ("(a = 1", "expected ')' after '1' at column 7, where the filter ends"),
        ("a = 1)", "unexpected ')' after '1' at column 6"),
        ("a = 'IBM", "the text that starts here has no closing quote at column 5"),
        ('"last = 1', "the name that starts here has no closing quote at column 1"),
        ("a = #", "unexpected character '#' at column 5"),
    ],
)
def test_fault_is_named_with_its_place(text: str, message: str):
    assert str(refused(text)) == message


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("price BETWEN 1 AND 5", 7, ", not 'BETWEN'; did you mean 'BETWEEN'?"),
        ("symbol lik 'x'", 8, ", not 'lik'; did you mean 'LIKE'?"),
        ("a = 1 ADN b = 2", 7, ", not 'ADN'; did you mean 'AND'?"),
        ("a IS NUL", 6, ", not 'NUL'; did you mean 'NULL'?"),
        ("a => 1", 4, ", not '>'; did you mean '>='?"),
        ("a =< 1", 4, ", not '<'; did you mean '<='?"),
        ("a == 1", 4, ", not '='; did you mean '='?"),
        ("a = 1 && b", 7, "; use AND"),
        ("a | b", 3, "; use OR"),
        ("!a", 1, "; use NOT or <>"),
    ],
)
def test_what_was_meant_is_suggested(text: str, column: int, hint: str):
    error = refused(text)
    assert (error.column, error.hint) == (column, hint)


@pytest.mark.parametrize("word", ["signs", "timer", "comparators", "lpars", "strings"])
def test_names_of_the_grammar_are_never_suggested(word: str):
    for name in ("SIGN", "TIMES", "COMPARATOR", "LPAR", "STRING", "NUMBER", "NAME"):
        assert f"'{name}'" not in refused(f"a {word} 5").hint


def test_long_words_are_shortened():
    assert str(refused(f"a = 1 {'x' * 300}")).endswith(f", not '{'x' * 20}...'")
    assert f"after '{'x' * 20}...' at" in str(refused(f"a = {'x' * 30} 5"))


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_empty_text_is_refused_with_what_to_write(text: str):
    assert str(refused(text)) == "the filter is empty; write TRUE to match everything"


def test_lone_surrogate_is_refused_wherever_it_stands():
    for text in ("a = '\ud800'", "a LIKE '\ud800%'", '"a\udfff" = 1', "\udc80"):
        error = refused(text)
        assert "a lone surrogate" in error.reason
        assert error.column is not None
        assert "\ud800" <= text[error.column - 1] <= "\udfff"
