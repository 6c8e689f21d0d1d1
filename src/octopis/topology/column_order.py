"""In which order a picture shows the regions, so that neighbours stand near each other.

The tree is laid out from its middle. On both sides of a region stand the parts of the tree
that hang on it, the smallest next to it and the largest outermost, each part in one piece:

    i vi xi   ii vii xii   iii viii xiii   iv ix xiv   v x xv

Since every part is in one piece, links that are drawn as arcs above a row never cross.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from octopis.topology.factors import AcyclicFactor


class _Part(NamedTuple):
    """What hangs on `parent` by `top`; its largest piece goes to its outer side."""

    top: str
    parent: str | None
    outer_is_left: bool


def column_order(tree: AcyclicFactor) -> tuple[str, ...]:
    """Return the regions from left to right."""
    middle = _middle(tree)
    sizes = _part_sizes(tree, middle)
    order: list[str] = []
    # A stack of parts still to be laid out and of regions that only have to be written down.
    waiting: list[_Part | str] = [_Part(middle, None, outer_is_left=False)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            order.append(item)
            continue
        hanging = [vertex for vertex in tree.neighbours(item.top) if vertex != item.parent]
        left, right = _two_sides(hanging, sizes, outer_is_left=item.outer_is_left)
        waiting += [_Part(vertex, item.top, outer_is_left=False) for vertex in reversed(right)]
        waiting.append(item.top)
        waiting += [_Part(vertex, item.top, outer_is_left=True) for vertex in reversed(left)]
    return tuple(order)


def _middle(tree: AcyclicFactor) -> str:
    one, other = map(tree.distances, tree.longest_path_ends)
    return min(tree.vertices, key=lambda vertex: max(one[vertex], other[vertex]))


def _part_sizes(tree: AcyclicFactor, middle: str) -> dict[str, int]:
    """Return for each vertex how many hang on it, seen from the middle, itself included."""
    depth = tree.distances(middle)
    sizes = dict.fromkeys(tree.vertices, 1)
    for vertex in sorted(tree.vertices, key=lambda vertex: -depth[vertex]):
        for neighbour in tree.neighbours(vertex):
            if depth[neighbour] < depth[vertex]:
                sizes[neighbour] += sizes[vertex]
    return sizes


def _two_sides(
    vertices: Sequence[str], sizes: Mapping[str, int], *, outer_is_left: bool
) -> tuple[list[str], list[str]]:
    """Deal the parts out by size, the outer side first; equal ones keep their order."""
    left: list[str] = []
    right: list[str] = []
    dealt = 0
    by_size = sorted(vertices, key=lambda vertex: -sizes[vertex])
    for _, equals in groupby(by_size, key=lambda vertex: sizes[vertex]):
        group = list(equals)
        turns = range(dealt, dealt + len(group))
        to_the_left = sum((turn % 2 == 0) is outer_is_left for turn in turns)
        left = left + group[:to_the_left]
        right = group[to_the_left:] + right
        dealt += len(group)
    return left, right
