"""What a filter is taken apart into, and what must be there for a part to hold."""

import pytest

from octopis.core.filters import parse_filter
from octopis.core.filters.tree import COST_MAX_US, cost_us, terms_of, text_of
from octopis.core.matching.alternatives import (
    alternatives,
    holds,
    one_of,
    required,
)

MANY_ORS = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(7))


def shown(text: str) -> list[tuple[list[str], list[str]]]:
    """Return the terms and the rest of each alternative, as text."""
    return [
        (list(map(text_of, each.terms)), list(map(text_of, each.rest)))
        for each in alternatives(parse_filter(text).tree)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", [(["a = 1"], [])]),
        ("a = 1 AND b = 2", [(["a = 1", "b = 2"], [])]),
        ("a = 1 OR b = 2 AND c = 3", [(["a = 1"], []), (["b = 2", "c = 3"], [])]),
        ("a = 1 AND (b = 2 OR c = 3)", [(["b = 2", "a = 1"], []), (["c = 3", "a = 1"], [])]),
        ("TRUE", [([], [])]),
        ("FALSE", []),
        ("a IS NULL AND a IS NOT NULL", []),
        (f"x = 1 AND {MANY_ORS}", [(["x = 1"], [f"a{n} = 1 OR b{n} = 1" for n in range(7)])]),
        (
            f"y = 1 OR {MANY_ORS}",
            [(["y = 1"], []), ([], [f"a{n} = 1 OR b{n} = 1" for n in range(7)])],
        ),
    ],
)
def test_filter_is_taken_apart_at_its_ors(text: str, expected: list[tuple[list[str], list[str]]]):
    found = shown(text)
    assert [(sorted(terms), rest) for terms, rest in found] == [
        (sorted(terms), rest) for terms, rest in expected
    ]


def test_or_of_as_many_terms_as_a_filter_may_have_has_each_of_them_alone():
    found = alternatives(parse_filter(" OR ".join(f"a{n} = 1" for n in range(200))).tree)
    assert [len(each.terms) for each in found] == [1] * 200
    assert not any(each.rest for each in found)


def many_terms(ors: int, more: int) -> str:
    parts = [f"(a{n} = 1 OR b{n} = 1)" for n in range(ors)] + [f"c{n} = 1" for n in range(more)]
    return " AND ".join(parts)


@pytest.mark.parametrize(
    "text",
    [
        *(many_terms(ors, more) for ors in range(1, 8) for more in (0, 1, 20, 150)),
        " OR ".join(f"({many_terms(5, 0)} AND d = {n})" for n in range(15)),
    ],
)
def test_alternatives_have_a_few_times_as_many_terms_as_the_filter_at_most(text: str):
    tree = parse_filter(text).tree
    found = alternatives(tree)
    kept = sum(len(each.terms) + sum(map(terms_of, each.rest)) for each in found)
    assert kept <= 10 * terms_of(tree)
    assert kept >= terms_of(tree)


def test_evaluating_all_alternatives_costs_no_more_than_a_filter_may():
    # Multiplied out, each LIKE would be evaluated 16 times.
    ors = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(4))
    tree = parse_filter(
        " OR ".join(f"({ors} AND t LIKE '%{n}{'xy' * 20}%')" for n in range(15))
    ).tree
    assert COST_MAX_US / 3 < cost_us(tree) <= COST_MAX_US
    found = alternatives(tree)
    assert len(found) == 15
    assert sum(cost_us(node) for each in found for node in (*each.terms, *each.rest)) == cost_us(
        tree
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = 1 AND b LIKE '%x' AND c IS NOT NULL", {"a", "b", "c"}),
        ("a > b AND c + d * 2 < 5", {"a", "b", "c", "d"}),
        ("a = 1 AND b IS NULL", {"a"}),
        ("a IS NULL", set()),
        ("NOT a = 1", {"a"}),
    ],
)
def test_every_term_but_is_null_requires_its_attributes(text: str, names: set[str]):
    (found,) = alternatives(parse_filter(text).tree)
    assert required(found.terms) == names


@pytest.mark.parametrize(
    ("ors", "names"),
    [
        (["a = 1 OR b = 1 OR c = 1", "d = 1 OR e = 1"], {"d", "e"}),
        (["a = 1 OR b IS NULL", "d = 1 OR e = 1"], {"d", "e"}),
        (["a = 1 OR b IS NULL"], set()),
        (["a > b OR c = 1"], {"b", "c"}),
        (["a = 1 AND b = 1 OR c = 1 AND a IS NULL"], {"b", "c"}),
    ],
)
def test_of_ors_one_of_a_few_rare_attributes_must_be_there(ors: list[str], names: set[str]):
    rest = tuple(parse_filter(text).tree for text in ors)
    assert one_of(rest, {"a": 10, "b": 2}) == names


def test_nodes_hold_only_together():
    nodes = (parse_filter("a = 1").tree, parse_filter("b = 1 OR c = 1").tree)
    assert holds(nodes, {"a": 1, "c": 1})
    assert not holds(nodes, {"a": 1})
    assert not holds(nodes, {"c": 1})
    assert holds((), {})


def test_many_patterns_for_one_text_are_one_alternative_and_prefixes_are_not():
    searches = [f"t LIKE '%{letter}%'" for letter in "abcdefgh"]
    few = " OR ".join([*searches[:7], "u = 1"])
    assert len(alternatives(parse_filter(few).tree)) == 8
    many = " OR ".join([*searches, "u = 1", "t LIKE 'x%y'", "v LIKE '%z'"])
    found = alternatives(parse_filter(many).tree)
    assert [len(each.rest) for each in found] == [0, 0, 0, 1]
    (together,) = found[-1].rest
    assert terms_of(together) == 8
    assert one_of(found[-1].rest, {}) == {"t"}
    assert holds(found[-1].rest, {"t": "---h"})
    assert not holds(found[-1].rest, {"t": "---x", "u": 1})
