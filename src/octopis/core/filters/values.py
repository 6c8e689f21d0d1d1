"""Sets of values of one kind, closed under AND, OR and NOT.

Every ordered comparison, equality, BETWEEN, IN and prefix on one attribute says that its value
lies in a union of intervals. A union of intervals is the places where one goes in or out:

    price < 5 OR price >= 9          begins inside; out before 5, in before 9

        inside      5     outside      9     inside
    ----------------|------------------|---------------->

So a set is `begins` (is it inside at the far left?) and its `cuts` in ascending order. A cut is
(value, side): side 0 lies just before the value, side 1 just after it. NOT flips `begins`.
"""

from bisect import bisect_right
from collections.abc import Iterable
from enum import Enum
from typing import NoReturn

import msgspec

from octopis.core.model import Value
from octopis.errors import InvalidNotification

Cut = tuple[Value, int]
Interval = tuple[Cut | None, Cut | None]
"""From cut to cut; None is the end of the line."""

_LAST_CHARACTER = "\U0010ffff"


class Kind(Enum):
    """What can be compared with what. Integers and floats are one kind, compared by value."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"

    __hash__ = object.__hash__  # members are single; Enum's own hash is slow


class _Kinds(dict[type, Kind]):
    def __missing__(self, kind: type) -> NoReturn:
        raise InvalidNotification(f"a value of type {kind.__name__} compares with nothing")


_KINDS = _Kinds(
    {int: Kind.NUMBER, float: Kind.NUMBER, str: Kind.TEXT, bool: Kind.BOOLEAN},
)


def kind_of(value: Value) -> Kind:
    """Return the kind of a value, or raise InvalidNotification for what is no plain value."""
    return _KINDS[type(value)]


class ValueSet(msgspec.Struct, frozen=True, gc=False):
    """A set of values of one kind, as the cuts where one goes in or out."""

    kind: Kind
    begins: bool
    cuts: tuple[Cut, ...]

    def __contains__(self, value: Value) -> bool:
        """Tell whether `value`, which is of this set's kind, lies in the set."""
        # (value, 0) sorts after a cut before it and ahead of a cut after it.
        return self.begins ^ (bisect_right(self.cuts, (value, 0)) & 1 == 1)

    def complement(self) -> "ValueSet":
        """Return all other values of the same kind."""
        return ValueSet(self.kind, not self.begins, self.cuts)

    def is_empty(self) -> bool:
        """Tell whether no value lies in the set."""
        return not self.begins and not self.cuts

    def is_subset(self, other: "ValueSet") -> bool:
        """Tell whether every value of this set lies in `other`."""
        return self.kind is other.kind and intersection([self, other.complement()]).is_empty()

    def intervals(self) -> list[Interval]:
        """Return the set as disjoint intervals in ascending order."""
        ends: list[Cut | None] = [None, *self.cuts] if self.begins else [*self.cuts]
        if len(ends) % 2:
            ends.append(None)
        return list(zip(ends[::2], ends[1::2], strict=True))

    def points(self) -> list[Value] | None:
        """Return the values if they are finitely many and single, else None."""
        if self.kind is Kind.BOOLEAN:
            return [value for value in (False, True) if value in self]
        points: list[Value] = []
        for interval in self.intervals():
            point = point_of(interval)
            if point is None:
                return None
            points.append(point)
        return points


def union(sets: list[ValueSet]) -> ValueSet:
    """Return what lies in any of `sets`, which are all of one kind."""
    return _in_at_least(1, sets)


def intersection(sets: list[ValueSet]) -> ValueSet:
    """Return what lies in all of `sets`, which are all of one kind."""
    return _in_at_least(len(sets), sets)


def _in_at_least(wanted: int, sets: list[ValueSet]) -> ValueSet:
    changes: dict[Cut, int] = {}
    for values in sets:
        step = -1 if values.begins else 1
        for cut in values.cuts:
            changes[cut] = changes.get(cut, 0) + step
            step = -step
    count = sum(values.begins for values in sets)
    begins = inside = count >= wanted
    cuts = []
    for cut in sorted(changes):
        count += changes[cut]
        if (count >= wanted) is not inside:
            inside = not inside
            cuts.append(cut)
    return ValueSet(sets[0].kind, begins, tuple(cuts))


def cut_before(value: Value) -> Cut:
    """Return the cut just before `value`."""
    return (value, 0)


def cut_after(value: Value) -> Cut:
    """Return the cut just after `value`.

    No text lies between 'ab' and 'ab' + NUL, so for text that is where the cut is put: then
    equal sets have equal cuts.
    """
    return (value + "\0", 0) if isinstance(value, str) else (value, 1)


def point_of(interval: Interval) -> Value | None:
    """Return the only value in the interval, None where there are more."""
    low, high = interval
    if low is None:
        return "" if high == ("\0", 0) else None  # no text lies before the empty text
    return low[0] if high == cut_after(low[0]) else None


def between(low: Cut | None, high: Cut | None, kind: Kind) -> ValueSet:
    """Return the values from cut `low` to cut `high`."""
    if low is not None and high is not None and low >= high:
        return ValueSet(kind, False, ())
    begins = low is None or low == ("", 0)  # no text lies before the empty text
    cuts = () if low is None or begins else (low,)
    if high is not None:
        if high == ("", 0):
            return ValueSet(kind, False, ())
        cuts = (*cuts, high)
    return ValueSet(kind, begins, cuts)


def below(value: Value) -> ValueSet:
    """Return the values < `value`."""
    return between(None, cut_before(value), kind_of(value))


def at_most(value: Value) -> ValueSet:
    """Return the values <= `value`."""
    return between(None, cut_after(value), kind_of(value))


def only(value: Value) -> ValueSet:
    """Return the set of just `value`."""
    if isinstance(value, bool):
        # Of two booleans one cut tells all: TRUE is what lies after it.
        return ValueSet(Kind.BOOLEAN, not value, ((True, 0),))
    return between(cut_before(value), cut_after(value), kind_of(value))


def any_of(values: Iterable[Value]) -> ValueSet:
    """Return the set of `values`, which are all of one kind and at least one."""
    return union([only(value) for value in values])


def with_prefix(prefix: str) -> ValueSet:
    """Return the texts that start with `prefix`."""
    end = prefix_end(prefix)
    return between(cut_before(prefix), cut_before(end) if end else None, Kind.TEXT)


def prefix_end(prefix: str) -> str:
    """Return the first text after all that start with `prefix`; "" where there is none."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    if not stem:
        return ""
    following = ord(stem[-1]) + 1
    if following == 0xD800:  # surrogates are not text
        following = 0xE000
    return stem[:-1] + chr(following)
