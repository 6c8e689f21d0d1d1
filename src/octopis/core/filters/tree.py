"""The normal form of a filter: terms under AND and OR, with no NOT left.

    NOT (price > 50 AND symbol = 'IBM')   is kept as   price <= 50 OR symbol <> 'IBM'

This is exact in three-valued logic, because every term's opposite is UNKNOWN where the term is,
and because De Morgan's laws hold there. Nodes come out flat, without repetition, in one order, and
with the terms on one attribute joined into one set of values; so whatever dialect a filter came
from, the same conditions give the same tree.

For the index, a tree can also be multiplied out into conjunctions of terms, any of which may hold:

    price <= 50 AND (symbol = 'IBM' OR note IS NULL)   is   price <= 50 AND symbol = 'IBM'
                                                       or   price <= 50 AND note IS NULL
"""

from collections.abc import Iterable
from itertools import product
from math import prod
from typing import NamedTuple, TypeGuard

import msgspec

from octopis.core.filters import values
from octopis.core.filters.operands import DEPTH_MAX, Attributes
from octopis.core.filters.print_sql import nesting, print_term
from octopis.core.filters.terms import (
    ComparisonTerm,
    LikeTerm,
    PresenceTerm,
    Term,
    Truth,
    ValueTerm,
)
from octopis.errors import InvalidFilter

# No filter may cost a broker much time. Each limit is checked where the thing is made, whatever
# the dialect.
LENGTH_MAX = 4_096
"""Characters in the text of a filter, as it was written and as it is printed."""

TERMS_MAX = 200
"""Comparisons in one filter."""

COST_MAX_US = 6_000
"""About how many microseconds a filter may take on the longest texts that a notification has.

So reckoned, none takes more than 10 ms on a machine that is busy."""

_COMPARISON_US = 20
"""What comparing two of the longest texts, or arithmetic, takes at most."""

CONJUNCTIONS_MAX = 64
"""How far ANDs of ORs are multiplied out for the index; past that, the ORs are evaluated."""


class And(msgspec.Struct, frozen=True):
    """All children hold. Without children: TRUE.

    `text` is the node in the SQL dialect, and `depth` how deep brackets stand in brackets there.
    """

    children: tuple["Node", ...]
    text: str = "TRUE"
    size: int = 0
    depth: int = 0

    def truth(self, attributes: Attributes) -> Truth:
        """Return FALSE where one child is, else UNKNOWN (None) where one is, else TRUE."""
        unknown = False
        for child in self.children:
            found = child.truth(attributes)
            if found is False:
                return False
            unknown = unknown or found is None
        return None if unknown else True


class Or(msgspec.Struct, frozen=True):
    """At least one child holds. Without children: FALSE. `text` and `depth` as for And."""

    children: tuple["Node", ...]
    text: str = "FALSE"
    size: int = 0
    depth: int = 0

    def truth(self, attributes: Attributes) -> Truth:
        """Return TRUE where one child is, else UNKNOWN (None) where one is, else FALSE."""
        unknown = False
        for child in self.children:
            found = child.truth(attributes)
            if found:
                return True
            unknown = unknown or found is None
        return None if unknown else False


Node = Term | And | Or
Conjunction = tuple[Term, ...]

ALWAYS = And(())
NEVER = Or(())
_TERMS = (ValueTerm, LikeTerm, PresenceTerm, ComparisonTerm)


def is_term(node: Node) -> TypeGuard[Term]:
    """Tell whether `node` is a term."""
    return isinstance(node, _TERMS)


def conjunction(nodes: Iterable[Node]) -> Node:
    """Return `nodes` joined by AND."""
    return _joined(And, NEVER, nodes)


def disjunction(nodes: Iterable[Node]) -> Node:
    """Return `nodes` joined by OR."""
    return _joined(Or, ALWAYS, nodes)


def negation(node: Node) -> Node:
    """Return NOT `node`."""
    if isinstance(node, And):
        return disjunction(negation(child) for child in node.children)
    if isinstance(node, Or):
        return conjunction(negation(child) for child in node.children)
    return node.opposite()


def terms_of(node: Node) -> int:
    """Return how many terms `node` has."""
    return node.size if isinstance(node, And | Or) else 1


def names_of(node: Node) -> set[str]:
    """Return the names of the attributes that `node` asks for."""
    if isinstance(node, And | Or):
        return {name for child in node.children for name in names_of(child)}
    if isinstance(node, ComparisonTerm):
        return node.left.names() | node.right.names()
    return {node.attribute}


def cost_us(node: Node) -> int:
    """Return about how many microseconds `node` may take on the longest texts."""
    if isinstance(node, And | Or):
        return sum(map(cost_us, node.children))
    if isinstance(node, LikeTerm):
        return node.pattern.cost_us
    return _COMPARISON_US if isinstance(node, ComparisonTerm) else 0


