"""The system calls that a store makes, and no others: tests put a failing disk behind them."""

import fcntl
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Protocol


class Files(Protocol):
    """A file system. Every call may raise OSError; files are known by their numbers."""

    def make_folder(self, path: Path) -> None:
        """Make a folder, and those on the way to it, unless it is there."""

    def names(self, folder: Path) -> list[str]:
        """Return what a folder holds, sorted."""

    def lock(self, path: Path) -> int:
        """Make a file and lock it until it is closed; raise BlockingIOError where it is locked."""

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file to read and write; `create` makes it, or empties it."""

    def close(self, file: int) -> None:
        """Close a file."""

    def size(self, file: int) -> int:
        """Return how long a file is."""

    def pread(self, file: int, length: int, offset: int) -> bytes:
        """Read; fewer bytes come only at the end of the file."""

    def pwrite(self, file: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of it."""

    def fdatasync(self, file: int) -> None:
        """Return when all that was written to the file outlives a loss of power."""

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in the place of what has it."""

    def remove(self, path: Path) -> None:
        """Remove a file."""

    def sync_folder(self, folder: Path) -> None:
        """Return when the names in a folder outlive a loss of power."""

    def database(self, path: Path) -> sqlite3.Connection:
        """Open an SQLite database, and make it where it is not there."""


class RealFiles:
    """The file system of this machine."""

    def make_folder(self, path: Path) -> None:
        """Make a folder, and those on the way to it, unless it is there."""
        if path.is_dir():
            return
        path.mkdir(parents=True, exist_ok=True)
        self.sync_folder(path.parent)

    def names(self, folder: Path) -> list[str]:
        """Return what a folder holds, sorted."""
        return sorted(path.name for path in folder.iterdir())

    def lock(self, path: Path) -> int:
        """Make a file and lock it until it is closed; raise BlockingIOError where it is locked."""
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return _locked(file)

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file to read and write; `create` makes it, or empties it."""
        how = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_TRUNC if create else 0)
        return os.open(path, how, 0o600)

    def close(self, file: int) -> None:
        """Close a file."""
        os.close(file)

    def size(self, file: int) -> int:
        """Return how long a file is."""
        return os.fstat(file).st_size

    def pread(self, file: int, length: int, offset: int) -> bytes:
        """Read; fewer bytes come only at the end of the file."""
        data = os.pread(file, length, offset)
        if len(data) in {0, length}:
            return data
        parts = [data]  # Linux reads 2 GiB at once at most
        while data:
            offset, length = offset + len(data), length - len(data)
            data = os.pread(file, length, offset) if length else b""
            parts.append(data)
        return b"".join(parts)

    def pwrite(self, file: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of it."""
        written = os.pwrite(file, data, offset)
        while written < len(data):
            written += os.pwrite(file, memoryview(data)[written:], offset + written)

    def fdatasync(self, file: int) -> None:
        """Return when all that was written to the file outlives a loss of power."""
        _datasync(file)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in the place of what has it."""
        old.replace(new)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def sync_folder(self, folder: Path) -> None:
        """Return when the names in a folder outlive a loss of power."""
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def database(self, path: Path) -> sqlite3.Connection:
        """Open an SQLite database, and make it where it is not there."""
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


class ReadOnlyFiles(RealFiles):
    """The file system of this machine for whoever must not change anything."""

    def lock(self, path: Path) -> int:
        """Lock a file that is there; raise BlockingIOError where it is locked."""
        return _locked(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def open(self, path: Path, *, create: bool = False) -> int:
        """Open a file to read."""
        assert not create, "who only reads makes nothing"
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


_datasync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


def _locked(file: int) -> int:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file
