"""Arrows along links, and their labels: how copies and overloaded links are drawn.

Nothing is told by colour alone: copies on iCOLs are dashed; copies that carry CBV_p, or that go
around, are thicker and have its bits, or their targets, beside them; the line of a copy that is
lost ends in a cross. All lengths are in inches, as in the layout.
"""

from collections.abc import Callable
from math import hypot
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.bezier import inside_circle, split_path_inout
from matplotlib.lines import Line2D
from matplotlib.patches import ArrowStyle, FancyArrowPatch, PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D
from numpy.typing import NDArray

from octopis.core.model import BrokerId
from octopis.core.topology import SCOT, LinkKind
from octopis.explain.layout import PictureLayout, Point
from octopis.explain.overlay_picture import Z_BAND, Z_BROKER, Z_LINK, Z_PATH, curve_path

PLAIN, CARRYING, OVERLOADED = "#111111", "#c00d2e", "#aab2bb"
CROSS = "#8f0d24"
CARRIES_CBV_P = "a copy that carries CBV_p, with its bits"
GOES_AROUND = "a copy that goes around"

_Dashes = str | tuple[float, tuple[float, float]]
_DASHES: dict[LinkKind, _Dashes] = {LinkKind.ACOL: "-", LinkKind.ICOL: (0.0, (3.2, 1.5))}


class _Measures(NamedTuple):
    """How thick an arrow is (in points, as Matplotlib has it), and its head (in inches)."""

    width: float
    head_length: float = 0.17
    head_width: float = 0.15


_MEASURES = {
    PLAIN: _Measures(1.9),
    CARRYING: _Measures(2.7),
    OVERLOADED: _Measures(8.0, head_length=0.3, head_width=0.27),
}
_POINTS = 72
_CLEARANCE = 0.02
_PRECISION = 0.001
_LABEL_DISTANCE = 0.15
_LOST_AT = 0.28
"""Where a lost copy ends, as a part of its link: clear of the gap of a cut one."""
_LOST_CROSS = 0.075


def straight_path(start: Point, end: Point) -> Path:
    """Return a straight path for an arrow."""
    return Path([start, end], [Path.MOVETO, Path.LINETO])


def link_path(
    scot: SCOT, layout: PictureLayout, source: BrokerId, target: BrokerId, aside: float = 0.0
) -> Path:
    """Return the path of an arrow from border to border of two neighbours, along their link.

    `aside` moves it to the left of its direction, so that several arrows can share a link.
    """
    path = curve_path(layout.curve(source, target))
    _, path = _split(path, lambda point: _covers(scot, layout, source, point))
    path, _ = _split(path, lambda point: _covers(scot, layout, target, point))
    (x, y), (end_x, end_y) = layout.positions[source], layout.positions[target]
    part = aside / hypot(end_x - x, end_y - y)
    return path.transformed(Affine2D().translate((y - end_y) * part, (end_x - x) * part))


def paint_overloaded(axes: Axes, path: Path) -> None:
    """Paint a broad arrow under a link that is overloaded in this direction."""
    _paint_arrow(axes, path, OVERLOADED, (Z_BAND + Z_LINK) / 2)


def paint_copy(axes: Axes, path: Path, kind: LinkKind, *, carrying: bool) -> None:
    """Paint an arrow for a copy on a link."""
    colour = CARRYING if carrying else PLAIN
    _paint_arrow(axes, path, colour, Z_PATH, _DASHES[kind])


def paint_lost(axes: Axes, path: Path, kind: LinkKind) -> None:
    """Paint a copy that is for a link that is down: it comes to nothing on the way."""
    points = points_along(path)
    taken = Path(points[: round(_LOST_AT * len(points))])
    style = {"edgecolor": PLAIN, "lw": _MEASURES[PLAIN].width, "linestyle": _DASHES[kind]}
    axes.add_patch(PathPatch(taken, fill=False, zorder=Z_PATH, **style))
    x, y = np.asarray(taken.vertices)[-1]
    paint_cross(axes, (x, y), (_LOST_CROSS, _LOST_CROSS), Z_PATH)


def paint_cross(axes: Axes, middle: Point, reach: tuple[float, float], zorder: float) -> None:
    """Paint a cross, which reaches so far to the sides, and up and down."""
    (x, y), (across, along) = middle, reach
    for slope in (along, -along):
        ends = [x - across, x + across], [y - slope, y + slope]
        axes.plot(*ends, color="white", lw=4.4, solid_capstyle="round", zorder=zorder)
        axes.plot(*ends, color=CROSS, lw=2.4, solid_capstyle="round", zorder=zorder)


def points_along(path: Path) -> NDArray[np.float64]:
    """Return points along a path from its start to its end, all equally far from each other."""
    line = _sampled(path)
    lengths = np.concatenate(([0.0], np.hypot(*np.diff(line, axis=0).T).cumsum()))
    places = np.linspace(0, lengths[-1], 201)
    return np.column_stack([np.interp(places, lengths, line[:, axis]) for axis in (0, 1)])


