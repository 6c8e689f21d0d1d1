"""Where the parts of a picture stand: pure positions and curves, in inches.

Regions are columns and clusters are rows. An aCOL runs along its row, in an arc above the
brokers between its ends; an iCOL runs along its column, in a bow beside the brokers between
its ends. Arcs are nested and bows have lanes, so that no two links lie on each other.

The columns are ordered from the middle of the tree, so that neighbours stand near each other. On
both sides of a region stand the parts of the tree that hang on it, the smallest next to it and
the largest outermost, each part in one piece, so that arcs above a row never cross:

    i vi xi   ii vii xii   iii viii xiii   iv ix xiv   v x xv

Where there are too many columns for a page they go on in a further *strip* below, as words do in
the next line. An aCOL that leaves a strip on the right then comes back on the left of the next.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from math import ceil
from typing import NamedTuple

from octopis.core.model import BrokerId
from octopis.core.topology.factors import AcyclicFactor
from octopis.core.topology.scot import SCOT
from octopis.errors import InvalidInput

Point = tuple[float, float]
Curve = tuple[Point, ...]
"""A chain of cubic Bezier pieces: a point, then two control points and a point per piece."""

Span = tuple[int, int]
"""Two places in a row or column, the lower one first."""

DRAWN_BROKERS_MAX = 1_000
SIDE_MAX = 150.0
AREA_MAX = 2_000.0
REGION_LENGTH_MAX = 12

_CHARACTER_WIDTH = 0.085
_BROKER_WIDTH_MIN = 0.56
_BROKER_HEIGHT = 0.42
_LANE_START = 0.08
_LANE_WIDTH = 0.115
_COLUMN_GAP_MIN = 0.6
_ARC_HEIGHT = 0.2
_STRIP_GAP = 1.1
_OVERHANG = 0.12
_WIDTH_ENOUGH = 26.0
_WIDTH_TO_HEIGHT = 1.6
_ROW_GAP = 0.75


@dataclass(frozen=True)
class PictureLayout:
    """Centres of brokers and curves of links, with y growing upwards."""

    columns: tuple[str, ...]
    positions: Mapping[BrokerId, Point]
    curves: Mapping[tuple[BrokerId, BrokerId], Curve]
    broker_width: float
    broker_height: float
    column_width: float
    row_height: float
    strip_length: int
    """How many columns stand side by side; the next are in the strip below."""
    ties: Mapping[tuple[BrokerId, BrokerId], tuple[Curve, ...]]
    """The pieces of aCOLs that go on in another strip, from left to right."""

    @property
    def rows(self) -> int:
        """The number of clusters."""
        return len(self.positions) // len(self.columns)

    @property
    def strips(self) -> tuple[tuple[str, ...], ...]:
        """The regions of each strip."""
        starts = range(0, len(self.columns), self.strip_length)
        return tuple(self.columns[start : start + self.strip_length] for start in starts)

    @property
    def borders(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of everything."""
        left, right, _, top = self.strip_borders(0)
        return left, right, self.strip_borders(len(self.strips) - 1)[2], top

    def strip_borders(self, strip: int) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of a strip's grid of columns and rows."""
        left, height = -self.column_width / 2, self.rows * self.row_height
        top = self.row_height / 2 - strip * (height + _STRIP_GAP)
        right = left + len(self.strips[strip]) * self.column_width
        return left, right, top - height, top

    def pieces(self, source: BrokerId, target: BrokerId) -> tuple[Curve, ...]:
        """Return the curves of a link: one, but for an aCOL that goes on in another strip."""
        tie = self.ties.get((source, target))
        return tie if tie is not None else (self.curve(source, target),)

    def curve(self, source: BrokerId, target: BrokerId) -> Curve:
        """Return the curve of the link between two neighbours, from `source` to `target`."""
        if (source, target) in self.curves:
            return self.curves[source, target]
        return self.curves[target, source][::-1]


