"""Filters at each limit are taken, and refused just past it, whatever the dialect."""

import pytest

from octopis.core.filters import attr, parse_filter
from octopis.errors import InvalidFilter


def refusal(text: str, dialect: str = "sql") -> str:
    with pytest.raises(InvalidFilter) as caught:
        parse_filter(text, dialect)
    return str(caught.value)


def test_length_of_the_text():
    at_limit = "a = '" + "x" * 4_090 + "'"
    assert len(at_limit) == 4_096
    assert str(parse_filter(at_limit)) == at_limit
    for dialect in ("sql", "padres"):
        assert refusal(at_limit + " ", dialect) == (
            "the filter has 4097 characters, more than 4096"
        )


def test_length_of_what_is_printed():
    assert len(str(attr("a").startswith("x" * 4_086))) == 4_096
    with pytest.raises(InvalidFilter, match="written out in full, the filter has 4097 characters"):
        attr("a").startswith("x" * 4_087)
    with pytest.raises(InvalidFilter, match="written out in full"):
        attr("a").is_in(range(2_000))
    assert "written out in full" in refusal("a='" + "''" * 2_042 + "'OR b=1")


def test_terms():
    assert parse_filter(" OR ".join(f"a{n} = 1" for n in range(200))).matches({"a199": 1})
    assert "the filter has more than 200 terms" in refusal(
        " OR ".join(f"a{n} = 1" for n in range(201))
    )
    assert "the filter has more than 200 terms" in refusal(
        " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(101))
    )
    assert parse_filter(",".join("[a,=,1]" for _ in range(200)), "padres") == (attr("a") == 1)
    assert refusal(",".join("[a,=,1]" for _ in range(201)), "padres") == (
        "the filter has more than 200 terms"
    )


def test_depth_of_brackets():
    assert parse_filter("(" * 32 + "a = 1" + ")" * 32) == (attr("a") == 1)
    assert refusal("(" * 33 + "a = 1" + ")" * 33) == (
        "brackets are nested deeper than 32 at column 33"
    )
    assert parse_filter(" AND ".join(["(a = 1)"] * 100)) == (attr("a") == 1)


def test_depth_of_conditions():
    def nested(depth: int) -> str:
        text = "z = 1"
        for level in range(depth):
            text = f"a{level} = 1 {'OR' if level % 2 else 'AND'} ({text})"
        return text

    deepest = parse_filter(nested(32))
    assert parse_filter(str(deepest)) == deepest
    assert "deeper than 32" in refusal(nested(34))


def test_depth_of_arithmetic():
    def chain(names: int) -> str:
        return " + ".join(["a"] * names) + " > b"

    assert parse_filter(chain(32)).matches({"a": 1, "b": 31})
    assert refusal(chain(33)).startswith("the arithmetic is deeper than 32 operations at column")


def test_words():
    at_limit = "a IN (" + ",".join(["1"] * 998) + ")"
    assert parse_filter(at_limit) == (attr("a") == 1)
    assert "the filter has more than 2000 words" in refusal("a IN (" + ",".join(["1"] * 999) + ")")


def test_patterns_that_a_long_text_keeps_busy():
    def contains(count: int, size: int) -> str:
        return " OR ".join(f"a LIKE '%{n:0{size}}%'" for n in range(count))

    assert parse_filter(contains(80, 10)).matches({"a": "0000000079"})
    assert refusal(contains(81, 10)) == (
        "a long text could keep the filter's LIKE patterns busy for 6.1 ms, more than 6: "
        "use fewer or shorter ones that start with %"
    )
    assert "LIKE patterns" in refusal(f"a LIKE '%{'a_' * 1_000}b%'")
    with pytest.raises(InvalidFilter, match="LIKE patterns"):
        parse_filter(contains(80, 10)) | attr("a").contains("x")


def test_patterns_that_are_not_searched_for_are_as_many_as_terms_may_be():
    ends = " OR ".join(f"a LIKE '%_{n}'" for n in range(200))
    starts = " OR ".join(f"a LIKE '_{n}_%'" for n in range(200))
    assert parse_filter(ends).matches({"a": "x199"})
    assert parse_filter(starts).matches({"a": "x199x"})
