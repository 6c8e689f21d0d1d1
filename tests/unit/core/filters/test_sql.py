"""The SQL dialect: words, precedence, literals, and conditions where values belong."""

import pytest

from octopis.core.filters.sql import parse_sql
from octopis.core.model import Value
from octopis.errors import InvalidFilter


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a = 1 OR b = 2 AND c = 3", "a = 1 OR (b = 2 AND c = 3)"),
        ("NOT a = 1 AND b = 2", "(NOT (a = 1)) AND b = 2"),
        ("NOT NOT a = 1", "a = 1"),
        ("NOT (NOT (a = 1))", "a = 1"),
        ("a + 2 * 3 = b", "a + 6 = b"),
        ("a = (1 + 2) * 3", "a = 9"),
        ("a = 1 - 2 - 3", "a = -4"),
        ("a = 8 / 4 / 2", "a = 1"),
        ("a = -7 % 3", "a = -1"),
        ("a = - - 5", "a = 5"),
        ("a = +5", "a = 5"),
        ("a = 2 - -3", "a = 5"),
        ("price < 10 - -5", "price < 15"),
        ("+price > 3", "price > 3"),
        ("3 < +price", "price > 3"),
        ("+price BETWEEN 1 AND 5", "price BETWEEN 1 AND 5"),
        ("+(+a) = b", "+a = b"),
        ("+a - +b > -(+c)", "a - b > -c"),
        ("true or (1 <> 1 / 0)", "TRUE"),
        ("false AND 1 = 1 / 0", "FALSE"),
        ("a < 9223372036854775807 * 2.0", "a < 18446744073709551616.0"),
        ("9223372036854775807 * 2 > 1", "TRUE"),
        ("a = 9223372036854775807 + 1 - 1", "a = 9223372036854775807"),
        ("a not Between 1 aNd 5", "a NOT BETWEEN 1 AND 5"),
        ("a In(1)and b lIkE'x_'oR c Is nOt nUlL", "a IN (1) AND b LIKE 'x_' OR c IS NOT NULL"),
        ("a = tRuE", "a = TRUE"),
        ("(((a))) = ((1))", "a = 1"),
        ("a\n=\t1", "a=1"),
        ("1 < a", "a > 1"),
        ("a = 1 AND b", "a = 1 AND b = TRUE"),
        ("1 = 1", "TRUE"),
        ("'a' > 'b' OR a = 1", "a = 1"),
        ("a IN (-1, +2, -9223372036854775808)", "a = -1 OR a = 2 OR a = -9223372036854775808"),
    ],
)
def test_texts_that_say_the_same_give_the_same_filter(text: str, same: str):
    assert parse_sql(text) == parse_sql(same)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("42", 42),
        ("-1.5", -1.5),
        (".5", 0.5),
        ("5.", 5),
        ("6e3", 6000),
        ("6E-1", 0.6),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("''", ""),
        ("' a '", " a "),
        ("'\"'", '"'),
        ("'NULL'", "NULL"),
        ("'\u00e9\U0001f600'", "\u00e9\U0001f600"),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808.0", 2.0**63),
        ("FALSE", False),
        ("5L", 5),
        ("-5l", -5),
        ("0x1F", 31),
        ("0X1fL", 31),
        ("-0x8000000000000000", -(2**63)),
        ("1d", 1),
        ("1.5f", 1.5),
        (".5D", 0.5),
        ("1e3", 1000),
        ("1e3F", 1000),
        ("007.5", 7.5),
        ("0", 0),
        ("'-- /* 042 */'", "-- /* 042 */"),
    ],
)
def test_literals(literal: str, value: str | int | float | bool):
    assert parse_sql(f"a = {literal}").matches({"a": value})


@pytest.mark.parametrize("literal", ["5LL", "1.5L", "1dog", "0x", "0xG", "5L.5"])
def test_number_with_other_letters_behind_it_is_refused(literal: str):
    with pytest.raises(InvalidFilter, match="expected"):
        parse_sql(f"a = {literal}")


@pytest.mark.parametrize(
    "text", ["0 / 0 = 0", "a > 1 / 0", "1 % 0 <> 1", "a * 0 < 1 / 0", "a BETWEEN 1 / 0 AND 0"]
)
def test_constant_without_a_result_is_unknown_also_under_not(text: str):
    for shown in (text, f"NOT ({text})"):
        wanted = parse_sql(shown)
        assert wanted.truth({"a": -5}) is None
        assert parse_sql(str(wanted)) == wanted
    assert parse_sql(f"{text} OR b = 1").matches({"a": -5, "b": 1})


def test_integers_of_constants_stay_exact_past_64_bits():
    wanted = parse_sql("a < 9223372036854775807 * 2")
    assert wanted.matches({"a": 2**63 - 1})
    assert not wanted.matches({"a": 2.0**64})
    assert parse_sql(str(wanted)) == wanted
    assert not parse_sql("a = 9223372036854775807 * 2").matches({"a": 2.0**64})
    assert parse_sql("a = 9223372036854775807 * 2.0").matches({"a": 2.0**64})


def test_plus_asks_for_a_number():
    wanted = parse_sql("+a = b")
    assert wanted.matches({"a": 5, "b": 5})
    assert wanted.truth({"a": "x", "b": "x"}) is None
    assert wanted.truth({"a": True, "b": True}) is None
    assert parse_sql(str(wanted)) == wanted


@pytest.mark.parametrize("name", ["a", "A", "a.b", "$a_1", "_", "notes", "inn", "or.1", "\u0131s"])
def test_identifiers_are_case_sensitive_and_may_start_like_keywords(name: str):
    assert parse_sql(f"{name} = 1").matches({name: 1})
    assert not parse_sql(f"{name} = 1").matches({name.swapcase() + "x": 1})


