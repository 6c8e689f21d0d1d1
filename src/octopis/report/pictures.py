"""How pictures are written: the same figure gives the same file, to the byte."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from octopis.errors import OperationFailed
from octopis.files import whole_file

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
