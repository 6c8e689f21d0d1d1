"""Pictures of explanations and of the cases of dynamic routing.

Matplotlib is loaded when something is drawn: no other command should wait for it.
"""

from typing import TYPE_CHECKING

from octopis.routing.explanation import Explanation
from octopis.topology import draw_canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches between brokers for clients and labels.
_ROOM = 0.55


def draw_explanation(explanation: Explanation, overlay: str) -> "Figure":
    """Return a picture of the way of a notification, drawn on its overlay.

    Raises InvalidInput where the overlay is too large to be drawn.
    """
    canvas = draw_canvas(explanation.question.scot, _title(explanation, overlay), room=_ROOM)
    from octopis.routing import path_painting  # noqa: PLC0415 - loads Matplotlib

    path_painting.paint_paths(canvas, explanation)
    return canvas.figure


def draw_cases() -> "Figure":
    """Return the table of the cases of dynamic routing as a picture."""
    from octopis.routing import case_painting  # noqa: PLC0415 - loads Matplotlib

    return case_painting.paint_cases()


def _title(explanation: Explanation, overlay: str) -> str:
    cases = "".join(
        f", case {name}" + (f" x{count}" if count > 1 else "")
        for name, count in explanation.cases.items()
    )
    return f"{overlay}, {explanation.algorithm.value.upper()}: {explanation.ims} IMs{cases}"
