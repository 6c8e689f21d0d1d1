"""The two factors of a SCOT: a tree of regions and a complete graph of clusters.

What can be constructed has the acyclic, connectivity and index properties; everything else is
refused with an error that names the vertex or edge at fault.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import TypeVar

from octopis.core.model.broker_id import check_region_label
from octopis.core.model.suggestion import did_you_mean
from octopis.errors import (
    AmbiguousLabel,
    ConnectivityPropertyError,
    CycleFound,
    DoubledEdge,
    EmptyFactor,
    IndexPropertyError,
    NotConnected,
    SelfLoop,
    UnknownVertex,
)

_ACYCLIC = "acyclic factor"
_CONNECTIVITY = "connectivity factor"

_Vertex = TypeVar("_Vertex", str, int)
_Neighbours = Mapping[str, Sequence[str]]


@dataclass(frozen=True, init=False)
class AcyclicFactor:
    """A connected tree whose vertices are the regions, in the order in which they were given.

    Edges are kept in one canonical order, so that equal trees are equal however their edges
    were written.
    """

    vertices: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]

    def __init__(self, vertices: Iterable[str], edges: Iterable[tuple[str, str]] = ()) -> None:
        labels = tuple(vertices)
        _check_labels(labels)
        object.__setattr__(self, "vertices", labels)
        object.__setattr__(self, "edges", _in_order(_ACYCLIC, labels, edges))
        self._check_is_one_tree()

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str]]) -> "AcyclicFactor":
        """Return the tree with `edges`, its vertices in order of first appearance."""
        pairs = tuple(edges)
        return cls(dict.fromkeys(chain.from_iterable(pairs)), pairs)

    @classmethod
    def single(cls, vertex: str) -> "AcyclicFactor":
        """Return the smallest tree: one vertex and no edge."""
        return cls((vertex,))

    def __reduce__(self) -> tuple[type["AcyclicFactor"], tuple[object, object]]:
        """Pickle without what can be computed again."""
        return type(self), (self.vertices, self.edges)

    def neighbours(self, vertex: str) -> tuple[str, ...]:
        """Return the vertices that share an edge with `vertex`, in the order of the vertices."""
        return self._neighbours[vertex]

    def distances(self, source: str) -> Mapping[str, int]:
        """Return the number of edges from `source` to every vertex."""
        if source not in self._distances:
            self._distances[source] = distances_from(source, self._neighbours)
        return self._distances[source]

    def distance(self, source: str, target: str) -> int:
        """Return the number of edges between two vertices."""
        return self.distances(source)[target]

    @cached_property
    def longest_path_ends(self) -> tuple[str, str]:
        """The ends of one longest path."""
        # In a tree, a vertex farthest from anywhere is the end of a longest path.
        start = _farthest(self.distances(self.vertices[0]))
        return start, _farthest(self.distances(start))

    @cached_property
    def diameter(self) -> int:
        """The number of edges of a longest path."""
        return self.distance(*self.longest_path_ends)

    @cached_property
    def _neighbours(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {vertex: [] for vertex in self.vertices}
        for first, second in self.edges:
            found[first].append(second)
            found[second].append(first)
        return {vertex: tuple(neighbours) for vertex, neighbours in found.items()}

    @cached_property
    def _distances(self) -> dict[str, dict[str, int]]:
        """Filled source by source as they are asked for: all pairs would be quadratic."""
        return {}

    def _check_is_one_tree(self) -> None:
        cycle = find_cycle(self._neighbours)
        if cycle:
            raise CycleFound(cycle)
        start = self.vertices[0]
        reached = distances_from(start, self._neighbours)
        if len(reached) < len(self.vertices):
            raise NotConnected(start, tuple(v for v in self.vertices if v not in reached))


@dataclass(frozen=True)
class ConnectivityFactor:
    """A complete graph of `order` vertices, which are the cluster indexes from 0."""

    order: int

    def __post_init__(self) -> None:
        if not _is_integer(self.order):
            reason = f"the number of clusters must be an integer, not {self.order!r}"
            raise IndexPropertyError(self.order, reason)
        if self.order < 1:
            raise EmptyFactor(_CONNECTIVITY)

    @classmethod
    def complete(cls, order: int) -> "ConnectivityFactor":
        """Return the complete graph with the vertices 0 to `order` - 1."""
        return cls(order)

    @classmethod
    def from_edges(
        cls, vertices: Iterable[int], edges: Iterable[tuple[int, int]]
    ) -> "ConnectivityFactor":
        """Return the complete graph that is written out in full, or raise what it lacks."""
        indexes = tuple(vertices)
        _check_indexes(indexes)
        pairs = tuple(edges)
        for end in chain.from_iterable(pairs):
            _check_is_index(end)
        order = len(indexes)
        present = set(_in_order(_CONNECTIVITY, tuple(range(order)), pairs))
        missing = order * (order - 1) // 2 - len(present)
        if missing:
            first = next(pair for pair in combinations(range(order), 2) if pair not in present)
            raise ConnectivityPropertyError(first, missing)
        return cls(order)

    @property
    def vertices(self) -> range:
        """The cluster indexes."""
        return range(self.order)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Every pair of clusters, the lower index first."""
        return tuple(combinations(range(self.order), 2))

    @property
    def size(self) -> int:
        """The number of edges."""
        return self.order * (self.order - 1) // 2


