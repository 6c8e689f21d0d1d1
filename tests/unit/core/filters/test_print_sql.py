import pytest

from octopis.core.filters import parse_filter
from octopis.core.filters.print_sql import KEYWORDS, nesting, print_name, print_value


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a=1", "a = 1"),
        ("a!=1", "a <> 1"),
        ("a = 1.0", "a = 1"),
        ("a = -1e3", "a = -1000"),
        ("a = .5", "a = 0.5"),
        ("a = 1e300", "a = 1e+300"),
        ("a = ''", "a = ''"),
        ("a <> ''", "a <> ''"),
        ("a = 'it''s'", "a = 'it''s'"),
        ("a", "a = TRUE"),
        ("NOT a", "a = FALSE"),
        ("a BETWEEN 1 AND 2", "a BETWEEN 1 AND 2"),
        ("a NOT BETWEEN 1 AND 2", "a < 1 OR a > 2"),
        ("a > 1 AND a < 2", "a > 1 AND a < 2"),
        ("a IN (2, 1)", "a IN (1, 2)"),
        ("a NOT IN (2, 1)", "a NOT IN (1, 2)"),
        ("a IN ('', 'x')", "a IN ('', 'x')"),
        ("a > 5 AND a <> 7", "a > 5 AND a <> 7"),
        ("a IN (1, 2) OR a >= 5", "a >= 5 OR a IN (1, 2)"),
        ("a LIKE 'x%'", "a LIKE 'x%'"),
        ("a NOT LIKE 'x%'", "a NOT LIKE 'x%'"),
        ("a LIKE 'x%' AND a <> 'xy'", "a LIKE 'x%' AND a <> 'xy'"),
        ("a LIKE '50!%%' ESCAPE '!'", "a LIKE '50!%%' ESCAPE '!'"),
        ("a LIKE '%$_$$' ESCAPE '$'", "a LIKE '%!_$' ESCAPE '!'"),
        ("a LIKE 'x!'", "a = 'x!'"),
        ("a IS NULL", "a IS NULL"),
        ("b = 1 AND (a < 1 OR a > 2)", "(a < 1 OR a > 2) AND b = 1"),
        ("b = 1 OR a > 1 AND a < 2", "(a > 1 AND a < 2) OR b = 1"),
        ("NOT (a = 1 AND (b = 2 OR c))", "a <> 1 OR (b <> 2 AND c = FALSE)"),
        ("a < 1 AND a > 1", "a < 0 AND a > 0"),
        ("a < 1 OR a >= 1", "a <= 0 OR a > 0"),
        ("a LIKE '%'", "a LIKE '%'"),
        ("a NOT LIKE '%'", "a < ''"),
        ("a IN (TRUE, FALSE)", "a IN (FALSE, TRUE)"),
        ("a AND NOT a", "a = TRUE AND a = FALSE"),
        ("a + b * c > 1", "1 < a + b * c"),
        ("(a + b) * c > 1", "1 < (a + b) * c"),
        ("a - (b - c) = 1", "a - (b - c) = 1"),
        ("a - b - c = 1", "a - b - c = 1"),
        ("-a = b", "-a = b"),
        ("-(a + b) * -c <> 0", "-(a + b) * -c <> 0"),
        ("a - -5 = b", "a - -5 = b"),
        ("- -a = b", "-(-a) = b"),
        ("+a = b", "+a = b"),
        ("0 + a + b = c", "a + b = c"),
        ("a = -(-9223372036854775808)", "-(-9223372036854775808) = a"),
        ("a < 1 / 0", "a < 1 / 0"),
        ("a < 0x1F", "a < 31"),
        ('"last price" > 1', '"last price" > 1'),
        ('"a""b" > 1', '"a""b" > 1'),
        ('"price" > 1', "price > 1"),
        ('"Null" = 1', '"Null" = 1'),
        ("TRUE", "TRUE"),
        ("NOT TRUE", "FALSE"),
    ],
)
def test_filter_prints_in_its_one_form_which_parses_to_itself(text: str, printed: str):
    wanted = parse_filter(text)
    assert str(wanted) == printed
    assert parse_filter(str(wanted)) == wanted


@pytest.mark.parametrize("word", sorted(KEYWORDS))
def test_keyword_as_a_name_is_quoted_in_any_case(word: str):
    for name in (word, word.lower(), word.title()):
        assert print_name(name) == f'"{name}"'
        assert parse_filter(f'"{name}" = 1').matches({name: 1})


@pytest.mark.parametrize("name", ["a", "_", "$x", "a.b$_1", "\u00e9t\u00e9", "android", "nota"])
def test_plain_name_is_not_quoted(name: str):
    assert print_name(name) == name
    assert parse_filter(f"{name} = 1").matches({name: 1})


@pytest.mark.parametrize("name", ["1a", "a b", "a-b", "", 'a"b', "a\n", ".a"])
def test_other_name_is_quoted(name: str):
    assert print_name(name) == '"' + name.replace('"', '""') + '"'


def test_values_print_as_literals():
    shown = [print_value(value) for value in (True, False, 1, -1.5, "it's")]
    assert shown == ["TRUE", "FALSE", "1", "-1.5", "'it''s'"]


def test_nesting_counts_brackets_outside_quotes():
    assert nesting("a = 1") == 0
    assert nesting("(a) AND (b IN (1, 2))") == 2
    assert nesting("""a = '((((' AND "((it's" = ')' AND (b)""") == 1
