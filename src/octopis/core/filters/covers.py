"""Whether one filter asks for everything that another asks for.

`covers(f, g)` is sound: it says True only where every notification that matches g matches f. It is
complete for conjunctions of intervals, equalities, IN-sets and prefixes; for others it may say
False where the truth is True.
"""

from octopis.core.filters.filter import Filter
from octopis.core.filters.terms import ComparisonTerm, LikeTerm, PresenceTerm, Term, ValueTerm
from octopis.core.filters.tree import Conjunction, to_conjunctions


def covers(wide: Filter, narrow: Filter) -> bool:
    """Tell whether everything that matches `narrow` surely matches `wide`."""
    if wide == narrow:
        return True
    wide_parts, narrow_parts = to_conjunctions(wide.tree), to_conjunctions(narrow.tree)
    if wide_parts is None or narrow_parts is None:
        return False
    return all(
        _is_impossible(part) or any(_implies_all(part, terms) for terms in wide_parts)
        for part in narrow_parts
    )


def _implies_all(part: Conjunction, terms: Conjunction) -> bool:
    return all(any(_implies(known, term) for known in part) for term in terms)


def _implies(known: Term, term: Term) -> bool:
    """Tell whether `term` is TRUE wherever `known` is."""
    if known == term:
        return True
    if isinstance(term, PresenceTerm):
        return term.present and term.attribute in _needed(known)
    if not isinstance(known, ValueTerm | LikeTerm) or isinstance(term, ComparisonTerm):
        return False
    if known.attribute != term.attribute:
        return False
    if isinstance(term, ValueTerm):
        return isinstance(known, ValueTerm) and known.values.is_subset(term.values)
    points = known.values.points() if isinstance(known, ValueTerm) else None
    return points is not None and all(
        isinstance(point, str) and term.pattern.matches(point) is not term.negated
        for point in points
    )


def _needed(term: Term) -> set[str]:
    """Return the attributes that must be there for `term` to be TRUE."""
    if isinstance(term, ComparisonTerm):
        return term.left.names() | term.right.names()
    if isinstance(term, PresenceTerm) and not term.present:
        return set()
    return {term.attribute}


def _is_impossible(part: Conjunction) -> bool:
    """Tell whether the terms plainly cannot all be TRUE: then they are covered by anything."""
    needed = {name for term in part for name in _needed(term)}
    kinds: dict[str, object] = {}
    for term in part:
        if isinstance(term, PresenceTerm) and not term.present and term.attribute in needed:
            return True
        if isinstance(term, ValueTerm):
            if term.values.is_empty():
                return True
            if kinds.setdefault(term.attribute, term.values.kind) is not term.values.kind:
                return True
    return False
