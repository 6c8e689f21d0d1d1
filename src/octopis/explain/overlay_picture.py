"""The picture of an overlay, in the manner of the paper's Figure 3.

Its layout is put on paper with Matplotlib: bands, links, brokers, labels, legend. Nothing is told
by colour alone: kinds of links differ in dashes, and kinds of brokers in shape.
"""

import string
from dataclasses import dataclass, field

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, Patch, PathPatch, Rectangle
from matplotlib.path import Path

from octopis.core.model import BrokerId
from octopis.core.topology.scot import SCOT, LinkKind
from octopis.explain.layout import Curve, PictureLayout, shown_label, shown_region

INK = "#1b2a3a"
INNER_FILL, _EDGE_FILL = "#1f4e79", "#ffffff"
BAND_SHADES = ("#edf1f5", "#f8fafb")
_LINK_COLOURS = {LinkKind.ACOL: "#1f5f99", LinkKind.ICOL: "#c8611a"}
_LINK_WIDTHS = {LinkKind.ACOL: 1.7, LinkKind.ICOL: 1.15}
_LINK_DASHES = {LinkKind.ACOL: "-", LinkKind.ICOL: (0.0, (4.0, 2.0))}
_REGION_LINE = "#b9c4cf"

_WIDTH_MIN = 9.0
_TITLE_SIZE, _TITLE_LETTER = 15, 0.15
"""In points, and the width of a letter of it in inches: a longer title is written smaller."""
_MARGIN_LEFT, _MARGIN_RIGHT = 0.7, 0.3
_MARGIN_TOP, _MARGIN_BOTTOM = 1.05, 0.65
_MARGIN_TIES = 0.45
"""For what stands beside links that go on elsewhere."""

# What covers what; paths that are drawn on top go between links and brokers.
Z_BAND, Z_LINK, Z_PATH, Z_BROKER = 0, 1, 2, 3


@dataclass(frozen=True)
class Canvas:
    """A picture to draw on: the coordinates of `axes` are those of `layout`, in inches.

    `links` are the lines of the links, by the two brokers that they join.
    """

    figure: Figure
    axes: Axes
    layout: PictureLayout
    links: dict[frozenset[BrokerId], PathPatch] = field(default_factory=dict)


def paint(scot: SCOT, layout: PictureLayout, title: str) -> Canvas:
    """Return the picture of `scot` that `layout` describes."""
    canvas = _empty_canvas(layout)
    _paint_bands(canvas)
    _paint_links(canvas, scot)
    _paint_brokers(canvas, scot)
    _paint_labels(canvas)
    _paint_heading(canvas, title)
    return canvas


def curve_path(curve: Curve) -> Path:
    """Return a curve of the layout as a Matplotlib path."""
    return Path(list(curve), [Path.MOVETO] + [Path.CURVE4] * (len(curve) - 1))


def _empty_canvas(layout: PictureLayout) -> Canvas:
    left, right, bottom, top = layout.borders
    more = _MARGIN_TIES if layout.ties else 0.0
    left, right = left - _MARGIN_LEFT - more, right + _MARGIN_RIGHT + more
    bottom, top = bottom - _MARGIN_BOTTOM - more, top + _MARGIN_TOP
    lacking = max(0.0, _WIDTH_MIN - (right - left))
    left, right = left - lacking / 2, right + lacking / 2
    figure = Figure(figsize=(right - left, top - bottom), facecolor="white")
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    return Canvas(figure, axes, layout)


def _paint_bands(canvas: Canvas) -> None:
    """Shade the clusters in turn, and part the regions by dotted lines."""
    layout = canvas.layout
    for strip, regions in enumerate(layout.strips):
        left, right, bottom, top = layout.strip_borders(strip)
        for row in range(layout.rows):
            corner = (left, top - (row + 1) * layout.row_height)
            shade = BAND_SHADES[row % 2]
            band = Rectangle(corner, right - left, layout.row_height, color=shade, zorder=Z_BAND)
            canvas.axes.add_patch(band)
        for column in range(1, len(regions)):
            x = left + column * layout.column_width
            canvas.axes.plot([x, x], [bottom, top], ":", color=_REGION_LINE, lw=0.8, zorder=Z_BAND)


def _paint_links(canvas: Canvas, scot: SCOT) -> None:
    for source, target, kind in (*scot.icols, *scot.acols):
        pieces = [curve_path(curve) for curve in canvas.layout.pieces(source, target)]
        path = pieces[0] if len(pieces) == 1 else Path.make_compound_path(*pieces)
        link = PathPatch(
            path,
            fill=False,
            edgecolor=_LINK_COLOURS[kind],
            linewidth=_LINK_WIDTHS[kind],
            linestyle=_LINK_DASHES[kind],
            zorder=Z_LINK,
        )
        canvas.links[frozenset((source, target))] = link
        canvas.axes.add_patch(link)


