"""All pictures: of overlays, of the ways of notifications, of the cases of dynamic routing.

Others draw by this module alone. It loads Matplotlib when something is drawn: no command should
wait for it that draws nothing, and all else works where it is not installed.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from octopis.core.topology import SCOT
from octopis.errors import MissingExtra
from octopis.explain.explanation import ALONG_THE_TREE, RouteExplanation
from octopis.explain.layout import lay_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from octopis.explain.overlay_picture import Canvas

# Inches between brokers for clients and labels.
_ROOM = 0.55


def draw(scot: SCOT, title: str) -> "Figure":
    """Return a picture of `scot`.

    Raises InvalidInput where it is too large to be read, MissingExtra without Matplotlib.
    """
    return draw_canvas(scot, title, wraps=True).figure


def draw_canvas(scot: SCOT, title: str, room: float = 0.0, *, wraps: bool = False) -> "Canvas":
    """Return a picture of `scot` with the axes and the layout to draw more on top of it.

    `room` widens the gaps between brokers by so many inches, for what is drawn there. With `wraps`
    regions that are too many for a page go on below; ways of notifications need whole links.
    Raises as `draw` does.
    """
    layout = lay_out(scot, room, wraps=wraps)
    _need_matplotlib()
    from octopis.explain import overlay_picture  # noqa: PLC0415 - loads Matplotlib

    return overlay_picture.paint(scot, layout, title)


def draw_explanation(explanation: RouteExplanation, overlay: str) -> "Figure":
    """Return a picture of the way of a notification on its overlay. Raises as `draw` does."""
    canvas = draw_canvas(explanation.question.scot, _title(explanation, overlay), room=_ROOM)
    from octopis.explain import route_picture  # noqa: PLC0415 - loads Matplotlib

    route_picture.paint_route(canvas, explanation)
    return canvas.figure


def draw_cases() -> "Figure":
    """Return the table of the cases of dynamic routing as a picture.

    Raises MissingExtra without Matplotlib.
    """
    _need_matplotlib()
    from octopis.explain import case_picture  # noqa: PLC0415 - loads Matplotlib

    return case_picture.paint_cases()


def _need_matplotlib() -> None:
    if find_spec("matplotlib") is None:
        raise MissingExtra("drawing", "matplotlib", "report")


def _title(explanation: RouteExplanation, overlay: str) -> str:
    decisions = "".join(
        f", {words}" + (f" x{count}" if count > 1 else "")
        for words, count in explanation.decisions.items()
        if words != ALONG_THE_TREE  # what is left of all copies
    )
    lost = f", {len(explanation.lost)} lost" if explanation.lost else ""
    algorithm = explanation.algorithm.value.upper()
    return f"{overlay}, {algorithm}: {explanation.ims} IMs{decisions}{lost}"
