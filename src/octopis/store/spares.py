"""Segments that are ready before they are needed: filled with zeros once, and then used again.

Writing into a file that has its full length and all its blocks is what makes a sync cheap: only
data goes to the disk. What an old segment holds may stay in it, because its positions are lower
than those that come.
"""

import errno
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

from octopis.store.files import Files
from octopis.store.folder import DRAFT, SPARE, is_full

_KEPT_MAX = 2
_BLOCK = bytes(2**20)
_SYNC_EVERY = 8 * 2**20
"""A sync of little at a time holds up the syncs of the log for a short time only."""


class Spares:
    """Spare segments of one size. `prepare` works in a thread of its own."""

    def __init__(self, folder: Path, files: Files, size: int) -> None:
        self._folder = folder
        self._files = files
        self._size = size
        self._ready: list[Path] = []
        self._number = 0
        self._lock = Lock()
        self._preparing: Thread | None = None
        self._is_closing = False
        self.lacks_room = False
        """Whether the last try to make one ahead has found no room."""

    def prepare(self) -> None:
        """Begin to make a spare segment, unless there is one; again, if there was no room."""
        under_way = self._preparing
        if self._ready or (under_way is not None and (under_way.is_alive() or not self.lacks_room)):
            return
        self._preparing = Thread(target=self._prepare, name="store-spares", daemon=True)
        self._preparing.start()

    def _prepare(self) -> None:
        try:
            self.make()
        except OSError as failure:  # whoever needs the segment meets it again, and says so
            self.lacks_room = is_full(failure)
        else:
            self.lacks_room = False

    def wait(self) -> None:
        """Return when nothing is being made."""
        if self._preparing is not None:
            self._preparing.join()
            self._preparing = None

    def close(self) -> None:
        """Return when nothing is being made, which is soon."""
        self._is_closing = True
        self.wait()

    def make(self) -> None:
        """Make a spare segment."""
        path = self._new_path()
        self._fill(path, self._size)
        self._ready.append(path)

    def take(self, target: Path, size: int) -> None:
        """Let a file of at least this size have the name of a segment, also after a crash."""
        self.wait()
        if size == self._size and self._ready:
            path = self._ready[-1]
        else:
            path = self._new_path()
            self._fill(path, size)
            self.lacks_room = False
        self._files.rename(path, target)
        if path in self._ready:
            self._ready.remove(path)
        self._files.sync_folder(self._folder)

    def give(self, path: Path, size: int) -> None:
        """Take a segment that is not needed any more, to use it again or to remove it."""
        with suppress(FileNotFoundError):  # a segment that somebody took away
            if self._is_wanted(size):
                spare = self._new_path()
                self._files.rename(path, spare)
                self._ready.append(spare)
                self.lacks_room = False
            else:
                self._files.remove(path)

    def adopt(self, path: Path, size: int) -> None:
        """Take a spare segment that was there before, by its name."""
        self._number = max(self._number, int(path.stem))
        if self._is_wanted(size):
            self._ready.append(path)
        else:
            self._files.remove(path)

    def _is_wanted(self, size: int) -> bool:
        return size == self._size and len(self._ready) < _KEPT_MAX

    def _new_path(self) -> Path:
        with self._lock:
            self._number += 1
            return self._folder / f"{self._number:06d}{SPARE}"

    def _fill(self, path: Path, size: int) -> None:
        """Write a file of zeros, and sync it; nothing stays of one that has no room."""
        draft = path.with_suffix(DRAFT)
        file = self._files.open(draft, create=True)
        try:
            for offset in range(0, size, len(_BLOCK)):
                if self._is_closing:
                    raise InterruptedError(errno.EINTR, "the store is being closed")
                length = min(len(_BLOCK), size - offset)
                self._files.pwrite(file, memoryview(_BLOCK)[:length], offset)
                if (offset + length) % _SYNC_EVERY == 0:
                    self._files.fdatasync(file)
            self._files.fdatasync(file)
        except OSError:
            with suppress(OSError):
                self._files.remove(draft)
            raise
        finally:
            self._files.close(file)
        self._files.rename(draft, path)
        self._files.sync_folder(self._folder)
