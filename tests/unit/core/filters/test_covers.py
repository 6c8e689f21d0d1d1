import pytest

from octopis.core.filters import covers, parse_filter


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("a > 1", "a > 2"),
        ("a > 1", "a = 2"),
        ("a > 1", "a BETWEEN 2 AND 3 AND b = 1"),
        ("a IN (1, 2, 3)", "a IN (1, 3)"),
        ("a IN (1, 'x')", "a = 'x'"),
        ("a LIKE 'ab%'", "a LIKE 'abc%'"),
        ("a LIKE 'ab%'", "a = 'ab'"),
        ("a LIKE '%'", "a > 'x'"),
        ("a LIKE '%x'", "a IN ('x', 'yx')"),
        ("a NOT LIKE '%x'", "a = ''"),
        ("a IS NOT NULL", "a = 1"),
        ("a IS NOT NULL", "a LIKE '%x'"),
        ("a IS NOT NULL AND b IS NOT NULL", "a + b > 1"),
        ("a IS NULL", "a IS NULL AND b = 1"),
        ("a <> 1", "a > 1"),
        ("a > b", "a > b AND c = 1"),
        ("a > 1 OR b > 1", "b > 2"),
        ("a > 1 OR b > 1", "a = 2 OR b = 2"),
        ("a = 1 AND b = 1 OR a = 1 AND c = 1", "a = 1 AND (b = 1 OR c = 1)"),
        ("TRUE", "a = 1"),
        ("a = 1", "FALSE"),
        ("a = 1", "b > 5 AND b < 3"),
        ("a = 1", "b = 1 AND b = 'x'"),
        ("a = 1", "b = 1 AND b IS NULL"),
        ("a", "a = TRUE"),
        ("a > 9007199254740992.0", "a >= 9007199254740993"),
        ("a LIKE '%jeff%'", "a LIKE 'jeff%'"),
        ("a LIKE '%jeff%'", "a LIKE '%jeffrey%'"),
        ("a LIKE '%e__%'", "a LIKE '_jeff_'"),
        ("a LIKE '_%'", "a LIKE '%x%'"),
        ("a LIKE '%b%'", "a BETWEEN 'abc' AND 'abd'"),
        ("a LIKE 'je%'", "a LIKE 'jeff_'"),
        ("a LIKE '%'", "a NOT LIKE '%x'"),
        ("a NOT LIKE '%jeff%'", "a NOT LIKE '%eff%'"),
        ("a NOT LIKE 'jeff_'", "a NOT LIKE 'jeff%'"),
        ("a NOT LIKE 'jeff_'", "a LIKE 'jim_'"),
        ("FALSE", "a LIKE '%x' AND a = 5"),
        ("FALSE", "a LIKE '%x' AND a = 'y'"),
        ("FALSE", "a LIKE 'x_' AND a LIKE 'y_'"),
        ("FALSE", "a + 1 > b AND a = 'x'"),
        ("FALSE", "a <> a OR a < a OR a = 1 / 0"),
    ],
)
def test_covers(wide: str, narrow: str):
    assert covers(parse_filter(wide), parse_filter(narrow))


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("a > 2", "a > 1"),
        ("a > 1", "a >= 1"),
        ("a > 1", "b > 2"),
        ("a > 1 AND b > 1", "a > 2"),
        ("a IN (1, 2)", "a IN (1, 3)"),
        ("a LIKE 'abc%'", "a LIKE 'ab%'"),
        ("a LIKE '%x'", "a LIKE '%'"),
        ("a LIKE '%x'", "a IN ('x', 'y')"),
        ("a LIKE '%x'", "a = 5"),
        ("a <> 1", "a <> 2"),
        ("a <> 1", "a IS NULL"),
        ("a IS NULL", "a = 1"),
        ("a IS NULL", "b = 1"),
        ("a IS NOT NULL", "b = 1"),
        ("a IS NOT NULL", "TRUE"),
        ("a = 1", "a = '1'"),
        ("a = 1", "a = TRUE"),
        ("a > 1", "a > b"),
        ("a = 1", "TRUE"),
        ("FALSE", "a = 1"),
        ("a <= 0 OR a > 0", "TRUE"),
        ("a > 1 OR b > 1", "c > 1"),
        ("a LIKE 'jeff%'", "a LIKE '%jeff%'"),
        ("a LIKE '%jeff%'", "b LIKE 'jeff%'"),
        ("a LIKE '%jeff%'", "a NOT LIKE 'jeff_'"),
        ("a LIKE '_%'", "a LIKE '%'"),
        ("a LIKE '%ab%'", "a LIKE '%a%b%'"),
        ("a NOT LIKE '%eff%'", "a NOT LIKE '%jeff%'"),
        ("a LIKE '%b%'", "a BETWEEN 'abc' AND 'acd'"),
        ("a LIKE '%b%'", "a > 'abc'"),
    ],
)
def test_does_not_cover(wide: str, narrow: str):
    assert not covers(parse_filter(wide), parse_filter(narrow))


def test_filter_past_the_spreading_limit_covers_itself_only():
    far = parse_filter(" AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(8)))
    assert covers(far, far)
    assert not covers(far, parse_filter("a0 = 1"))
    assert not covers(parse_filter("a0 = 1"), far)
