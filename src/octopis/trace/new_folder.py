"""A folder to write into: one that is new, or empty."""

from pathlib import Path

from octopis.errors import InvalidConfiguration


def new_folder(folder: Path) -> Path:
    """Make the folder and return its absolute path, or raise InvalidConfiguration.

    Absolute, because Arrow takes a relative path with a colon in it for an address.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            what = "is not empty" if folder.is_dir() else "is a file"
            raise InvalidConfiguration(f"{folder} {what}: choose another folder, or remove it")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot write to {folder}: {failure.strerror}") from failure
    return folder.resolve()