def _joined(kind: type[And] | type[Or], settled: Node, nodes: Iterable[Node]) -> Node:
    """Return the normal form of `nodes` under `kind`; a child equal to `settled` decides it."""
    children: list[Node] = []
    size = 0
    for node in nodes:
        size += terms_of(node)
        children.extend(node.children if isinstance(node, kind) else (node,))
    if size > TERMS_MAX:
        raise InvalidFilter(f"the filter has more than {TERMS_MAX} terms")
    if settled in children:
        return settled
    children = _with_joined_values(kind, children)
    if not children:
        return ALWAYS if kind is And else NEVER
    if len(children) == 1:
        return children[0]
    word = "AND" if kind is And else "OR"
    ordered = sorted((_as_child(word, child), position) for position, child in enumerate(children))
    depth = max(_depth(children[position], shown) for (_, shown), position in ordered)
    if depth > DEPTH_MAX:
        raise InvalidFilter(f"the filter is nested deeper than {DEPTH_MAX}")
    text = f" {word} ".join(shown for (_, shown), _ in ordered)
    in_order = tuple(children[position] for _, position in ordered)
    return kind(in_order, text, sum(map(terms_of, in_order)), depth)


def _with_joined_values(kind: type[And] | type[Or], children: list[Node]) -> list[Node]:
    """Join the value terms of each attribute and kind into one; drop repetitions."""
    if len(children) == 1:
        return children
    sets: dict[object, list[ValueTerm]] = {}
    others: dict[Node, None] = {}
    for child in children:
        if isinstance(child, ValueTerm):
            sets.setdefault((child.attribute, child.values.kind), []).append(child)
        else:
            others[child] = None
    join = values.intersection if kind is And else values.union
    joined = [
        same[0]
        if len(same) == 1
        else ValueTerm(same[0].attribute, join([term.values for term in same]))
        for same in sets.values()
    ]
    return [*joined, *others]


def text_of(node: Node) -> str:
    """Return the node in the SQL dialect."""
    return node.text if isinstance(node, And | Or) else print_term(node)


def _depth(node: Node, shown: str) -> int:
    """Return how deep brackets stand in brackets where `node` is shown as a child."""
    if isinstance(node, And | Or):
        return 1 + node.depth
    return nesting(shown) if "(" in shown else 0


def _as_child(word: str, node: Node) -> tuple[int, str]:
    """Return a child's place among its siblings (terms first, by text) and its text."""
    if isinstance(node, And | Or):
        return 1, f"({node.text})"
    return 0, print_term(node, word)


def to_conjunctions(node: Node, limit: int = CONJUNCTIONS_MAX) -> tuple[Conjunction, ...] | None:
    """Return conjunctions that together are TRUE where `node` is, or None if over `limit`.

    None as well where evaluating a term in each of them would take too long. No conjunction at
    all is FALSE; an empty one is TRUE.
    """
    if not isinstance(node, And | Or):
        return ((node,),)
    if isinstance(node, And) and all(map(is_term, node.children)):
        return (node.children,)  # type: ignore[return-value]  # terms, as just tested
    size = size_multiplied_out(node)
    fits = size.conjunctions <= limit and size.cost_us <= COST_MAX_US
    return _multiplied_out(node) if fits else None


class Size(NamedTuple):
    """What a node would be, multiplied out."""

    conjunctions: int
    terms: int
    cost_us: int


def size_multiplied_out(node: Node) -> Size:
    """Return how many conjunctions there would be, their terms, and what all of them may cost."""
    if not isinstance(node, And | Or):
        return Size(1, 1, cost_us(node))
    sizes = [size_multiplied_out(child) for child in node.children]
    if isinstance(node, Or):
        return Size(*map(sum, zip(*sizes, strict=True))) if sizes else Size(0, 0, 0)
    total = prod(size.conjunctions for size in sizes)
    times = [total // size.conjunctions if total else 0 for size in sizes]
    return Size(
        total,
        sum(size.terms * each for size, each in zip(sizes, times, strict=True)),
        sum(size.cost_us * each for size, each in zip(sizes, times, strict=True)),
    )


def _multiplied_out(node: Node) -> tuple[Conjunction, ...]:
    if isinstance(node, Or):
        return tuple(one for child in node.children for one in _multiplied_out(child))
    if not isinstance(node, And):
        return ((node,),)
    choices = product(*(_multiplied_out(child) for child in node.children))
    return tuple(_joined_by_and(choice) for choice in choices)


def _joined_by_and(conjunctions: tuple[Conjunction, ...]) -> Conjunction:
    terms: list[Node] = [term for terms in conjunctions for term in terms]
    return tuple(_with_joined_values(And, terms))  # type: ignore[arg-type]  # of terms: terms
