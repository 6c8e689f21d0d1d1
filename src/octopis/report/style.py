"""How figures look: one colour, marker and line for each algorithm, told apart in grey as well."""

from typing import Any, NamedTuple

from octopis.core.routing import Algorithm


class LineStyle(NamedTuple):
    """How one algorithm is drawn, everywhere."""

    label: str
    colour: str
    marker: str
    line: str


# Colours that differ in lightness, and for readers who do not see red and green apart.
LOOKS = {
    Algorithm.BID: LineStyle("BID", "#c8500a", "s", "--"),
    Algorithm.SNR: LineStyle("SNR", "#1f6fb4", "o", "-"),
    Algorithm.DNR: LineStyle("DNR", "#0b8a63", "^", "-."),
}

RC: dict[Any, Any] = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": "#4a4f57",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "font.size": 9.5,
    "grid.color": "#dfe3e8",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
    "svg.hashsalt": "octopis",
    "savefig.dpi": 150,
    "savefig.bbox": "tight",
}
"""Settings of matplotlib for every figure."""