def lay_out(scot: SCOT, room: float = 0.0, *, wraps: bool = False) -> PictureLayout:
    """Return the layout of `scot`, or raise InvalidInput where the picture would be unreadable.

    `room` widens the gaps between brokers, for what is drawn beside them. With `wraps`, columns
    that are too many for a page go on in further strips, and no longer is every link one curve.
    """
    if len(scot.brokers) > DRAWN_BROKERS_MAX:
        raise InvalidInput(
            f"{len(scot.brokers):,} brokers are too many to draw; "
            f"at most {DRAWN_BROKERS_MAX:,} can be read"
        )
    return _Plotter(scot, room, wraps=wraps).layout()


def shown_region(region: str) -> str:
    """Return the label of a region, cut short where it is very long."""
    if len(region) <= REGION_LENGTH_MAX:
        return region
    return region[: REGION_LENGTH_MAX - 1] + "…"


def shown_label(broker: BrokerId) -> str:
    """Return the label of a broker, as in `b,2`."""
    return f"{shown_region(broker.region)},{broker.cluster}"


class _Plotter:
    """The measures of one picture, from which its positions and curves follow."""

    def __init__(self, scot: SCOT, room: float, *, wraps: bool) -> None:
        self.scot = scot
        self.columns = column_order(scot.acyclic)
        self.column_of = {region: column for column, region in enumerate(self.columns)}
        self.arcs = arc_levels(self._columns_of(*edge) for edge in scot.acyclic.edges)
        self.bows = bow_lanes(len(scot.clusters))
        longest_label = max(len(shown_label(broker)) for broker in scot.brokers)
        self.broker_width = max(_BROKER_WIDTH_MIN, _CHARACTER_WIDTH * longest_label + 0.16)
        lanes = max((abs(lane) for lane in self.bows.values()), default=0)
        lanes_width = 2 * (_LANE_START + _LANE_WIDTH * (lanes + 0.5))
        self.column_width = self.broker_width + max(_COLUMN_GAP_MIN, lanes_width) + room
        arcs_height = _ARC_HEIGHT * max(self.arcs.values(), default=0)
        self.row_height = _BROKER_HEIGHT + _ROW_GAP + arcs_height + room
        self.strip_height = len(scot.clusters) * self.row_height + _STRIP_GAP
        self.strip_length = self._strip_length() if wraps else len(self.columns)

    def _strip_length(self) -> int:
        """Return how many columns a strip has: as few strips as make a page, not a ribbon."""
        strips = 1
        while True:
            length = ceil(len(self.columns) / strips)
            width, height = length * self.column_width, strips * self.strip_height
            if length == 1 or width <= max(_WIDTH_ENOUGH, _WIDTH_TO_HEIGHT * height):
                return length
            strips += 1

    def layout(self) -> PictureLayout:
        self._check_size()
        return PictureLayout(
            self.columns,
            {broker: self._position(broker) for broker in self.scot.brokers},
            dict(self._curves()),
            self.broker_width,
            _BROKER_HEIGHT,
            self.column_width,
            self.row_height,
            self.strip_length,
            {
                (source, target): tuple(self._tie(source, target))
                for source, target, _ in self.scot.acols
                if self._is_tie(source, target)
            },
        )

    def _check_size(self) -> None:
        width = self.strip_length * self.column_width
        strips = ceil(len(self.columns) / self.strip_length)
        height = strips * self.strip_height - _STRIP_GAP
        if max(width, height) > SIDE_MAX or width * height > AREA_MAX:
            raise InvalidInput(
                f"the picture of {len(self.scot.regions):,} regions x "
                f"{len(self.scot.clusters):,} clusters would be {width:,.0f} x {height:,.0f} "
                f"inches, too large to be read"
            )

    def _columns_of(self, one: str, other: str) -> Span:
        first, second = sorted((self.column_of[one], self.column_of[other]))
        return first, second

    def _position(self, broker: BrokerId) -> Point:
        strip, place = divmod(self.column_of[broker.region], self.strip_length)
        return place * self.column_width, self._row_of(strip, broker.cluster)

    def _row_of(self, strip: int, cluster: int) -> float:
        return -strip * self.strip_height - cluster * self.row_height

    def _is_tie(self, source: BrokerId, target: BrokerId) -> bool:
        one, other = (self.column_of[each.region] for each in (source, target))
        return one // self.strip_length != other // self.strip_length

    def _tie(self, source: BrokerId, target: BrokerId) -> Iterator[Curve]:
        """Yield an aCOL piece by piece: out on the right, through the strips between, and in."""
        first, last = sorted((source, target), key=lambda each: self.column_of[each.region])
        strips = [self.column_of[each.region] // self.strip_length for each in (first, last)]
        level = self.arcs[self._columns_of(source.region, target.region)]
        height = _BROKER_HEIGHT / 2 + _ARC_HEIGHT * level if level else 0.0
        left = -self.column_width / 2 - _OVERHANG
        right = (self.strip_length - 0.5) * self.column_width + _OVERHANG
        yield self._out(self._position(first), right, height)
        for strip in range(strips[0] + 1, strips[1]):
            y = self._row_of(strip, source.cluster) + height
            yield _straight((left, y), (right, y))
        yield self._out(self._position(last), left, height)[::-1]

    def _out(self, start: Point, border: float, height: float) -> Curve:
        """Return the curve of an aCOL from a broker to the border of its strip."""
        (x, y), away = start, border - start[0]
        step = min(self.column_width, abs(away)) * (1 if away > 0 else -1)
        up = (x + step, y + height)
        rise = (x + 0.2 * step, y + 0.8 * height), (x + 0.55 * step, y + height)
        return (start, *rise, *_straight(up, (border, y + height)))

    def _curves(self) -> Iterator[tuple[tuple[BrokerId, BrokerId], Curve]]:
        for source, target, _ in self.scot.acols:
            if not self._is_tie(source, target):
                yield (source, target), self._acol(source, target)
        for source, target, _ in self.scot.icols:
            yield (source, target), self._icol(source, target)

    def _acol(self, source: BrokerId, target: BrokerId) -> Curve:
        start, end = self._position(source), self._position(target)
        level = self.arcs[self._columns_of(source.region, target.region)]
        if level == 0:
            return _straight(start, end)
        step = self.column_width if start < end else -self.column_width
        height = _BROKER_HEIGHT / 2 + _ARC_HEIGHT * level
        return _bridge(start, end, (step, 0), (0, height), lean=(0.2, 0.8))

    def _icol(self, source: BrokerId, target: BrokerId) -> Curve:
        start, end = self._position(source), self._position(target)
        lane = self.bows[source.cluster, target.cluster]
        if lane == 0:
            return _straight(start, end)
        out = self.broker_width / 2 + _LANE_START + _LANE_WIDTH * abs(lane)
        side = out if lane > 0 else -out
        return _bridge(start, end, (0, -self.row_height), (side, 0), lean=(0.28, 0.68))


def _straight(start: Point, end: Point) -> Curve:
    return start, _between(start, end, 1 / 3), _between(start, end, 2 / 3), end


def _bridge(start: Point, end: Point, step: Point, out: Point, lean: Point) -> Curve:
    """Return a curve that is `out` of the line after one `step` and comes back in the last one.

    `lean` says how it leaves its ends, in parts of `step` and of `out`: arcs and bows leave
    at angles of their own, so that they are told apart where they meet at a broker.
    """
    forth, sideways = lean
    return (
        start,
        _moved(start, step, forth, out, sideways),
        _moved(start, step, 0.55, out, 1),
        *_straight(_moved(start, step, 1, out, 1), _moved(end, step, -1, out, 1)),
        _moved(end, step, -0.55, out, 1),
        _moved(end, step, -forth, out, sideways),
        end,
    )


def _between(start: Point, end: Point, part: float) -> Point:
    return start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part


def _moved(point: Point, step: Point, steps: float, out: Point, part: float) -> Point:
    return (
        point[0] + step[0] * steps + out[0] * part,
        point[1] + step[1] * steps + out[1] * part,
    )


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