def test_names_in_double_quotes_may_be_anything():
    assert parse_sql('"last ""price""" = 1 AND "or" = 2').matches({'last "price"': 1, "or": 2})


def test_double_quotes_make_a_name_and_not_a_text():
    assert parse_sql('a = "IBM"').matches({"a": 5, "IBM": 5})
    assert not parse_sql('a = "IBM"').matches({"a": "IBM"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "expected a condition such as price > 50, not just a number at column 1"),
        ("'x'", "expected a condition such as price > 50, not just a text at column 1"),
        ("a + 1 AND b", "expected a condition such as price > 50, not just a number at column 7"),
        ("NOT 5", "expected a condition such as price > 50, not just a number at column 1"),
        ("(a = 1) = 2", "'=' needs a value on each side, not a condition at column 9"),
        ("(NOT a) + 1 > 2", "'+' needs a value on each side, not a condition at column 9"),
        ("(a OR b) < 1", "'<' needs a value on each side, not a condition at column 10"),
        ("(a = 1) BETWEEN 1 AND 2", "'BETWEEN' needs a value on each side, not a condition"),
        ("-(a = 1) > 2", "'-' needs a value on each side, not a condition at column 1"),
        ("5 LIKE 'x'", "expected an attribute before LIKE at column 3"),
        ("a + 1 in (1)", "expected an attribute before IN at column 7"),
        ("a + 1 IS NULL", "expected an attribute before IS at column 7"),
        ("a > TRUE", "booleans have no order: '>' cannot compare them at column 3"),
        ("'x' = 1", "'x' = 1 can never be true or false at column 5"),
        ("a + 'x' > 1", "'+' needs numbers, not 'x' at column 3"),
        ("+'x' = a", "'+' needs numbers, not 'x' at column 1"),
        ("a + 1 = TRUE", "'=' cannot compare arithmetic with True at column 7"),
        ("+city = 'London'", "'=' cannot compare arithmetic with 'London' at column 7"),
        ("-city = 'London'", "'=' cannot compare arithmetic with 'London' at column 7"),
        ("+a AND b", "expected a condition such as price > 50, not just a number at column 4"),
        ("+a IS NULL", "expected an attribute before IS at column 4"),
        ("+a LIKE 'x'", "expected an attribute before LIKE at column 4"),
        ("1 / 0 = 'x'", "'=' cannot compare arithmetic with 'x' at column 7"),
        ("a = 042", "a number with 0 in front, which is octal in Java, is refused at column 5; "
         "write 42"),
        ("a IN (1, -042L)", "a number with 0 in front, which is octal in Java, is refused at "
         "column 11; write 42"),
        ("a = 00", "a number with 0 in front, which is octal in Java, is refused at column 5; "
         "write 0"),
        ("a = 0x8000000000000000", "the integer 9223372036854775808 does not fit in 64 bits"),
        ("price < 10 -- 5", "filters have no comments, but there is '--' at column 12; "
         "for two signs write - -5 or -(-5)"),
        ("--5 < a", "filters have no comments, but there is '--' at column 1"),
        ("a = 1 -- b = 2", "filters have no comments, but there is '--' at column 7"),
        ("a = 1 /* one */", "filters have no comments, but there is '/*' at column 7"),
        ("/* one */ a = 1", "filters have no comments, but there is '/*' at column 1"),
        ("a = 9223372036854775808", "the integer 9223372036854775808 does not fit in 64 bits"),
        ("a = -9223372036854775809", "the integer 9223372036854775809 does not fit in 64 bits"),
        ("a + 9223372036854775808 > b", "the integer 9223372036854775808 does not fit in 64 bits"),
        ("a IN (9223372036854775808)", "the integer 9223372036854775808 does not fit in 64 bits"),
        ("a = 1e999", "inf is not a number that can be compared at column 5"),
        ("a LIKE 'x' ESCAPE 'ab'", "ESCAPE takes one character, not 'ab' at column 3"),
        ('"" = 1', "an attribute's name is text of 1 to 255 characters at column 1"),
        (f"{'n' * 256} = 1", "an attribute's name is text of 1 to 255 characters at column 1"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_words(text: str, message: str):
    with pytest.raises(InvalidFilter) as caught:
        parse_sql(text)
    assert str(caught.value).startswith(message)


def test_like_with_escape():
    wanted = parse_sql("rate LIKE '10!%' ESCAPE '!' OR rate LIKE '_5$%%' ESCAPE '$'")
    assert wanted.matches({"rate": "10%"})
    assert wanted.matches({"rate": "25% more"})
    assert not wanted.matches({"rate": "10x"})
    assert not wanted.matches({"rate": "25 more"})


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("city < 'M' AND city >= 'L'", {"city": "London"}),
        ("size IN (1, 2.5, TRUE)", {"size": 2.5}),
        ("a / 2 = 3.5 AND a % 4 = 3", {"a": 7}),
        ("a + 1 > 9223372036854775807", {"a": 2**63 - 1}),
        ("JMSPriority IS NULL", {}),
        ("my-prop = 3", {"my": 5, "prop": 2}),
        ("CURRENT_TIMESTAMP = 5", {"CURRENT_TIMESTAMP": 5}),
    ],
)
def test_what_the_page_says_to_those_who_know_jms(text: str, attributes: dict[str, Value]):
    assert parse_sql(text).matches(attributes)
    assert parse_sql("NOT price = '5'").truth({"price": 6}) is None
