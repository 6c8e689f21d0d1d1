"""How publisher and subscribers are put beside their brokers."""

from collections import defaultdict
from typing import Literal, NamedTuple

from matplotlib.artist import Artist
from matplotlib.patches import Patch

from octopis.core.model import BrokerId
from octopis.explain.explanation import RouteExplanation
from octopis.explain.overlay_picture import Z_BROKER, Z_PATH, Canvas

_INK = "#1b2a3a"
_SHOWN_MAX = 3
_NAME_LENGTH_MAX = 10
_CHARACTER_WIDTH = 0.08
_GAP = 0.24


class _Style(NamedTuple):
    label: str
    fill: str
    ink: str
    frame: Literal["-", ":"]


_PUBLISHER = _Style("P: the publisher", _INK, "white", "-")
_REACHED = _Style("a subscriber, reached", "#fff3c4", _INK, "-")
_NOT_REACHED = _Style("a subscriber, not matching", "white", _INK, ":")

_Box = tuple[str, _Style]


def paint_clients(canvas: Canvas, explanation: RouteExplanation) -> None:
    """Put the clients into boxes beside their brokers, and widen the picture where they need it."""
    reached = explanation.paths
    names: defaultdict[tuple[BrokerId, _Style], list[str]] = defaultdict(list)
    for name, broker, _ in explanation.question.subscribers:
        names[broker, _REACHED if name in reached else _NOT_REACHED].append(name)
    boxes: defaultdict[BrokerId, list[_Box]] = defaultdict(list)
    boxes[explanation.question.publisher].append(("P", _PUBLISHER))
    for (broker, style), those in names.items():
        boxes[broker].append((_shown(those), style))
    right = max(_paint_row(canvas, broker, row) for broker, row in boxes.items())
    left, old_right = canvas.axes.get_xlim()
    if right > old_right:
        canvas.axes.set_xlim(left, right)
        canvas.figure.set_size_inches(right - left, canvas.figure.get_size_inches()[1])


def client_handles(explanation: RouteExplanation) -> list[Artist]:
    """Return the entries of a legend for the kinds of clients that are there."""
    styles, reached = [_PUBLISHER], len(explanation.paths)
    if reached:
        styles.append(_REACHED)
    if reached < len(explanation.question.subscribers):
        styles.append(_NOT_REACHED)
    return [
        Patch(facecolor=style.fill, edgecolor=_INK, linestyle=style.frame, label=style.label)
        for style in styles
    ]


def _shown(names: list[str]) -> str:
    shown = [
        name if len(name) <= _NAME_LENGTH_MAX else name[: _NAME_LENGTH_MAX - 1] + "…"
        for name in names[:_SHOWN_MAX]
    ]
    more = [f"+{len(names) - _SHOWN_MAX}"] if len(names) > _SHOWN_MAX else []
    return " ".join(shown + more)


def _paint_row(canvas: Canvas, broker: BrokerId, row: list[_Box]) -> float:
    """Paint boxes below a broker, to the right of its links; return how far they reach."""
    layout, axes = canvas.layout, canvas.axes
    x, y = layout.positions[broker]
    left = x + max(_reach_to_the_right(canvas, broker) + 0.18, 0.24)
    middle = y - layout.broker_height / 2 - 0.24
    corner = (x + layout.broker_width * 0.35, y - layout.broker_height * 0.35)
    axes.plot([corner[0], left], [corner[1], middle], color=_INK, lw=0.9, zorder=Z_PATH)
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
                "ec": _INK,
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
