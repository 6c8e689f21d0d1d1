"""Pictures of overlays, of the ways of notifications and of the cases of dynamic routing.

Matplotlib is loaded when something is drawn: no other command should wait for it.
"""

from typing import TYPE_CHECKING

from octopis.core.topology import SCOT
from octopis.explain.explanation import RouteExplanation
from octopis.explain.layout import lay_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from octopis.explain.overlay_picture import Canvas

# Inches between brokers for clients and labels.
_ROOM = 0.55


def draw(scot: SCOT, title: str) -> "Figure":
    """Return a picture of `scot`, or raise InvalidInput where it is too large to be read."""
    return draw_canvas(scot, title).figure


def draw_canvas(scot: SCOT, title: str, room: float = 0.0) -> "Canvas":
    """Return a picture of `scot` with the axes and the layout to draw paths on top of it.

    `room` widens the gaps between brokers by so many inches, for what is drawn there.
    Raises InvalidInput where the picture would be too large to be read.
    """
    layout = lay_out(scot, room)
    from octopis.explain import overlay_picture  # noqa: PLC0415 - loads Matplotlib

    return overlay_picture.paint(scot, layout, title)


def draw_explanation(explanation: RouteExplanation, overlay: str) -> "Figure":
    """Return a picture of the way of a notification, drawn on its overlay.

    Raises InvalidInput where the overlay is too large to be drawn.
    """
    canvas = draw_canvas(explanation.question.scot, _title(explanation, overlay), room=_ROOM)
    from octopis.explain import way_picture  # noqa: PLC0415 - loads Matplotlib

    way_picture.paint_paths(canvas, explanation)
    return canvas.figure


def draw_cases() -> "Figure":
    """Return the table of the cases of dynamic routing as a picture."""
    from octopis.explain import case_picture  # noqa: PLC0415 - loads Matplotlib

    return case_picture.paint_cases()


def _title(explanation: RouteExplanation, overlay: str) -> str:
    cases = "".join(
        f", case {name}" + (f" x{count}" if count > 1 else "")
        for name, count in explanation.cases.items()
    )
    return f"{overlay}, {explanation.algorithm.value.upper()}: {explanation.ims} IMs{cases}"
