"""How commands write pictures: the same overlay gives the same file, to the byte."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from octopis.cli import output
from octopis.core.topology import NamedTopology
from octopis.errors import InvalidConfiguration
from octopis.explain.pictures import draw
from octopis.report import pictures as picture_files
from octopis.report.pictures import ENDINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_picture_path(path: Path) -> None:
    """Raise InvalidConfiguration unless `path` ends in a format that can be drawn."""
    if path.suffix.lower() not in ENDINGS:
        raise InvalidConfiguration(f"cannot draw {path}: its name must end in .svg or .png")


def check_picture_paths(paths: Sequence[Path], *, force: bool) -> None:
    """Raise InvalidConfiguration where a picture cannot be drawn, or would replace a file."""
    for path in paths:
        check_picture_path(path)
    output.check_new(paths, force=force)


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
        picture_files.write_figure(figure, paths)
    if any("Glyph" in str(warning.message) for warning in caught):
        typer.echo(
            "note: the font lacks some letters of the labels; boxes stand for them", err=True
        )


def _title(topology: NamedTopology) -> str:
    scot = topology.scot
    links = len(scot.acols) + len(scot.icols)
    return (
        f"{topology.name}: {len(scot.regions)} regions x {len(scot.clusters)} clusters, "
        f"{len(scot.brokers)} brokers, {links} links"
    )