def _paint_brokers(canvas: Canvas, scot: SCOT) -> None:
    layout = canvas.layout
    for broker, (x, y) in layout.positions.items():
        inner = scot.is_inner(broker)
        canvas.axes.add_patch(broker_shape(layout, x, y, is_inner=inner))
        canvas.axes.text(
            x,
            y,
            shown_label(broker),
            ha="center",
            va="center_baseline",
            fontsize=10.5,
            color="white" if inner else INK,
            zorder=Z_BROKER,
            parse_math=False,
        )


def broker_shape(layout: PictureLayout, x: float, y: float, *, is_inner: bool) -> Patch:
    """Return the shape of a broker: an ellipse, or a box for edge brokers."""
    width, height = layout.broker_width, layout.broker_height
    if is_inner:
        return Ellipse((x, y), width, height, facecolor=INNER_FILL, edgecolor=INK, zorder=Z_BROKER)
    corner = (x - width / 2, y - height / 2)
    return Rectangle(corner, width, height, facecolor=_EDGE_FILL, edgecolor=INK, zorder=Z_BROKER)


def _paint_labels(canvas: Canvas) -> None:
    layout, axes = canvas.layout, canvas.axes
    aside = 0.3 if len(layout.strips) == 1 else 0.75
    for strip, regions in enumerate(layout.strips):
        left, _, bottom, top = layout.strip_borders(strip)
        for column, region in enumerate(regions):
            axes.text(
                column * layout.column_width,
                bottom - 0.3,
                _with_index("R", shown_region(region)),
                ha="center",
                color=INK,
                fontsize=15,
            )
        for row in range(layout.rows):
            y = top - (row + 0.5) * layout.row_height
            label = _with_index("C", str(row))
            axes.text(left - aside, y, label, ha="center", va="center", color=INK, fontsize=16)
    _paint_ties(canvas)


def _paint_ties(canvas: Canvas) -> None:
    """Say at the borders of strips where the aCOLs that go on elsewhere lead."""
    layout, axes = canvas.layout, canvas.axes
    for (source, target), pieces in layout.ties.items():
        if source.cluster:  # the same in every cluster: the uppermost row says it for all
            continue
        first, last = sorted((source, target), key=lambda each: layout.columns.index(each.region))
        ends = [(piece[-1], "left", last) for piece in pieces[:-1]]
        ends += [(piece[0], "right", first) for piece in pieces[1:]]
        for (x, y), side, there in ends:
            away = 0.04 if side == "left" else -0.04
            label = shown_region(there.region)
            axes.text(x + away, y, label, ha=side, va="center", color=INK, fontsize=8)
    if layout.ties:
        left, _, bottom, _ = layout.borders
        note = "An aCOL that leaves on the right goes on below, on the left; beside it: where to."
        axes.text(left, bottom - 0.75, note, color=INK, fontsize=11)


def _with_index(letter: str, index: str) -> str:
    """Return mathematical text with a lowered index, or plain text where that would misread it."""
    if set(index) <= set(string.ascii_letters + string.digits):
        return rf"${letter}_{{{index}}}$"
    return f"{letter} {index}".replace("$", r"\$")


def _paint_heading(canvas: Canvas, title: str) -> None:
    axes = canvas.axes
    (left, right), top = axes.get_xlim(), axes.get_ylim()[1]
    middle = (left + right) / 2
    axes.text(
        middle,
        top - 0.42,
        title,
        ha="center",
        fontsize=_TITLE_SIZE * min(1.0, (right - left) / (_TITLE_LETTER * len(title))),
        fontweight="bold",
        color=INK,
        parse_math=False,
    )
    axes.legend(
        handles=_legend_handles(),
        loc="center",
        bbox_to_anchor=(middle, top - 0.75),
        bbox_transform=axes.transData,
        ncols=4,
        frameon=False,
        fontsize=11,
        labelcolor=INK,
        handlelength=2.6,
    )


def _legend_handles() -> list[Artist]:
    names = {LinkKind.ACOL: "aCOL (within a cluster)", LinkKind.ICOL: "iCOL (between clusters)"}
    links = [
        Line2D(
            [],
            [],
            color=_LINK_COLOURS[kind],
            lw=_LINK_WIDTHS[kind],
            ls=_LINK_DASHES[kind],
            label=names[kind],
        )
        for kind in LinkKind
    ]
    inner = Line2D([], [], ls="", marker="o", ms=11, mfc=INNER_FILL, mec=INK, label="inner broker")
    edge = Line2D([], [], ls="", marker="s", ms=10, mfc=_EDGE_FILL, mec=INK, label="edge broker")
    return [*links, inner, edge]
