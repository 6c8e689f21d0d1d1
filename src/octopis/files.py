"""Output that is whole or not there at all, and JSON that people can read.

What is written goes into a draft beside its target, which takes the target's name when all went
well; so whoever finds the target finds all of it. A process that is killed leaves at most a draft.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path

import msgspec

from octopis.errors import InvalidConfiguration


def empty_folder(folder: Path) -> Path:
    """Make a folder that grows while something runs, and return its absolute path.

    Absolute, because Arrow takes a relative path with a colon in it for an address. Raises
    InvalidConfiguration where the folder holds something already, or cannot be written.
    """
    try:
        nothing_in(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot write to {folder}: {failure.strerror}") from failure
    return folder.resolve()


def nothing_in(folder: Path) -> None:
    """Raise InvalidConfiguration unless a folder is empty, or not there yet."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "is not empty" if folder.is_dir() else "is a file"
        raise InvalidConfiguration(f"{folder} {what}: choose another folder, or remove it")


@contextmanager
def whole_folder(target: Path, check: Callable[[Path], None] = nothing_in) -> Iterator[Path]:
    """Give a folder beside `target` to write into; it takes the target's place at the end.

    `check` raises InvalidConfiguration where what is there must stay; it is asked before and
    after. Whatever else goes wrong, `target` stays as it was, and nothing else is left behind.
    """
    draft = _draft(target.absolute())  # the working folder, by its dot, has no name
    try:
        check(target)
        draft.mkdir(parents=True)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot write {target}: {failure.strerror}") from failure
    try:
        yield draft
        check(target)  # minutes may have passed
        _take_place(target, draft)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _take_place(target: Path, draft: Path) -> None:
    if target.exists() and any(target.iterdir()):
        shutil.rmtree(target)
    if target.exists():  # an empty folder stays the same one: somebody may be in it
        for part in draft.iterdir():
            part.rename(target / part.name)
    else:
        draft.rename(target)


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Give a file beside `target` to write; it takes the target's place at the end.

    Folders on the way are made. Whatever goes wrong, `target` stays as it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = _draft(target)
    try:
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text: the file is whole, or as it was before."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON: the file is whole, or as it was before."""
    with whole_file(path) as draft:
        draft.write_bytes(pretty_json(value))


def pretty_json(value: object) -> bytes:
    """Return a value as JSON text with two spaces of indentation and a line's end."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2) + b"\n"


def _plain(value: object) -> object:
    """Return numbers of numpy as Python's, and paths and the like as text."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else str(value)


def is_draft(path: Path) -> bool:
    """Tell whether something is what a killed process may have left."""
    return path.name.startswith(".") and path.name.endswith(".draft")


def remove_drafts(folder: Path) -> None:
    """Remove what killed processes have left in a folder and one level below."""
    for draft in [*folder.glob(".*.draft"), *folder.glob("*/.*.draft")]:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def _draft(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.draft")
