"""What is gone, on the picture of an overlay: dead brokers and cut links.

A dead broker is grey and crossed out, and its links are faint; a cut link has a gap between two
strokes. So nothing is told by colour alone here, either.
"""

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.path import Path

from octopis.core.model import BrokerId
from octopis.explain.arrows import CROSS, paint_cross, points_along
from octopis.explain.layout import shown_label
from octopis.explain.overlay_picture import INK, Z_LINK, Canvas, broker_shape, curve_path
from octopis.explain.question import Question

_DEAD_FILL, _DEAD_INK = "#dfe3e7", "#7b8590"
_FAINT = "#b4bcc5"
_Z_DEAD = 3.5
"""Above brokers, whose shapes and labels it covers."""
_GAP, _STROKE = 0.06, 0.09
"""Half of a cut link's gap, and how far its strokes go to each side."""


def paint_faults(canvas: Canvas, question: Question) -> None:
    """Show which brokers are dead and which links are cut."""
    for one, other in question.down:
        link = canvas.links[frozenset((one, other))]
        link.set(edgecolor=_FAINT, linewidth=0.9, alpha=1.0)
        if not question.dead & {one, other}:
            link.set(linewidth=1.7)
            link.set_path(_parted(canvas, curve_path(canvas.layout.curve(one, other))))
    for broker in sorted(question.dead):
        _paint_dead(canvas, broker, is_inner=question.scot.is_inner(broker))


def fault_handles(question: Question) -> list[Artist]:
    """Return the entries of a legend for what is gone."""
    handles: list[Artist] = []
    if question.dead:
        handles.append(
            Line2D([], [], ls="", marker="X", ms=11, mfc=CROSS, mec="white", label="a dead broker")
        )
    if question.cut:
        look: dict[str, Any] = {
            "color": _FAINT,
            "lw": 1.7,
            "marker": "$//$",
            "ms": 11,
            "mfc": INK,
            "mec": INK,
        }
        handles.append(Line2D([0, 1, 2], [0, 0, 0], markevery=[1], label="a cut link", **look))
    return handles


def _paint_dead(canvas: Canvas, broker: BrokerId, *, is_inner: bool) -> None:
    layout, axes = canvas.layout, canvas.axes
    x, y = layout.positions[broker]
    shape = broker_shape(layout, x, y, is_inner=is_inner)
    shape.set(facecolor=_DEAD_FILL, edgecolor=_DEAD_INK, zorder=_Z_DEAD)
    axes.add_patch(shape)
    paint_cross(axes, (x, y), (layout.broker_width * 0.42, layout.broker_height * 0.42), _Z_DEAD)
    axes.text(
        x,
        y,
        shown_label(broker),
        ha="center",
        va="center_baseline",
        fontsize=10.5,
        color=INK,
        zorder=_Z_DEAD,
        parse_math=False,
        bbox={"boxstyle": "square,pad=0.05", "fc": _DEAD_FILL, "ec": "none", "alpha": 0.75},
    )


def _parted(canvas: Canvas, path: Path) -> Path:
    """Return a link with a gap in its middle, and paint strokes across its two ends."""
    points = points_along(path)
    away = np.hypot(*(points - points[len(points) // 2]).T)
    first, last = np.flatnonzero(away < _GAP)[[0, -1]]
    for end, before in ((points[first], points[first - 1]), (points[last], points[last - 1])):
        along = (end - before) / np.hypot(*(end - before))
        # A little slanted, as such strokes are drawn by hand.
        stroke = _STROKE * (np.array((-along[1], along[0])) + 0.5 * along)
        (x, y), (end_x, end_y) = end - stroke, end + stroke
        canvas.axes.plot([x, end_x], [y, end_y], color=INK, lw=1.8, zorder=Z_LINK)
    return Path.make_compound_path(Path(points[: first + 1]), Path(points[last:]))
