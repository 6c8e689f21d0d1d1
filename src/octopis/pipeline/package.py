"""The installed package as one zip, so that executors need nothing of ours installed."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile

import octopis

NAME = "octopis.zip"


def package_to_ship() -> Path:
    """Return the zip; it stays until this process ends, for executors that start late."""
    path = Path(_home().name) / NAME
    return path if path.exists() else zip_package(path.parent)


@cache
def _home() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="octopis-package-")


def zip_package(folder: Path) -> Path:
    """Write the package that is running right now into `folder`, and return the zip's path."""
    root = Path(octopis.__file__).parent
    target = folder / NAME
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, Path(root.name) / path.relative_to(root))
    return target
