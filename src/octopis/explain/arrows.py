"""The geometry of arrows along the links of a layout: pure positions, in inches."""

from collections.abc import Sequence
from math import hypot

from octopis.core.model import BrokerId
from octopis.core.topology import SCOT
from octopis.explain.layout import Curve, PictureLayout, Point

Line = list[Point]

_STEPS = 100
_CLEARANCE = 0.02
_SAME = 1e-6
_BROKER_SHARE = 0.2  # of a row; lines end at the borders of brokers


def arrow_line(
    scot: SCOT, layout: PictureLayout, source: BrokerId, target: BrokerId, aside: float = 0.0
) -> Line:
    """Return the line of an arrow from border to border of two neighbours, along their link.

    `aside` moves it to the left of its direction, so that several arrows can share a link.
    """
    line = _shifted(_sampled(layout.curve(source, target)), aside)
    return [
        point
        for point in line
        if not _covers(scot, layout, source, point) and not _covers(scot, layout, target, point)
    ]


def straight_line(start: Point, end: Point) -> Line:
    """Return a straight line between two points."""
    return _sampled((start, start, end, end))


def label_place(line: Line, distance: float, row_height: float) -> tuple[Point, str, str]:
    """Return where the label of a line stands: its point, and its two alignments.

    Above a line that runs along a row. Beside one that runs along a column, between two rows and
    so clear of what stands there: to its right, unless it bows to the left.
    """
    start, end = line[0], line[-1]
    if abs(end[0] - start[0]) > abs(end[1] - start[1]):
        x, y = line[len(line) // 2]
        return (x, y + distance), "center", "bottom"
    rows = max(1, round(abs(end[1] - start[1]) / row_height + _BROKER_SHARE))
    height = start[1] + (end[1] - start[1]) * ((rows - 1) // 2 + 0.5) / rows
    x, y = min(line, key=lambda point: abs(point[1] - height))
    if x < (start[0] + end[0]) / 2 - 0.05:
        return (x - distance, y), "right", "center"
    return (x + distance, y), "left", "center"


def head(line: Line, length: float, width: float) -> Line:
    """Return the triangle at the end of a line."""
    (x, y), (u, v) = line[-1], _direction(_last_stretch(line, length))
    back = (x - u * length, y - v * length)
    half = width / 2
    return [
        (x, y),
        (back[0] - v * half, back[1] + u * half),
        (back[0] + v * half, back[1] - u * half),
    ]


def without_head(line: Line, length: float) -> Line:
    """Return a line that ends where its head begins."""
    end = line[-1]
    return [point for point in line if _distance(point, end) >= length * 0.8]


def _sampled(curve: Curve) -> Line:
    """Return points along a chain of cubic Bezier pieces, of which some may have no length."""
    line = [curve[0]]
    for first in range(0, len(curve) - 1, 3):
        piece = curve[first : first + 4]
        points = (_bezier(piece, step / _STEPS) for step in range(1, _STEPS + 1))
        line += [point for point in points if _distance(point, line[-1]) > _SAME]
    return line


def _bezier(piece: Sequence[Point], part: float) -> Point:
    rest = 1 - part
    weights = (rest**3, 3 * rest**2 * part, 3 * rest * part**2, part**3)
    x = sum(weight * point[0] for weight, point in zip(weights, piece, strict=True))
    y = sum(weight * point[1] for weight, point in zip(weights, piece, strict=True))
    # A straight line must be straight to the last digit, or it shows steps where it is drawn.
    return round(x, 6), round(y, 6)


def _shifted(line: Line, aside: float) -> Line:
    shifted = []
    for number, (x, y) in enumerate(line):
        u, v = _direction([line[max(0, number - 1)], line[min(len(line) - 1, number + 1)]])
        shifted.append((x - v * aside, y + u * aside))
    return shifted


def _covers(scot: SCOT, layout: PictureLayout, broker: BrokerId, point: Point) -> bool:
    """Tell whether the shape of a broker covers a point: an ellipse, or a box for edge brokers."""
    x, y = layout.positions[broker]
    across = abs(point[0] - x) / (layout.broker_width / 2 + _CLEARANCE)
    along = abs(point[1] - y) / (layout.broker_height / 2 + _CLEARANCE)
    return hypot(across, along) < 1 if scot.is_inner(broker) else max(across, along) < 1


def _last_stretch(line: Line, length: float) -> Line:
    before = [point for point in line if _distance(point, line[-1]) >= length]
    return [before[-1] if before else line[0], line[-1]]


def _direction(stretch: Line) -> Point:
    (start_x, start_y), (end_x, end_y) = stretch
    length = _distance(*stretch)
    assert length > 0, "a line has two ends"
    return (end_x - start_x) / length, (end_y - start_y) / length


def _distance(one: Point, other: Point) -> float:
    return hypot(one[0] - other[0], one[1] - other[1])
