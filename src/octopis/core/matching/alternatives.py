"""A filter as alternatives, any of which may hold, and what must be there for one to hold.

    a = 1 AND b > 2   OR   t LIKE '%x'   OR   c IS NULL AND (seven ORs)

has three: two of terms alone, and one with `rest`, ORs that would be too many if multiplied out and
are only evaluated. (So are many LIKEs that search one text: together they are one alternative.) The
first can hold only where both a and b are there, the second only where t is; so a notification
without them need not look at it. All that is kept of a filter grows with its own terms.
"""

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from octopis.core.filters.operands import Attributes
from octopis.core.filters.terms import ComparisonTerm, LikeTerm, PresenceTerm, Term, ValueTerm
from octopis.core.filters.tree import (
    CONJUNCTIONS_MAX,
    COST_MAX_US,
    And,
    Conjunction,
    Node,
    Or,
    cost_us,
    is_term,
    size_multiplied_out,
    to_conjunctions,
)

_TIMES_MAX = 4
_MORE_TERMS_MAX = 32
"""Multiplied out, n terms become at most this many times n, and so many more."""


_SEARCHES_MIN = 8
"""So many patterns for one text that all have to be searched for are one alternative."""

_PLAIN = {ValueTerm, LikeTerm, ComparisonTerm}
"""Terms that never contradict each other in a way that columns could not tell."""


class Alternative(NamedTuple):
    """Terms, and ORs, that hold together."""

    terms: Conjunction
    rest: tuple[Node, ...] = ()


def alternatives(tree: Node) -> list[Alternative]:
    """Return what may hold for the filter to hold: each alone is enough, one of them is needed.

    No alternative at all is FALSE. Evaluating all of them costs no more than a filter may.
    """
    if isinstance(tree, And) and _PLAIN.issuperset(map(type, tree.children)):
        return [Alternative(tree.children)]  # type: ignore[arg-type]  # terms, as just tested
    found = _alternatives(tree, multiplied=True)
    if len(found) > 1 and sum(map(_cost_us, found)) > COST_MAX_US:
        found = _alternatives(tree, multiplied=False)
    return [each for each in found if not _contradicts(each.terms)]


def _alternatives(node: Node, *, multiplied: bool) -> list[Alternative]:
    if isinstance(node, Or):
        searches, others = _many_searches(node)
        children = (_alternatives(child, multiplied=multiplied) for child in others)
        return [*chain.from_iterable(children), *(Alternative((), (each,)) for each in searches)]
    if not isinstance(node, And):
        return [Alternative((node,))]
    terms = tuple(child for child in node.children if is_term(child))
    if len(terms) == len(node.children):
        return [Alternative(terms)]
    if multiplied and _stays_small(node):
        return [Alternative(conjunction) for conjunction in to_conjunctions(node) or ()]
    return [Alternative(terms, tuple(child for child in node.children if not is_term(child)))]


def _many_searches(node: Or) -> tuple[list[Node], list[Node]]:
    """Return ORs of patterns that search one text from end to end, and the other children.

    No column could tell them apart, so many of them are one thing to index, and not many.
    """
    by_attribute: dict[str, list[Node]] = {}
    for child in node.children:
        if isinstance(child, LikeTerm) and (child.negated or not child.pattern.prefix):
            by_attribute.setdefault(child.attribute, []).append(child)
    many = [found for found in by_attribute.values() if len(found) >= _SEARCHES_MIN]
    if not many:
        return [], list(node.children)
    together = {id(child) for found in many for child in found}
    others = [child for child in node.children if id(child) not in together]
    return [Or(tuple(found), size=len(found)) for found in many], others  # they are never shown


def _stays_small(node: And) -> bool:
    size = size_multiplied_out(node)
    return (
        size.conjunctions <= CONJUNCTIONS_MAX
        and size.terms <= _TIMES_MAX * node.size + _MORE_TERMS_MAX
        and size.cost_us <= COST_MAX_US
    )


def _cost_us(alternative: Alternative) -> int:
    return sum(map(cost_us, alternative.terms)) + sum(map(cost_us, alternative.rest))


def _contradicts(terms: Conjunction) -> bool:
    """Tell whether one attribute must be both there and absent: one column cannot say both."""
    absent = [t.attribute for t in terms if type(t) is PresenceTerm and not t.present]
    return bool(absent) and any(
        isinstance(term, PresenceTerm) and term.present and term.attribute in absent
        for term in terms
    )


def names_of(term: Term) -> set[str]:
    """Return the attributes that a term speaks of."""
    if isinstance(term, ComparisonTerm):
        return term.left.names() | term.right.names()
    return {term.attribute}


def asks_for_absence(term: Term) -> bool:
    """Tell whether the term can hold although its attribute is absent; no other can."""
    return type(term) is PresenceTerm and not term.present


def required(terms: Conjunction) -> set[str]:
    """Return the attributes that must all be there for the terms to hold."""
    names: set[str] = set()
    for term in terms:
        if type(term) is ValueTerm:
            names.add(term.attribute)
        elif not asks_for_absence(term):
            names |= names_of(term)
    return names


def one_of(rest: tuple[Node, ...], counts: Mapping[str, int]) -> set[str]:
    """Return attributes of which one must be there for all of `rest` to hold; none: not known.

    Where there is a choice, they are few, and rare by their `counts`.
    """
    choices = [found for node in rest if (found := _one_of(node, counts))]
    return min(
        choices,
        key=lambda names: (len(names), sum(counts.get(name, 0) for name in names)),
        default=set(),
    )


def _one_of(node: Node, counts: Mapping[str, int]) -> set[str]:
    if isinstance(node, And):
        return one_of(node.children, counts)
    if isinstance(node, Or):
        found = [_one_of(child, counts) for child in node.children]
        return set().union(*found) if all(found) else set()
    names = set() if asks_for_absence(node) else names_of(node)
    return {rarest(names, counts)} if names else set()


def rarest(names: set[str], counts: Mapping[str, int]) -> str:
    """Return the name with the smallest count, the first of equal ones by the alphabet."""
    return min(names, key=lambda name: (counts.get(name, 0), name))


def holds(nodes: tuple[Node, ...], attributes: Attributes) -> bool:
    """Tell whether every node holds; what follows the first that does not is left out."""
    for node in nodes:  # noqa: SIM110 - all() costs more than the work
        if node.truth(attributes) is not True:
            return False
    return True