def _check_labels(labels: tuple[str, ...]) -> None:
    if not labels:
        raise EmptyFactor(_ACYCLIC)
    seen = set()
    for label in labels:
        _check_is_text(label)
        check_region_label(label)
        if label in seen:
            raise AmbiguousLabel(label, "it stands twice among the vertices; keep one")
        seen.add(label)


def _check_is_text(label: object) -> None:
    if not isinstance(label, str):
        raise AmbiguousLabel(label, f"a label is text, not {type(label).__name__}")


def _check_indexes(indexes: tuple[int, ...]) -> None:
    if not indexes:
        raise EmptyFactor(_CONNECTIVITY)
    seen = set()
    for index in indexes:
        _check_is_index(index)
        if index in seen:
            raise IndexPropertyError(index, f"the cluster index {index} stands twice; keep one")
        seen.add(index)
    for expected in range(len(indexes)):
        if expected not in seen:
            last = len(indexes) - 1
            reason = f"cluster indexes must be 0 to {last} with no gap, but {expected} is missing"
            raise IndexPropertyError(expected, reason)


def _check_is_index(index: object) -> None:
    if not _is_integer(index):
        raise IndexPropertyError(index, f"cluster indexes must be integers, but one is {index!r}")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _in_order(
    factor: str, vertices: tuple[_Vertex, ...], edges: Iterable[tuple[_Vertex, _Vertex]]
) -> tuple[tuple[_Vertex, _Vertex], ...]:
    """Return `edges` with their ends and then themselves in the order of the vertices."""
    position = {vertex: place for place, vertex in enumerate(vertices)}
    seen: set[tuple[_Vertex, _Vertex]] = set()
    for first, second in edges:
        for vertex in (first, second):
            if vertex not in position:
                where = f"the edge {first!r} - {second!r} of the {factor}"
                raise UnknownVertex(vertex, where, did_you_mean(str(vertex), map(str, vertices)))
        if first == second:
            raise SelfLoop(factor, first)
        forward = position[first] < position[second]
        edge = (first, second) if forward else (second, first)
        if edge in seen:
            raise DoubledEdge(factor, (first, second))
        seen.add(edge)
    return tuple(sorted(seen, key=lambda edge: (position[edge[0]], position[edge[1]])))


def distances_from(source: str, neighbours: _Neighbours) -> dict[str, int]:
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


def find_cycle(neighbours: _Neighbours) -> tuple[str, ...] | None:
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
    root: str, neighbours: _Neighbours, parents: dict[str, str | None]
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


def _farthest(distances: Mapping[str, int]) -> str:
    return max(distances, key=lambda vertex: distances[vertex])
