import pytest

from octopis.cli.notifications import parse_attributes, parse_value
from octopis.errors import InvalidNotification


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("12.5", 12.5),
        ("1e3", 1000.0),
        ("true", True),
        ("FALSE", False),
        ("IBM", "IBM"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_values_are_what_they_look_like(text: str, value: object):
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_words_become_attributes():
    assert parse_attributes(["symbol=IBM", "price=12.5"]).attributes == {
        "symbol": "IBM",
        "price": 12.5,
    }


def test_null_in_json_is_an_absent_attribute():
    assert parse_attributes(['{"a": null, "b": 1}']).attributes == {"b": 1}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["price"], "name=value"),
        (["=5"], "name=value"),
        (["a=1", "a=2"], "given twice"),
        (["{nonsense"], "not JSON"),
        (['{"a": [1]}'], "type list"),
        (["a=99999999999999999999"], "64 bits"),
    ],
)
def test_bad_attributes_are_refused(words: list[str], reason: str):
    with pytest.raises(InvalidNotification, match=reason):
        parse_attributes(words)
