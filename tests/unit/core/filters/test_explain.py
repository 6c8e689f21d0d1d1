import pytest

from octopis.core.filters import FilterExplanation, explain, parse_filter
from octopis.core.model import Value


def explained(text: str, **attributes: Value) -> FilterExplanation:
    return explain(parse_filter(text), attributes)


@pytest.mark.parametrize(
    ("text", "truth", "reason"),
    [
        ("price > 50", "TRUE", "price is 60"),
        ("price > 70", "FALSE", "price is 60"),
        ("volume > 50", "UNKNOWN", "volume is absent"),
        ("symbol > 50", "UNKNOWN", "symbol is 'IBM', which is a text and not a number"),
        ("price LIKE '%x'", "UNKNOWN", "price is 60, which is a number and not a text"),
        ("halted = 'x'", "UNKNOWN", "halted is TRUE, which is a boolean and not a text"),
        ("symbol IS NULL", "FALSE", "symbol is 'IBM'"),
        ("volume IS NULL", "TRUE", "volume is absent"),
        ("price + 1 > low", "TRUE", "low is 5, price is 60: 5 against 61"),
        ("price > volume + more", "UNKNOWN", "more and volume are absent"),
        ("price > volume", "UNKNOWN", "volume is absent"),
        ("price / (low - 5) > 1", "UNKNOWN", "low is 5, price is 60: the arithmetic has no result"),
        (
            "price = symbol",
            "UNKNOWN",
            "price is 60, symbol is 'IBM': 60 against 'IBM', which do not compare",
        ),
        ("note = 'x'", "FALSE", "note is 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn..."),
        ("1 / 0 = 1", "UNKNOWN", "the arithmetic has no result"),
        ("TRUE", "TRUE", "it always is"),
        ("FALSE", "FALSE", "it always is"),
    ],
)
def test_term_is_explained(text: str, truth: str, reason: str):
    found = explained(text, price=60, symbol="IBM", halted=True, low=5, note="n" * 100)
    assert (found.truth, found.reason, found.parts) == (truth, reason, ())


@pytest.mark.parametrize(
    ("text", "truth", "reason"),
    [
        ("a = 1 AND b = 2", "TRUE", "all 2 parts are TRUE"),
        ("a = 1 AND b = 3", "FALSE", "1 of 2 parts is FALSE"),
        ("a = 2 AND b = 3 AND c = 1", "FALSE", "2 of 3 parts are FALSE"),
        ("a = 1 AND c = 3", "UNKNOWN", "1 of 2 parts is UNKNOWN"),
        ("a = 1 OR b = 3", "TRUE", "1 of 2 parts is TRUE"),
        ("a = 2 OR b = 3", "FALSE", "all 2 parts are FALSE"),
        ("a = 2 OR c = 3", "UNKNOWN", "1 of 2 parts is UNKNOWN"),
    ],
)
def test_conditions_are_explained_by_their_parts(text: str, truth: str, reason: str):
    found = explained(text, a=1, b=2)
    assert (found.truth, found.reason) == (truth, reason)
    assert found.condition == text


def test_parts_are_explained_inside():
    found = explained("a = 1 AND (b = 2 OR c IS NULL)", a=1, b="x")
    assert [(part.condition, part.truth) for part in found.parts] == [
        ("a = 1", "TRUE"),
        ("b = 2 OR c IS NULL", "TRUE"),
    ]
    assert [(part.condition, part.truth) for part in found.parts[1].parts] == [
        ("b = 2", "UNKNOWN"),
        ("c IS NULL", "TRUE"),
    ]


def test_result_too_long_to_print_is_described():
    text = "a"
    for _ in range(8):
        text = f"({text} * {text})"
    found = explained(f"{text} > 1", a=2**62)
    assert found.truth == "TRUE"
    assert found.reason.endswith("1 against an integer of 15873 bits")
