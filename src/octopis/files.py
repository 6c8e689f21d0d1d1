"""Output that is whole or not there at all, and JSON that people can read.

What is written goes into a draft beside its target, which takes the target's name when all went
well; so whoever finds the target finds all of it. A process that is killed leaves at most a draft.
"""

import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path

import msgspec

from octopis.errors import InvalidConfiguration

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/+(?P<rest>.*)")
_REMOVE_S = 2.0


def check_local(path: Path) -> None:
    """Raise InvalidConfiguration for an address: a path takes s3://bucket for a folder `s3:`."""
    address = _ADDRESS.fullmatch(str(path))
    if address is None:
        return
    if address["scheme"] == "file":
        raise InvalidConfiguration(f"write file:///{address['rest']} as /{address['rest']}")
    raise InvalidConfiguration(
        f"{address['scheme']}://{address['rest']} is an address: give a path on a disk, "
        "here or shared by all machines"
    )


def check_new_folder(folder: Path) -> None:
    """Raise InvalidConfiguration where `whole_folder` would, before any work is done."""
    try:
        check_local(folder)
        nothing_in(folder)
    except OSError as failure:
        raise InvalidConfiguration(f"cannot write {folder}: {failure.strerror}") from failure
    check_writable(folder.absolute().parent, folder)  # where its draft is made


def check_writable(folder: Path, named: Path | None = None) -> None:
    """Raise InvalidConfiguration where nothing can be written into a folder, there or not yet.

    `named` is what the user said, if that is something else.
    """
    named = named or folder
    check_local(named)
    there = next((each for each in (folder, *folder.absolute().parents) if each.exists()), folder)
    number = errno.EACCES if there.is_dir() else errno.ENOTDIR
    if number == errno.ENOTDIR or not os.access(there, os.W_OK | os.X_OK):
        raise InvalidConfiguration(f"cannot write {named}: {os.strerror(number)}")


def empty_folder(folder: Path) -> Path:
    """Make a folder that grows while something runs, and return its absolute path.

    Absolute, because Arrow takes a relative path with a colon in it for an address. Raises
    InvalidConfiguration where the folder holds something already, or cannot be written.
    """
    check_local(folder)
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
    check_local(target)
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
        _remove(draft)


def _remove(draft: Path) -> None:
    """Remove a folder that somebody who is being stopped may still write into."""
    until = time.monotonic() + _REMOVE_S
    shutil.rmtree(draft, ignore_errors=True)
    while draft.exists() and time.monotonic() < until:
        time.sleep(0.05)
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
    check_local(target)
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


def write_private(path: Path, content: bytes) -> None:
    """Write what others must not read: whole, or as it was before, and never readable meanwhile."""
    with whole_file(path) as draft:
        fill_private(draft, path, content)


def fill_private(draft: Path, target: Path, content: bytes, mode: int = 0o600) -> None:
    """Write the draft of a file, which has its mode from the start.

    It keeps the owner of what it replaces, and what its group may do: who writes it for a service
    may be somebody else than who reads it.
    """
    draft.unlink(missing_ok=True)  # of a killed process that had our number
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(number, "wb") as file:
        if target.exists():
            before = target.stat()
            if os.geteuid() == 0:
                os.fchown(number, before.st_uid, before.st_gid)
            os.fchmod(number, mode | before.st_mode & stat.S_IRWXG)
        file.write(content)


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
