"""How commands write pictures: the same overlay gives the same file, to the byte."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.topology import NamedTopology, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".svg", ".png")

_DOTS_PER_INCH = 150
# Without this, files would carry the date and the version of the library.
_METADATA: dict[str, dict[str, str | None]] = {".svg": {"Date": None}, ".png": {"Software": None}}


def check_picture_path(path: Path) -> None:
    """Raise InvalidConfiguration unless `path` ends in a format that can be drawn."""
    if path.suffix.lower() not in ENDINGS:
        raise InvalidConfiguration(f"cannot draw {path}: its name must end in .svg or .png")


def write_pictures(topology: NamedTopology, paths: list[Path]) -> None:
    """Draw the overlay into each of `paths`, making their folders.

    Raises InvalidInput where the overlay is too large to draw, OperationFailed where a file
    cannot be written.
    """
    for path in paths:
        check_picture_path(path)
    write_figure(draw(topology.scot, _title(topology)), paths)


def write_figure(figure: "Figure", paths: list[Path]) -> None:
    """Write a picture into each of `paths`, making their folders.

    Raises OperationFailed where a file cannot be written.
    """
    for path in paths:
        check_picture_path(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message="Glyph")
        for path in paths:
            _save(figure, path)
    if any("Glyph" in str(warning.message) for warning in caught):
        typer.echo(
            "note: the font lacks some letters of the labels; boxes stand for them", err=True
        )


def _save(figure: "Figure", path: Path) -> None:
    from matplotlib import rc_context  # noqa: PLC0415 - only drawing should wait for it

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Without a fixed salt, identifiers in SVG files would differ from run to run.
        with rc_context({"svg.hashsalt": "octopis"}):
            figure.savefig(path, dpi=_DOTS_PER_INCH, metadata=_METADATA[path.suffix.lower()])
    except OSError as failure:
        raise OperationFailed(f"cannot write {path}: {failure.strerror}") from failure


def _title(topology: NamedTopology) -> str:
    scot = topology.scot
    links = len(scot.acols) + len(scot.icols)
    return (
        f"{topology.name}: {len(scot.regions)} regions x {len(scot.clusters)} clusters, "
        f"{len(scot.brokers)} brokers, {links} links"
    )
