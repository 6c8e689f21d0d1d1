"""Which links of a row or column run straight, and how far out the others must go."""

from collections.abc import Iterable
from itertools import combinations

Span = tuple[int, int]
"""Two places in a row or column, the lower one first."""


def arc_levels(spans: Iterable[Span]) -> dict[Span, int]:
    """Return how high each link of a row must arch: 0 is straight, n passes over level n - 1.

    Neighbouring places are joined straight. The spans must not cross one another.
    """
    levels: dict[Span, int] = {}
    for start, end in sorted(spans, key=_length):
        below = (level for (left, right), level in levels.items() if start <= left and right <= end)
        levels[start, end] = 0 if end - start == 1 else 1 + max(below, default=0)
    return levels


def bow_lanes(places: int) -> dict[Span, int]:
    """Return the lane of each link between all `places` of a column.

    0 is straight, -1, -2, ... are lanes further and further to the left, 1, 2, ... to the
    right. No two links that pass the same place share a lane. Each link takes the side on
    which it crosses fewer others.
    """
    lanes: dict[Span, int] = {}
    for span in sorted(combinations(range(places), 2), key=_length):
        if _length(span) == 1:
            lanes[span] = 0
            continue
        left = [other for other, lane in lanes.items() if lane < 0]
        right = [other for other, lane in lanes.items() if lane > 0]
        if _burden(span, left) <= _burden(span, right):
            lanes[span] = min((lanes[o] for o in left if _overlap(span, o)), default=0) - 1
        else:
            lanes[span] = max((lanes[o] for o in right if _overlap(span, o)), default=0) + 1
    return lanes


def _burden(span: Span, others: list[Span]) -> tuple[int, int]:
    """Return what speaks against a side: crossings first, then how full it is."""
    return sum(_cross(span, other) for other in others), len(others)


def _cross(one: Span, other: Span) -> bool:
    first, second = sorted((one, other))
    return first[0] < second[0] < first[1] < second[1]


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _length(span: Span) -> int:
    return span[1] - span[0]
