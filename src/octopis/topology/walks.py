"""Walks over a graph that is given as the neighbours of each vertex."""

from collections import deque
from collections.abc import Mapping, Sequence

Neighbours = Mapping[str, Sequence[str]]


def distances_from(source: str, neighbours: Neighbours) -> dict[str, int]:
    """Return how many edges away from `source` each vertex is that can be reached from it."""
    distances = {source: 0}
    waiting = deque([source])
    while waiting:
        vertex = waiting.popleft()
        for neighbour in neighbours[vertex]:
            if neighbour not in distances:
                distances[neighbour] = distances[vertex] + 1
                waiting.append(neighbour)
    return distances


def find_cycle(neighbours: Neighbours) -> tuple[str, ...] | None:
    """Return the vertices of a cycle in their order, or None where there is no cycle.

    The graph has no self-loop and no doubled edge: those would pass for no cycle here.
    """
    parents: dict[str, str | None] = {}
    for root in neighbours:
        if root not in parents:
            cycle = _find_cycle_around(root, neighbours, parents)
            if cycle:
                return cycle
    return None


def _find_cycle_around(
    root: str, neighbours: Neighbours, parents: dict[str, str | None]
) -> tuple[str, ...] | None:
    parents[root] = None
    waiting = deque([root])
    while waiting:
        vertex = waiting.popleft()
        for neighbour in neighbours[vertex]:
            if neighbour == parents[vertex]:
                continue
            if neighbour in parents:
                return _join(_way_to_root(vertex, parents), _way_to_root(neighbour, parents))
            parents[neighbour] = vertex
            waiting.append(neighbour)
    return None


def _way_to_root(vertex: str, parents: Mapping[str, str | None]) -> list[str]:
    way = [vertex]
    while (parent := parents[way[-1]]) is not None:
        way.append(parent)
    return way


def _join(one: list[str], other: list[str]) -> tuple[str, ...]:
    """Return the cycle that an edge between the starts of two ways to the same root closes."""
    on_one = set(one)
    meeting = next(vertex for vertex in other if vertex in on_one)
    down = one[: one.index(meeting) + 1][::-1]
    up = other[: other.index(meeting)]
    return (*down, *up)
