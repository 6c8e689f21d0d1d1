"""Writes what a store is told, in groups: first the records, synced, then the state.

It knows no threads: whoever has it takes batches and flushes. A flush that finds no room leaves off
where it is, and the next one goes on there. After any other failure nothing is synced again: the
kernel may have taken pages for clean that never reached the disk.
"""

import errno
import time
from collections import deque
from enum import Enum
from pathlib import Path

from msgspec import Struct, field

from octopis.store.files import Files
from octopis.store.folder import reason, segment_name
from octopis.store.records import encode
from octopis.store.spares import Spares
from octopis.store.state import Key, State


class Sync(Enum):
    """When what is written is synced."""

    ALWAYS = "always"
    """Each group, before it is reported: it survives a loss of power."""

    INTERVAL = "interval"
    """From time to time: what is reported survives the death of the process, no loss of power."""


class Run(Struct):
    """Records that lie one behind the other in a segment."""

    segment: int
    size: int
    offset: int
    position: int
    bodies: list[bytes]

    @property
    def until(self) -> int:
        """The position behind the last one."""
        return self.position + len(self.bodies)


class Batch(Struct):
    """What the store was told in one go; `ticket` is the number of the last of it."""

    ticket: int = 0
    until: int = 0
    runs: list[Run] = field(default_factory=list)
    changes: dict[Key, bytes | None] = field(default_factory=dict)
    gone: list[tuple[int, int]] = field(default_factory=list)
    """Segments that nobody needs: first positions and sizes."""


class Journal:
    """The writing side of a store; used by one thread at a time."""

    def __init__(  # noqa: PLR0913 - what one store is made of
        self,
        folder: Path,
        files: Files,
        state: State,
        *,
        salt: int,
        spares: Spares,
        sync: Sync,
        synced: int,
    ) -> None:
        """All positions below `synced` are on disk."""
        self._folder = folder
        self._files = files
        self._state = state
        self._salt = salt
        self._spares = spares
        self._sync = sync
        self._file: int | None = None
        self._segment = 0
        self._runs: deque[Run] = deque()
        self._changes: dict[Key, bytes | None] = {}
        self._gone: list[tuple[int, int]] = []
        self._is_half_full = False
        self._synced = self._written = synced
        self.sync_ns: list[int] = []
        """How long the latest syncs took, for whoever empties it."""

    @property
    def is_dirty(self) -> bool:
        """Tell whether something is written that is not synced."""
        return self._synced < self._written

    def take(self, batch: Batch) -> None:
        """Take what is to be written next."""
        self._runs.extend(batch.runs)
        self._changes.update(batch.changes)
        self._gone += batch.gone

    def flush(self) -> None:
        """Write all that was taken.

        Raises OSError or sqlite3.Error; where that is for lack of room, it can be called again.
        """
        self._remove_gone()
        while self._runs:
            self._write_segment()
        if self._changes:
            self.sync()
            self._state.write(self._changes, self._synced)
            self._changes = {}

    def _write_segment(self) -> None:
        """Write what comes next and belongs into one segment."""
        first = self._runs[0].segment
        runs = []
        for run in self._runs:
            if run.segment != first:
                break
            runs.append(run)
        if first != self._segment:
            self._begin(first, runs[0].size)
        assert self._file is not None
        parts: list[bytes] = []
        for run in runs:
            parts += encode(run.position, run.bodies, run.position - self._synced, self._salt)
        self._files.pwrite(self._file, b"".join(parts), runs[0].offset)
        self._written = runs[-1].until
        self._is_half_full = runs[-1].offset > runs[-1].size // 2
        if self._sync is Sync.ALWAYS:
            self.sync()
        for _ in runs:
            self._runs.popleft()

    @property
    def lacks_room(self) -> bool:
        """Tell whether there is no room for the next segment: what is left is in this one."""
        return self._spares.lacks_room

    def prepare(self) -> None:
        """Let the next segment be made ready when half of this one is full."""
        if self._is_half_full:
            self._spares.prepare()

    def sync(self) -> None:
        """Return when all that is written outlives a loss of power."""
        if not self.is_dirty:
            return
        assert self._file is not None
        begun = time.perf_counter_ns()
        try:
            self._files.fdatasync(self._file)
        except OSError as failure:
            if self._sync is Sync.ALWAYS:
                raise  # for lack of room: the same group is written once more
            raise OSError(errno.EIO, f"a sync failed ({reason(failure)})") from failure
        self.sync_ns.append(time.perf_counter_ns() - begun)
        self._synced = self._written

    def _begin(self, first: int, size: int) -> None:
        """Go on in another segment; all that was written before is synced first."""
        self.sync()
        self._close_file()
        path = self._folder / segment_name(first)
        if first not in self._state.segments:
            self._spares.take(path, size)
            self._state.add_segment(first)
        self._file = self._files.open(path)
        self._segment = first

    def _remove_gone(self) -> None:
        """Let segments go: first in the state, so that a file without a word there is nothing."""
        if not self._gone:
            return
        known = [first for first, _ in self._gone if first in self._state.segments]
        if known:
            self.sync()  # positions of segments that are gone must not come again
            self._state.remove_segments(known, self._synced)
        while self._gone:
            first, size = self._gone[0]
            self._spares.give(self._folder / segment_name(first), size)
            self._gone.pop(0)

    def close(self) -> None:
        """Sync all that is written, and write down that it was: what is missing later is damage."""
        self.sync()
        if self._state.synced < self._synced:
            self._state.write({}, self._synced)

    def _close_file(self) -> None:
        if self._file is not None:
            self._files.close(self._file)
        self._file, self._segment = None, 0

    def release(self) -> None:
        """Let go of all files, whatever has become of them."""
        self._close_file()
        self._spares.close()
        self._state.close()
