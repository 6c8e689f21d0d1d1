import pytest

from octopis.core.filters import Filter, attr, parse_filter
from octopis.errors import InvalidFilter

A, B = attr("a"), attr("b")
INFINITY = float("inf")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (A == 1, "a = 1"),
        (A != "x", "a <> 'x'"),
        (A < 1, "a < 1"),
        (A <= 1.5, "a <= 1.5"),
        (A > "x", "a > 'x'"),
        (A >= 1, "a >= 1"),
        (1 < A, "a > 1"),  # noqa: SIM300 - the other way round
        (A == B, "a = b"),
        (A > B, "a > b"),
        (A + 1 > 2, "a + 1 > 2"),
        (1 + A > 2, "1 + a > 2"),
        (A - 1 > 2, "a - 1 > 2"),
        (1 - A > 2, "1 - a > 2"),
        (A * 2 > 2, "a * 2 > 2"),
        (2 * A > 2, "2 * a > 2"),
        (A / 2 > 2, "a / 2 > 2"),
        (2 / A > 2, "2 / a > 2"),
        (A % 2 == 1, "a % 2 = 1"),
        (2 % A == 1, "2 % a = 1"),
        (-A > 2, "-a > 2"),
        ((A + B) * 2 != A / B, "(a + b) * 2 <> a / b"),
        (A.between(1, 5), "a BETWEEN 1 AND 5"),
        ((A + B).between(1, B), "a + b BETWEEN 1 AND b"),
        (A.is_in([1, "x", True]), "a IN (1, 'x', TRUE)"),
        (A.is_in(iter([1, 2])), "a IN (1, 2)"),
        (A.is_in([]), "FALSE"),
        (A.is_true(), "a"),
        (A.is_null(), "a IS NULL"),
        (A.is_present(), "a IS NOT NULL"),
        (A.like("x_%"), "a LIKE 'x_%'"),
        (A.like("5!%", escape="!"), "a LIKE '5!%' ESCAPE '!'"),
        (A.startswith("5%"), "a LIKE '5!%%' ESCAPE '!'"),
        (A.endswith("x"), "a LIKE '%x'"),
        (A.contains("x"), "a LIKE '%x%'"),
        (A.contains(""), "a LIKE '%'"),
        ((A > 1) & (B > 1) | ~A.is_null(), "a > 1 AND b > 1 OR NOT a IS NULL"),
        (attr("last price") > 1, '"last price" > 1'),
    ],
)
def test_python_gives_the_object_that_the_text_gives(made: Filter, text: str):
    assert made == parse_filter(text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: attr(""),
        lambda: attr("n" * 256),
        lambda: attr(5),  # type: ignore[arg-type]
        lambda: attr("\ud800"),
        lambda: A == None,  # noqa: E711 - that is what is tested
        lambda: A > INFINITY,
        lambda: A > True,
        lambda: A == 2**63,
        lambda: A == [1],
        lambda: A + "x",
        lambda: A + 1 == "x",
        lambda: A.is_in([None]),  # type: ignore[list-item]
        lambda: A.is_in([object()]),  # type: ignore[list-item]
        lambda: A.like(5),  # type: ignore[arg-type]
        lambda: A.like("x!", "!"),
        lambda: A.startswith(5),  # type: ignore[arg-type]
        lambda: A.endswith(None),  # type: ignore[arg-type]
        lambda: A.contains(b"x"),  # type: ignore[arg-type]
        lambda: A.startswith("\udfff"),
    ],
)
def test_what_makes_no_filter_is_refused(make):
    with pytest.raises(InvalidFilter):
        make()


def test_chain_and_words_that_would_drop_a_condition_are_refused():
    with pytest.raises(InvalidFilter, match=r"join conditions with & \| ~"):
        1 < A < 5  # noqa: B015 - that is what is tested
    with pytest.raises(InvalidFilter, match="join conditions with"):
        (A > 1) and (B > 1)  # noqa: B018 - that is what is tested
    with pytest.raises(InvalidFilter, match="join conditions with"):
        not (A > 1)  # noqa: B018 - that is what is tested


def test_expression_cannot_be_a_key():
    with pytest.raises(TypeError, match="unhashable"):
        {A: 1}  # noqa: B018 - that is what is tested


def test_text_is_not_taken_apart_into_members():
    with pytest.raises(InvalidFilter, match="list of values"):
        attr("a").is_in("IBM")


def test_filters_join_only_with_filters():
    with pytest.raises(TypeError):
        (attr("a") > 1) & attr("b")
    with pytest.raises(TypeError):
        (attr("a") > 1) | True
