"""How pictures are written: the same figure gives the same file, to the byte."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from octopis.errors import OperationFailed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".svg", ".png")

_DOTS_PER_INCH = 150
# Without this, files would carry the date and the version of the library.
_METADATA: dict[str, dict[str, str | None]] = {".svg": {"Date": None}, ".png": {"Software": None}}


def write_figure(figure: "Figure", paths: Sequence[Path]) -> None:
    """Write a picture into each of `paths`, which end in .svg or .png, making their folders.

    Raises OperationFailed where a file cannot be written.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - only drawing should wait for it

    for path in paths:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without a fixed salt, identifiers in SVG files would differ from run to run.
            with rc_context({"svg.hashsalt": "octopis"}):
                figure.savefig(path, dpi=_DOTS_PER_INCH, metadata=_METADATA[path.suffix.lower()])
        except OSError as failure:
            raise OperationFailed(f"cannot write {path}: {failure.strerror}") from failure
