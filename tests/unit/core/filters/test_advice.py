import pytest

from octopis.core.filters import warnings_for
from octopis.errors import InvalidFilter

NEVER = "the filter can never be TRUE: it matches nothing"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ('symbol = "IBM"',
         "symbol = \"IBM\" compares two attributes: a text stands in single quotes, 'IBM'"),
        ('"IBM" <> symbol',
         "\"IBM\" <> symbol compares two attributes: a text stands in single quotes, 'IBM'"),
        ('NOT (a < "it\'s")',
         "a < \"it's\" compares two attributes: a text stands in single quotes, 'it\'\'s'"),
        ("a > 5 AND a < 3", NEVER),
        ("a = 1 AND a = 'x'", NEVER),
        ("a IS NULL AND a = 1", NEVER),
        ("a LIKE '%x' AND a = 5", NEVER),
        ("(a = 1 AND a = 2) OR b < ''", NEVER),
        ("a <> a", NEVER),
        ("a > 1 / 0", NEVER),
        ("FALSE", NEVER),
        ("sent > CURRENT_TIMESTAMP - 5",
         "CURRENT_TIMESTAMP is read as an attribute of that name: filters have no clock"),
        ("current_date = 'x'",
         "current_date is read as an attribute of that name: filters have no clock"),
        ("my-prop = 1",
         'my-prop is read as my minus prop: for the attribute of that name write "my-prop"'),
        ("5 < x.my-long-prop",
         "x.my-long-prop is read as x.my minus long minus prop: "
         'for the attribute of that name write "x.my-long-prop"'),
    ],
)  # fmt: skip
def test_what_is_seldom_meant_is_said_once(text: str, warning: str):
    assert warnings_for(text) == [warning]
    assert warnings_for(f"{text} OR ({text})") == [warning]


@pytest.mark.parametrize(
    "text",
    [
        "symbol = 'IBM'",
        '"last price" > 5 AND 5 < "last price"',
        "a = b",
        "high - low > 5",
        "high -low > 5",
        "high- low > 5",
        "price-1 > 5",
        "a = -b",
        "a > 5 OR a < 3",
        "a = 1 OR a = 'x'",
        "a = 'my-prop' AND b = 'CURRENT_TIMESTAMP'",
        '"CURRENT_TIMESTAMP" > 5 AND "my-prop" > 5',
        "a LIKE '%x' AND a LIKE '%y%'",
    ],
)
def test_what_is_plain_is_not_warned_of(text: str):
    assert warnings_for(text) == []


def test_other_dialect_has_other_surprises():
    assert warnings_for('[a-b,=,"x"],[CURRENT_TIMESTAMP,>,5];', "padres") == []
    assert warnings_for("[a,>,5],[a,<,3]", "padres") == [NEVER]


def test_filter_that_cannot_be_read_is_refused_as_ever():
    with pytest.raises(InvalidFilter):
        warnings_for("a >")
