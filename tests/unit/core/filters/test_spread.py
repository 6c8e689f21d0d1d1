from octopis.core.filters import parse_filter
from octopis.core.filters.tree import text_of, to_conjunctions


def spread_out(text: str, limit: int = 64) -> list[list[str]] | None:
    parts = to_conjunctions(parse_filter(text).tree, limit)
    return None if parts is None else [[text_of(term) for term in part] for part in parts]


def test_conjunction_is_one_part():
    assert spread_out("a = 1 AND b = 2") == [["a = 1", "b = 2"]]
    assert spread_out("a = 1") == [["a = 1"]]


def test_or_under_and_is_multiplied_out():
    assert spread_out("a = 1 AND (b = 2 OR c = 3)") == [["a = 1", "b = 2"], ["a = 1", "c = 3"]]


def test_terms_on_one_attribute_are_joined_in_each_part():
    assert spread_out("a < 5 AND (a > 1 AND b = 1 OR c = 1)") == [
        ["a < 5", "c = 1"],
        ["a > 1 AND a < 5", "b = 1"],
    ]


def test_true_is_one_empty_part_and_false_is_none():
    assert spread_out("TRUE") == [[]]
    assert spread_out("FALSE") == []


def test_past_the_limit_it_is_not_spread():
    at_limit = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(6))
    parts = spread_out(at_limit)
    assert parts is not None
    assert len(parts) == 64
    assert spread_out(f"{at_limit} OR c = 1") is None
    assert spread_out("a = 1 OR b = 1", limit=1) is None
    assert spread_out("a = 1 AND b = 1", limit=1) is not None
