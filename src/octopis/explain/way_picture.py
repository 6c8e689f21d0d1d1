"""How the way of a notification is put on the picture of its overlay.

Nothing is told by colour alone: copies on iCOLs are dashed, copies that carry CBV_p are thicker
and have its bits beside them.
"""

from collections import Counter
from math import ceil

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch, Polygon

from octopis.core.model import BrokerId
from octopis.core.topology import LinkKind
from octopis.explain.arrows import Line, arrow_line, head, label_place, without_head
from octopis.explain.client_picture import client_handles, paint_clients
from octopis.explain.explanation import Hop, RouteExplanation
from octopis.explain.overlay_picture import Z_BAND, Z_BROKER, Z_LINK, Z_PATH, Canvas

INK, PLAIN, CARRYING, OVERLOADED = "#1b2a3a", "#111111", "#c00d2e", "#aab2bb"

_DASHES = {LinkKind.ACOL: "-", LinkKind.ICOL: (0.0, (3.2, 1.5))}
_WIDTHS = {PLAIN: 1.9, CARRYING: 2.7}
_LINKS_ALPHA = 0.4
_BAND_WIDTH = 8.0
_HEAD_LENGTH, _HEAD_WIDTH = 0.17, 0.15
_BAND_HEAD_LENGTH, _BAND_HEAD_WIDTH = 0.3, 0.27
_PARALLEL = 0.09
_LABEL_DISTANCE = 0.15
_BIDS_LENGTH_MAX = 9
_LEGEND_COLUMNS = 3
_LEGEND_LINE = 0.22


def paint_paths(canvas: Canvas, explanation: RouteExplanation) -> None:
    """Put the overloaded links, the copies and the clients on the picture of the overlay."""
    for patch in canvas.axes.patches:
        if isinstance(patch, PathPatch):  # links step back behind the paths
            patch.set_alpha(_LINKS_ALPHA)
    scot, layout = explanation.question.scot, canvas.layout
    for source, target in sorted(explanation.question.overloaded):
        paint_overloaded(canvas.axes, arrow_line(scot, layout, source, target))
    used: Counter[frozenset[BrokerId]] = Counter()
    for hop in explanation.hops:
        link = frozenset((hop.source, hop.target))
        line = arrow_line(scot, layout, hop.source, hop.target, _PARALLEL * used[link])
        used[link] += 1
        paint_copy(canvas.axes, line, hop.kind, carrying=bool(hop.cbv_p))
        paint_label(canvas.axes, line, _label(explanation, hop), layout.row_height)
    paint_clients(canvas, explanation)
    _paint_legend(canvas, explanation)


def paint_overloaded(axes: Axes, line: Line) -> None:
    """Paint a thick band under a link, with a point at the end that it leads to."""
    z = (Z_BAND + Z_LINK) / 2
    shaft = without_head(line, _BAND_HEAD_LENGTH)
    axes.plot(
        *zip(*shaft, strict=True),
        color=OVERLOADED,
        lw=_BAND_WIDTH,
        solid_capstyle="butt",
        zorder=z,
    )
    point = head(line, _BAND_HEAD_LENGTH, _BAND_HEAD_WIDTH)
    axes.add_patch(Polygon(point, color=OVERLOADED, lw=0, zorder=z))


def paint_copy(axes: Axes, line: Line, kind: LinkKind, *, carrying: bool) -> None:
    """Paint an arrow for a copy on a link."""
    colour = CARRYING if carrying else PLAIN
    shaft = without_head(line, _HEAD_LENGTH)
    axes.plot(
        *zip(*shaft, strict=True),
        color=colour,
        lw=_WIDTHS[colour],
        ls=_DASHES[kind],
        zorder=Z_PATH,
    )
    point = head(line, _HEAD_LENGTH, _HEAD_WIDTH)
    axes.add_patch(Polygon(point, color=colour, lw=0, zorder=Z_PATH))


def paint_label(axes: Axes, line: Line, label: str, row_height: float) -> None:
    """Write what a copy carries beside its arrow: the bits of CBV_p, or BIDs."""
    if label:
        (x, y), across, along = label_place(line, _LABEL_DISTANCE, row_height)
        axes.text(
            x,
            y,
            label,
            ha=across,
            va=along,
            fontsize=10,
            fontweight="bold",
            color=CARRYING if set(label) <= {"0", "1"} else PLAIN,
            zorder=Z_BROKER,
            parse_math=False,
            bbox={"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none", "alpha": 0.6},
        )


def path_handles(*, carrying: bool, overloaded: bool, bids: bool = False) -> list[Artist]:
    """Return the entries of a legend for copies and overloaded links."""
    copy = "a copy with BIDs" if bids else "a copy"
    handles: list[Artist] = [
        Line2D(
            [],
            [],
            color=PLAIN,
            lw=_WIDTHS[PLAIN],
            ls=_DASHES[kind],
            label=f"{copy} on an {kind.value}",
        )
        for kind in LinkKind
    ]
    if carrying:
        label = "a copy that carries CBV_p, with its bits"
        handles.append(Line2D([], [], color=CARRYING, lw=_WIDTHS[CARRYING], label=label))
    if overloaded:
        label = "overloaded in this direction"
        handles.append(Line2D([], [], color=OVERLOADED, lw=_BAND_WIDTH, label=label))
    return handles


def _label(explanation: RouteExplanation, hop: Hop) -> str:
    if hop.cbv_p:
        return explanation.bits(hop)
    shown = " ".join(bid.short for bid in hop.bids)
    return shown if len(shown) <= _BIDS_LENGTH_MAX else f"{len(hop.bids)} BIDs"


def _paint_legend(canvas: Canvas, explanation: RouteExplanation) -> None:
    """Add a strip with a legend of its own below the overlay."""
    hops, axes, figure = explanation.hops, canvas.axes, canvas.figure
    handles = path_handles(
        carrying=any(hop.cbv_p for hop in hops),
        overloaded=bool(explanation.question.overloaded),
        bids=any(hop.bids for hop in hops),
    ) + client_handles(explanation)
    height = _LEGEND_LINE * (ceil(len(handles) / _LEGEND_COLUMNS) + 1)
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom - height, top)
    figure.set_size_inches(figure.get_size_inches()[0], top - bottom + height)
    overlay_legend = axes.get_legend()
    assert overlay_legend is not None, "the overlay has a legend"
    axes.add_artist(overlay_legend)
    axes.legend(
        handles=handles,
        loc="center",
        bbox_to_anchor=(sum(axes.get_xlim()) / 2, bottom - height / 2 + 0.05),
        bbox_transform=axes.transData,
        ncols=_LEGEND_COLUMNS,
        frameon=False,
        fontsize=10.5,
        labelcolor=INK,
        handlelength=3.0,
    )
