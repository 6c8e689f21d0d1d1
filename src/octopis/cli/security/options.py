"""Arguments and options that the commands of `octopis security` share."""

from pathlib import Path
from typing import Annotated

import typer

from octopis.errors import InvalidConfiguration
from octopis.security.folder import SecurityFolder

FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The security folder of the overlay.")
]
DaysOption = Annotated[
    int, typer.Option(min=1, metavar="N", help="How long the new certificates hold.")
]


def folder_at(path: Path) -> SecurityFolder:
    """Return the security folder at a path, or raise InvalidConfiguration where none is."""
    folder = SecurityFolder(path)
    if not folder.access.exists() and not folder.ca.exists():
        raise InvalidConfiguration(
            f"{path} is no security folder: make one with `octopis security init`"
        )
    return folder
