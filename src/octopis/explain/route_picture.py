"""The way of a notification, on the picture of its overlay.

Arrows show its copies and the overloaded links, boxes beside the brokers the publisher, the
subscribers and what could not go on; a second legend says what they mean.
"""

from collections import Counter, defaultdict
from math import ceil
from typing import Literal, NamedTuple

from matplotlib.artist import Artist
from matplotlib.patches import Patch, PathPatch

from octopis.core.model import BrokerId
from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.messages import Reason
from octopis.explain.arrows import (
    CARRIES_CBV_P,
    CROSS,
    GOES_AROUND,
    arrow_handles,
    link_path,
    paint_copy,
    paint_label,
    paint_lost,
    paint_overloaded,
)
from octopis.explain.explanation import Hop, RouteExplanation
from octopis.explain.fault_picture import fault_handles, paint_faults
from octopis.explain.overlay_picture import INK, Z_BROKER, Z_PATH, Canvas

_LINKS_ALPHA = 0.4
_PARALLEL = 0.09
_TARGETS_LENGTH_MAX = 9
_LEGEND_COLUMNS = 3
_LEGEND_LINE = 0.22
_SHOWN_MAX = 3
_NAME_LENGTH_MAX = 10
_CHARACTER_WIDTH = 0.08
_GAP = 0.24


class _BoxStyle(NamedTuple):
    label: str
    fill: str
    ink: str
    frame: Literal["-", ":", "--"]


_PUBLISHER = _BoxStyle("P: the publisher", INK, "white", "-")
_REACHED = _BoxStyle("a subscriber, reached", "#fff3c4", INK, "-")
_NOT_REACHED = _BoxStyle("a subscriber, not matching", "white", INK, ":")

_LOST = _BoxStyle("a subscriber, lost", "#d9dde2", INK, "--")
_STRANDED = _BoxStyle("targets that no way leads on to", "#f6dade", CROSS, "-")

_AROUND = (Reason.AROUND_OVERLOAD, Reason.AROUND_FAULT)

_Box = tuple[str, _BoxStyle]


def paint_route(canvas: Canvas, explanation: RouteExplanation) -> None:
    """Put the overloaded links, the copies and the clients on the picture of the overlay."""
    for patch in canvas.axes.patches:
        if isinstance(patch, PathPatch):  # links step back behind the arrows
            patch.set_alpha(_LINKS_ALPHA)
    scot, layout = explanation.question.scot, canvas.layout
    for source, target in sorted(explanation.question.overloaded):
        paint_overloaded(canvas.axes, link_path(scot, layout, source, target))
    paint_faults(canvas, explanation.question)
    used: Counter[frozenset[BrokerId]] = Counter()
    for hop in explanation.hops:
        link = frozenset((hop.source, hop.target))
        path = link_path(scot, layout, hop.source, hop.target, _PARALLEL * used[link])
        used[link] += 1
        special = is_special(hop)
        paint_copy(canvas.axes, path, hop.kind, carrying=special)
        label = _label(explanation, hop)
        paint_label(canvas.axes, path, label, layout.row_height, carrying=special)
    for loss in explanation.losses:
        path = link_path(scot, layout, loss.source, loss.target)
        paint_lost(canvas.axes, path, loss.kind)
    paint_clients(canvas, explanation)
    _paint_legend(canvas, explanation)


def is_special(hop: Hop) -> bool:
    """Tell whether a copy stands out: it carries CBV_p, or goes around."""
    return bool(hop.cbv_p) or hop.reason in _AROUND


def _label(explanation: RouteExplanation, hop: Hop) -> str:
    if hop.cbv_p:
        return explanation.bits(hop)
    shown = " ".join(each.short for each in hop.targets)
    if len(shown) > _TARGETS_LENGTH_MAX:
        shown = f"{len(hop.targets)} {_carried(explanation)}"
    tried = " ".join(str(each) for each in hop.tried)
    return f"{shown}\ntried {tried}" if tried else shown


def _carried(explanation: RouteExplanation) -> str:
    """Return what copies carry, in the word of their algorithm."""
    return "targets" if explanation.algorithm is Algorithm.TNR else "BIDs"


