from octopis.core.filters import parse_filter
from octopis.core.matching import LinearIndex


def test_matches_come_in_the_order_in_which_they_were_added():
    index: LinearIndex[str, int] = LinearIndex()
    for name in ("c", "a", "b"):
        index.add(name, parse_filter("TRUE"), 0)
    index.remove("c")
    index.add("c", parse_filter("TRUE"), 0)
    assert index.matches([{}]) == [["a", "b", "c"]]


def test_unknown_does_not_match():
    index: LinearIndex[str, int] = LinearIndex()
    index.add("plain", parse_filter("a > 1"), 0)
    index.add("negated", parse_filter("NOT a > 1"), 1)
    assert index.destinations([{"a": 2}, {"a": 1}, {}, {"a": "2"}]) == [(0,), (1,), (), ()]
