"""The folder of a store: whose it is, which form it has, and that only one process uses it."""

import errno
import os
import secrets
from pathlib import Path

import msgspec

from octopis.errors import StoreDamaged, StoreFailed, StoreLocked, StoreVersion
from octopis.store import state
from octopis.store.files import Files

VERSION = 3
"""Rises with the form of the files here, and with that of the records in them."""

FORMAT = "format.json"
LOCK = "lock"
QUARANTINE = "quarantine"
SEGMENT, SPARE, DRAFT = ".log", ".spare", ".draft"


class Format(msgspec.Struct, frozen=True):
    """What stands in the format file."""

    version: int
    owner: str
    epoch: int
    salt: int


def segment_name(first: int) -> str:
    """Return the name of the segment that begins with this position."""
    return f"{first:020d}{SEGMENT}"


def take(folder: Path, files: Files) -> int:
    """Make the folder and lock it, until the file that is returned is closed."""
    try:
        files.make_folder(folder)
        return files.lock(folder / LOCK)
    except BlockingIOError as failure:
        raise StoreLocked(str(folder)) from failure
    except OSError as failure:
        raise StoreFailed(
            str(folder),
            f"it cannot be written: {failure.strerror}; give a folder that its broker may write",
        ) from failure


def identify(folder: Path, files: Files, owner: str) -> Format:
    """Return what a folder is; a new one is made to belong to `owner`."""
    names = files.names(folder)
    if FORMAT not in names:
        return _make(folder, files, owner, names)
    found = read_format(folder, files)
    if found.owner != owner:
        raise StoreFailed(
            str(folder),
            f"it belongs to broker {found.owner}, not to {owner}: give each broker its own folder",
        )
    if state.NAME not in names:
        raise StoreDamaged(
            str(folder), f"{state.NAME} is missing: put a copy of the whole folder back"
        )
    return found


def read_format(folder: Path, files: Files) -> Format:
    """Return what stands in the format file."""
    try:
        file = files.open(folder / FORMAT)
    except FileNotFoundError as failure:
        raise StoreFailed(str(folder), f"it is no store: there is no {FORMAT}") from failure
    try:
        content = files.pread(file, files.size(file), 0)
    finally:
        files.close(file)
    try:
        version = msgspec.json.decode(content, type=dict[str, object])["version"]
        if version != VERSION:
            raise StoreVersion(str(folder), version, VERSION)
        return msgspec.json.decode(content, type=Format)
    except (msgspec.DecodeError, KeyError, UnicodeDecodeError) as failure:
        raise StoreDamaged(
            str(folder), f"{FORMAT} is damaged: put a copy of the whole folder back"
        ) from failure


def _make(folder: Path, files: Files, owner: str, names: list[str]) -> Format:
    """Make what was not there. The format comes last: who finds it finds all."""
    known = {LOCK, FORMAT + DRAFT, state.NAME, f"{state.NAME}-wal", f"{state.NAME}-shm"}
    strange = [name for name in names if name not in known]
    if strange:
        raise StoreFailed(
            str(folder),
            f"it is no store, and holds {strange[0]}: give an empty folder, or a new one",
        )
    state.State(folder, files, make=True).close()
    made = Format(VERSION, owner, secrets.randbits(32), secrets.randbits(32))
    draft = folder / (FORMAT + DRAFT)
    write_whole(files, draft, msgspec.json.encode(made) + b"\n")
    files.rename(draft, folder / FORMAT)
    files.sync_folder(folder)
    return made


def write_whole(files: Files, path: Path, content: bytes) -> None:
    """Write a new file, and sync it."""
    file = files.open(path, create=True)
    try:
        files.pwrite(file, content, 0)
        files.fdatasync(file)
    finally:
        files.close(file)


def is_full(failure: OSError) -> bool:
    """Tell whether there was no room, on the disk or in the quota."""
    return failure.errno in {errno.ENOSPC, errno.EDQUOT}


def reason(failure: OSError) -> str:
    """Return what the system says of a failure."""
    return failure.strerror or os.strerror(failure.errno or errno.EIO)