def paint_label(
    axes: Axes, path: Path, label: str, row_height: float, *, carrying: bool = True
) -> None:
    """Write what a copy carries beside its arrow: the bits of CBV_p, BIDs or targets."""
    if not label:
        return
    (x, y), across, along = label_place(path, row_height)
    axes.text(
        x,
        y,
        label,
        ha=across,
        va=along,
        fontsize=10,
        fontweight="bold",
        color=CARRYING if carrying else PLAIN,
        zorder=Z_BROKER,
        parse_math=False,
        bbox={"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none", "alpha": 0.6},
    )


def arrow_handles(
    *, overloaded: bool, carried: str = "", special: str = "", lost: bool = False
) -> list[Artist]:
    """Return the entries of a legend for copies and overloaded links.

    `carried` says what stands beside copies, `special` what the thicker ones are.
    """
    copy = f"a copy with {carried}" if carried else "a copy"
    entries = [(f"{copy} on an {kind.value}", PLAIN, _DASHES[kind]) for kind in LinkKind]
    if special:
        entries.append((special, CARRYING, "-"))
    if overloaded:
        entries.append(("overloaded in this direction", OVERLOADED, "-"))
    handles: list[Artist] = [
        Line2D([], [], color=colour, lw=_MEASURES[colour].width, ls=dashes, label=label)
        for label, colour, dashes in entries
    ]
    if lost:
        cross: dict[str, Any] = {"marker": "x", "ms": 8, "mew": 2.4, "mec": CROSS, "markevery": [1]}
        look = {"color": PLAIN, "lw": _MEASURES[PLAIN].width, **cross}
        handles.append(Line2D([0, 1], [0, 0], label="a copy that is lost", **look))
    return handles


def label_place(path: Path, row_height: float) -> tuple[Point, str, str]:
    """Return where the label of an arrow stands: its point, and its two alignments.

    Above an arrow that runs along a row. Beside one that runs along a column, between two rows
    and so clear of what stands there: to its right, unless it bows to the left.
    """
    line = _sampled(path)
    (x, y), (end_x, end_y) = line[0], line[-1]
    if abs(end_x - x) > abs(end_y - y):
        middle, top = (x + end_x) / 2, line[:, 1].max()
        return (middle, top + _LABEL_DISTANCE), "center", "bottom"
    rows = max(1, round(abs(end_y - y) / row_height + 0.2))  # brokers take a part of a row
    height = y + (end_y - y) * ((rows - 1) // 2 + 0.5) / rows
    beside = line[np.abs(line[:, 1] - height).argmin(), 0]
    if beside < (x + end_x) / 2 - 0.05:
        return (beside - _LABEL_DISTANCE, height), "right", "center"
    return (beside + _LABEL_DISTANCE, height), "left", "center"


def _paint_arrow(axes: Axes, path: Path, colour: str, zorder: float, dashes: _Dashes = "-") -> None:
    """Paint an arrow in two patches.

    In one, dashes would show along the border of the head, and a broad shaft beside its tip.
    """
    width, head_length, head_width = _MEASURES[colour]
    x, y = np.asarray(path.vertices)[-1]
    shaft, _ = _split(path, inside_circle(x, y, 0.8 * head_length))
    style = {"edgecolor": colour, "lw": width, "linestyle": dashes, "capstyle": "butt"}
    axes.add_patch(PathPatch(shaft, fill=False, zorder=zorder, **style))
    head = ArrowStyle(  # type: ignore[no-untyped-call]
        "-|>", head_length=_POINTS * head_length, head_width=_POINTS * head_width / 2
    )
    axes.add_patch(
        FancyArrowPatch(
            path=path, arrowstyle=head, mutation_scale=1, facecolor=colour, lw=0, zorder=zorder
        )
    )


def _sampled(path: Path) -> NDArray[np.float64]:
    steps = np.linspace(0, 1, 100)
    # Each piece comes with its code, which Matplotlib's types forget.
    return np.concatenate([piece[0](steps) for piece in path.iter_bezier()])  # type: ignore[index]


def _split(path: Path, inside: Callable[[Point], bool]) -> tuple[Path, Path]:
    """Cut a path in two where it comes into a shape or leaves it."""
    first, second = split_path_inout(path, inside, tolerance=_PRECISION)
    return first, second


def _covers(scot: SCOT, layout: PictureLayout, broker: BrokerId, point: Point) -> bool:
    """Tell whether the shape of a broker covers a point: an ellipse, or a box for edge brokers."""
    x, y = layout.positions[broker]
    across = abs(point[0] - x) / (layout.broker_width / 2 + _CLEARANCE)
    along = abs(point[1] - y) / (layout.broker_height / 2 + _CLEARANCE)
    return hypot(across, along) < 1 if scot.is_inner(broker) else max(across, along) < 1
