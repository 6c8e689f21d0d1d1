"""Pictures of an overlay in the manner of the paper's Figure 3.

Matplotlib is loaded when something is drawn: no other command should wait for it.
"""

from typing import TYPE_CHECKING

from octopis.topology.layout import lay_out
from octopis.topology.scot import SCOT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from octopis.topology.painting import Canvas


def draw(scot: SCOT, title: str) -> "Figure":
    """Return a picture of `scot`, or raise InvalidInput where it is too large to be read."""
    return draw_canvas(scot, title).figure


def draw_canvas(scot: SCOT, title: str, room: float = 0.0) -> "Canvas":
    """Return a picture of `scot` with the axes and the layout to draw paths on top of it.

    `room` widens the gaps between brokers by so many inches, for what is drawn there.
    Raises InvalidInput where the picture would be too large to be read.
    """
    layout = lay_out(scot, room)
    from octopis.topology import painting  # noqa: PLC0415 - loads Matplotlib

    return painting.paint(scot, layout, title)
