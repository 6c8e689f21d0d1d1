"""How pictures look, and how they are written: the same figure gives the same file, to the byte.

Each algorithm has one colour, marker and line everywhere, told apart in grey as well.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from octopis.core.routing import Algorithm
from octopis.errors import OperationFailed
from octopis.files import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".svg", ".png")

_DOTS_PER_INCH = 150
# Without this, files would carry the date and the version of the library.
_METADATA: dict[str, dict[str, str | None]] = {".svg": {"Date": None}, ".png": {"Software": None}}


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
    Algorithm.TNR: LineStyle("TNR", "#5c1a80", "D", ":"),
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


def write_figure(figure: "Figure", paths: Sequence[Path]) -> None:
    """Write a picture into each of `paths`, which end in .svg or .png, making their folders.

    Raises OperationFailed where a file cannot be written.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - only drawing should wait for it

    for path in paths:
        ending = path.suffix.lower()
        try:
            # Without a fixed salt, identifiers in SVG files would differ from run to run.
            with rc_context({"svg.hashsalt": "octopis"}), whole_file(path) as draft:
                figure.savefig(
                    draft,
                    format=ending.removeprefix("."),
                    dpi=_DOTS_PER_INCH,
                    metadata=_METADATA[ending],
                )
        except OSError as failure:
            raise OperationFailed(f"cannot write {path}: {failure.strerror}") from failure
