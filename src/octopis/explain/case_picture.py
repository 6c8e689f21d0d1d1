"""The table of dynamic routing's cases as a picture: each row with what a broker then does.

The sketches are not drawn from memory: an overlay is brought into the state that the row is for,
and its broker is asked.
"""

import textwrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle

from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.algorithms.dnr import CASES
from octopis.explain.arrows import (
    CARRIES_CBV_P,
    arrow_handles,
    paint_copy,
    paint_label,
    paint_overloaded,
    straight_path,
)
from octopis.explain.cases import ABOVE, BELOW, BESIDE, COLUMNS, HOST, question_for, rows
from octopis.explain.explainer import explain
from octopis.explain.explanation import RouteExplanation
from octopis.explain.overlay_picture import BAND_SHADES, INK, INNER_FILL, Z_BAND, Z_BROKER

_ROW_HEIGHT = 1.75
_HEADER_HEIGHT, _MARGIN_TOP, _MARGIN_BOTTOM = 0.75, 0.7, 0.6
_COLUMN_CENTRES = (0.7, 1.95, 3.25, 4.65, 8.75)
_SKETCH_X = 6.3
_WIDTH = 10.3
_ICOL_LENGTH, _ACOL_LENGTH = 0.72, 0.85
_CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10.5, "color": INK}


def paint_cases() -> Figure:
    """Return the picture of the table."""
    height = _MARGIN_TOP + _HEADER_HEIGHT + _ROW_HEIGHT * len(CASES) + _MARGIN_BOTTOM
    figure = Figure(figsize=(_WIDTH, height), facecolor="white")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(-height, 0)
    title = "Dynamic routing at one broker: the first row that fits is taken"
    axes.text(_WIDTH / 2, -0.38, title, ha="center", fontsize=15, fontweight="bold", color=INK)
    header_y = -_MARGIN_TOP - _HEADER_HEIGHT / 2
    _paint_words(axes, COLUMNS, header_y, bold=True)
    axes.text(
        _SKETCH_X, header_y, "what a broker\nof cluster 1 does", **_CENTRED, fontweight="bold"
    )
    for number, (case, words) in enumerate(zip(CASES, rows(), strict=True)):
        top = -_MARGIN_TOP - _HEADER_HEIGHT - number * _ROW_HEIGHT
        shade = BAND_SHADES[number % 2]
        axes.add_patch(
            Rectangle(
                (0.2, top - _ROW_HEIGHT), _WIDTH - 0.4, _ROW_HEIGHT, color=shade, zorder=Z_BAND
            )
        )
        _paint_words(axes, words, top - _ROW_HEIGHT / 2)
        _paint_sketch(axes, explain(question_for(case), Algorithm.DNR), top - _ROW_HEIGHT / 2)
    axes.legend(
        handles=arrow_handles(overloaded=True, special=CARRIES_CBV_P),
        loc="center",
        bbox_to_anchor=(_WIDTH / 2, -height + _MARGIN_BOTTOM / 2),
        bbox_transform=axes.transData,
        ncols=4,
        frameon=False,
        fontsize=9.5,
        labelcolor=INK,
        handlelength=2.6,
    )
    return figure


def _paint_words(axes: Axes, words: tuple[str, ...], y: float, *, bold: bool = False) -> None:
    for x, text in zip(_COLUMN_CENTRES, words, strict=True):
        width = 26 if x == _COLUMN_CENTRES[-1] else 15
        axes.text(
            x,
            y,
            textwrap.fill(text, width),
            fontweight="bold" if bold or x == _COLUMN_CENTRES[0] else "normal",
            **_CENTRED,
        )


def _paint_sketch(axes: Axes, explanation: RouteExplanation, y: float) -> None:
    x, gap = _SKETCH_X, 0.2
    paths = {
        ABOVE: straight_path((x, y + gap), (x, y + _ICOL_LENGTH)),
        BELOW: straight_path((x, y - gap), (x, y - _ICOL_LENGTH)),
        BESIDE: straight_path((x + gap, y), (x + _ACOL_LENGTH, y)),
    }
    for _, target in sorted(explanation.question.overloaded):
        paint_overloaded(axes, paths[target])
    for hop in explanation.hops:
        if hop.after is None:
            paint_copy(axes, paths[hop.target], hop.kind, carrying=bool(hop.cbv_p))
            paint_label(axes, paths[hop.target], explanation.bits(hop), _ROW_HEIGHT)
    for target, aside in ((ABOVE, 0.5), (HOST, 0.0), (BELOW, -0.5)):
        axes.text(x - 0.42, y + aside, f"$C_{target.cluster}$", **_CENTRED)
    host = Ellipse((x, y), 0.36, 0.36, facecolor=INNER_FILL, edgecolor=INK, zorder=Z_BROKER)
    axes.add_patch(host)
