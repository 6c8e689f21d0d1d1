"""Whether one filter asks for everything that another asks for.

`covers(f, g)` is sound: it says True only where every notification that matches g matches f. It is
complete for conjunctions of intervals, equalities, IN-sets and prefixes, and finds patterns inside
patterns ('%jeff%' covers 'jeff%'); for others it may say False where the truth is True.
"""

from collections.abc import Iterator
from itertools import takewhile

from octopis.core.filters.filter import Filter
from octopis.core.filters.like import LikePattern, Wildcard, pattern_of
from octopis.core.filters.operands import Arithmetic
from octopis.core.filters.print_sql import prefix_of
from octopis.core.filters.terms import ComparisonTerm, LikeTerm, PresenceTerm, Term, ValueTerm
from octopis.core.filters.tree import Conjunction, to_conjunctions
from octopis.core.filters.values import (
    Interval,
    Kind,
    ValueSet,
    intersection,
    point_of,
    with_prefix,
)

_CONJUNCTIONS_MAX = 10_000
"""IN-sets of several kinds are ORs, and multiply: eight of three kinds each make 6,561."""


def covers(wide: Filter, narrow: Filter) -> bool:
    """Tell whether everything that matches `narrow` surely matches `wide`."""
    if wide == narrow:
        return True
    wide_parts = to_conjunctions(wide.tree, _CONJUNCTIONS_MAX)
    narrow_parts = to_conjunctions(narrow.tree, _CONJUNCTIONS_MAX)
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
    if isinstance(term, LikeTerm):
        return _implies_like(known, term)
    return _known_values(known).is_subset(term.values)


def _known_values(known: ValueTerm | LikeTerm) -> ValueSet:
    """Return values among which the attribute surely has one where `known` is TRUE."""
    if isinstance(known, ValueTerm):
        return known.values
    return with_prefix("" if known.negated else known.pattern.prefix)


def _implies_like(known: ValueTerm | LikeTerm, term: LikeTerm) -> bool:
    """Tell whether every text that `known` leaves matches the pattern, or (negated) none does."""
    if _known_values(known).kind is not Kind.TEXT:
        return False
    if isinstance(known, LikeTerm) and known.negated is term.negated:
        wide, narrow = known.pattern, term.pattern
        return wide.includes(narrow) if term.negated else narrow.includes(wide)
    if term.negated:
        apart = [_known_values(known), with_prefix(term.pattern.prefix)]
        return intersection(apart).is_empty() or _are_none(known, term.pattern)
    if isinstance(known, LikeTerm):
        return False
    return all(term.pattern.includes(_around(interval)) for interval in known.values.intervals())


def _are_none(known: ValueTerm | LikeTerm, pattern: LikePattern) -> bool:
    """Tell whether `known` leaves only single texts, none of which matches."""
    points = known.values.points() if isinstance(known, ValueTerm) else None
    return points is not None and not any(pattern.matches(str(point)) for point in points)


def _around(interval: Interval) -> LikePattern:
    """Return a pattern that matches every text of the interval, as narrow as a prefix can be."""
    point = point_of(interval)
    if point is not None:
        return pattern_of([str(point)])
    low, high = interval
    prefix = prefix_of(interval)
    if prefix is None:  # all between two texts starts as both do
        ends = zip(str(low[0]), str(high[0]), strict=False) if low and high else ()
        prefix = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    return pattern_of([prefix, Wildcard.MANY])


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
    kinds: dict[str, Kind] = {}
    for term in part:
        if isinstance(term, PresenceTerm):
            if not term.present and term.attribute in needed:
                return True
        elif isinstance(term, ComparisonTerm):
            if _is_never_true(term):
                return True
        elif isinstance(term, ValueTerm) and term.values.is_empty():
            return True
        for name, kind in _kinds_asked_for(term):
            if kinds.setdefault(name, kind) is not kind:
                return True
    return any(
        _implies(known, term.opposite())
        for known in part
        if isinstance(known, ValueTerm | LikeTerm)
        for term in part
        if isinstance(term, LikeTerm)
    )


def _is_never_true(term: ComparisonTerm) -> bool:
    if term.left == term.right:
        return term.comparator in ("<>", "<")
    return any(not side.names() and side.value({}) is None for side in (term.left, term.right))


def _kinds_asked_for(term: Term) -> Iterator[tuple[str, Kind]]:
    """Yield attributes with the kind that they must be of for `term` to be TRUE."""
    if isinstance(term, ComparisonTerm):
        for side in (term.left, term.right):
            if isinstance(side, Arithmetic):
                yield from ((name, Kind.NUMBER) for name in side.names())
    elif isinstance(term, LikeTerm):
        yield term.attribute, Kind.TEXT
    elif isinstance(term, ValueTerm):
        yield term.attribute, term.values.kind
