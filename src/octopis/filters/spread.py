"""Spreading OR out: a filter as several conjunctions of terms, any of which may hold."""

from itertools import product
from math import prod

from octopis.filters.limits import CONJUNCTIONS_MAX
from octopis.filters.terms import Term
from octopis.filters.tree import And, Node, Or, conjunction, is_term

Conjunction = tuple[Term, ...]


def spread(node: Node, limit: int = CONJUNCTIONS_MAX) -> tuple[Conjunction, ...] | None:
    """Return conjunctions that together are TRUE where `node` is, or None if over `limit`.

    No conjunction at all is FALSE; an empty one is TRUE.
    """
    if not isinstance(node, And | Or):
        return ((node,),)
    if isinstance(node, And) and all(map(is_term, node.children)):
        return (node.children,)  # type: ignore[return-value]  # terms, as just tested
    return _spread(node) if _count(node) <= limit else None


def _count(node: Node) -> int:
    if isinstance(node, And):
        return prod(_count(child) for child in node.children)
    if isinstance(node, Or):
        return sum(_count(child) for child in node.children)
    return 1


def _spread(node: Node) -> tuple[Conjunction, ...]:
    if isinstance(node, Or):
        return tuple(part for child in node.children for part in _spread(child))
    if not isinstance(node, And):
        return ((node,),)
    choices = product(*(_spread(child) for child in node.children))
    return tuple(_crossed(choice) for choice in choices)


def _crossed(parts: tuple[Conjunction, ...]) -> Conjunction:
    whole = conjunction(term for part in parts for term in part)
    # A conjunction of terms has only terms in it.
    return whole.children if isinstance(whole, And) else (whole,)  # type: ignore[return-value]