def paint_clients(canvas: Canvas, explanation: RouteExplanation) -> None:
    """Put the clients into boxes beside their brokers, and widen the picture where they need it."""
    reached, lost = explanation.paths, explanation.lost
    names: defaultdict[tuple[BrokerId, _BoxStyle], list[str]] = defaultdict(list)
    for name, broker, _ in explanation.question.subscribers:
        missed = _LOST if name in lost else _NOT_REACHED
        names[broker, _REACHED if name in reached else missed].append(name)
    boxes: defaultdict[BrokerId, list[_Box]] = defaultdict(list)
    boxes[explanation.question.publisher].append(("P", _PUBLISHER))
    for (broker, style), those in names.items():
        boxes[broker].append((_shown(those), style))
    for _, broker, targets in explanation.unreachable:
        boxes[broker].append(
            (f"\N{MULTIPLICATION SIGN} {_shown([each.short for each in targets])}", _STRANDED)
        )
    right = max(_paint_boxes(canvas, broker, row) for broker, row in boxes.items())
    left, old_right = canvas.axes.get_xlim()
    if right > old_right:
        canvas.axes.set_xlim(left, right)
        canvas.figure.set_size_inches(right - left, canvas.figure.get_size_inches()[1])


def _shown(names: list[str]) -> str:
    shown = [
        name if len(name) <= _NAME_LENGTH_MAX else name[: _NAME_LENGTH_MAX - 1] + "…"
        for name in names[:_SHOWN_MAX]
    ]
    more = [f"+{len(names) - _SHOWN_MAX}"] if len(names) > _SHOWN_MAX else []
    return " ".join(shown + more)


def _paint_boxes(canvas: Canvas, broker: BrokerId, row: list[_Box]) -> float:
    """Paint boxes below a broker, to the right of its links; return how far they reach."""
    layout, axes = canvas.layout, canvas.axes
    x, y = layout.positions[broker]
    left = x + max(_reach_to_the_right(canvas, broker) + 0.18, 0.24)
    middle = y - layout.broker_height / 2 - 0.24
    corner = (x + layout.broker_width * 0.35, y - layout.broker_height * 0.35)
    axes.plot([corner[0], left], [corner[1], middle], color=INK, lw=0.9, zorder=Z_PATH)
    for text, style in row:
        axes.text(
            left,
            middle,
            text,
            ha="left",
            va="center",
            fontsize=10,
            color=style.ink,
            zorder=Z_BROKER,
            parse_math=False,
            bbox={
                "boxstyle": "square,pad=0.3",
                "fc": style.fill,
                "ec": INK,
                "ls": style.frame,
                "lw": 1.2,
            },
        )
        left += _CHARACTER_WIDTH * len(text) + _GAP
    return left


def _reach_to_the_right(canvas: Canvas, broker: BrokerId) -> float:
    """Return how far the iCOLs of a broker's region bow out to the right."""
    layout = canvas.layout
    x = layout.positions[broker][0]
    points = (
        point
        for (source, target), curve in layout.curves.items()
        if source.region == target.region == broker.region
        for point in curve
    )
    return max((point[0] - x for point in points), default=0.0)


def _paint_legend(canvas: Canvas, explanation: RouteExplanation) -> None:
    """Add a strip with a legend of its own below the overlay."""
    hops, axes, figure = explanation.hops, canvas.axes, canvas.figure
    special = GOES_AROUND if explanation.algorithm is Algorithm.TNR else CARRIES_CBV_P
    handles = [
        *arrow_handles(
            overloaded=bool(explanation.question.overloaded),
            carried=_carried(explanation) if any(hop.targets for hop in hops) else "",
            special=special if any(is_special(hop) for hop in hops) else "",
            lost=bool(explanation.losses),
        ),
        *fault_handles(explanation.question),
        *client_handles(explanation),
    ]
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


def client_handles(explanation: RouteExplanation) -> list[Artist]:
    """Return the entries of a legend for the kinds of clients that are there."""
    styles, reached, lost = [_PUBLISHER], len(explanation.paths), len(explanation.lost)
    if reached:
        styles.append(_REACHED)
    if lost:
        styles.append(_LOST)
    if reached + lost < len(explanation.question.subscribers):
        styles.append(_NOT_REACHED)
    if explanation.unreachable:
        styles.append(_STRANDED)
    return [
        Patch(facecolor=style.fill, edgecolor=INK, linestyle=style.frame, label=style.label)
        for style in styles
    ]
