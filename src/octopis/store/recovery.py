"""What a store finds when it is opened: every record that is still there, and what is damaged.

Only the end of the last segment may be torn: what was being written when the process or the machine
died, and nobody was told that it is safe. It is cut off. Wherever records are missing that once
were synced, the disk has lost them: the bytes in their place go to quarantine and are reported.
"""

import errno
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from octopis.store.files import Files
from octopis.store.folder import (
    DRAFT,
    QUARANTINE,
    SEGMENT,
    SPARE,
    segment_name,
    write_whole,
)
from octopis.store.index import Index, Segment
from octopis.store.records import Hole, Scan, body_at, scan
from octopis.store.spares import Spares
from octopis.store.state import State

_PIECE_BYTES = 4096


class Damage(Struct, frozen=True):
    """Bytes of a segment in whose place there should be something else."""

    segment: str
    offset: int
    length: int
    reason: str
    quarantined: str | None = None
    """The file to which the bytes were copied."""


class Found(Struct):
    """One segment file, and what is in it."""

    scan: Scan
    data: bytes
    lost: list[Hole]
    """Where records are missing that were synced once."""
    torn: Hole | None
    """Where the end is cut off; None where nothing had to be."""
    known: int
    """All positions below are known to have been synced."""

    @property
    def until(self) -> int:
        """The position behind the last one, lost or not."""
        return max([self.scan.until, *(hole.until for hole in self.lost)])


def look(data: bytes, first: int, until: int | None, synced: int, salt: int) -> Found:
    """Find what a segment holds; `until` is None for the last one, whose end may be torn."""
    found = scan(data, first, until, salt)
    known = max(found.proven, synced) if until is None else until
    torn = next((hole for hole in found.holes if hole.first >= known), None)
    if torn is not None:  # nothing proves that it was synced: with it goes all that is behind it
        del found.offsets[torn.first - first :]
        found.used = torn.offset
        found.holes = [hole for hole in found.holes if hole.offset < torn.offset]
    lost = list(found.holes)
    if found.until < known:
        rest = len(data[found.used :].rstrip(b"\0"))
        lost.append(Hole(found.used, rest, found.until, known))
    return Found(found, data, lost, torn, known)


def describe(first: int, hole: Hole, quarantined: str | None = None) -> Damage:
    """Say what a hole is."""
    count = hole.until - hole.first
    if count == 0:
        what = "bytes that are no record"
    elif count == 1:
        what = f"record {hole.first} is damaged or missing"
    else:
        what = f"records {hole.first} to {hole.until - 1} are damaged or missing"
    return Damage(segment_name(first), hole.offset, hole.length, what, quarantined)


def read_segment(folder: Path, files: Files, first: int) -> bytes | None:
    """Return all of a segment, with zeros for what the disk cannot read; None where it is gone."""
    try:
        file = files.open(folder / segment_name(first))
    except FileNotFoundError:
        return None
    try:
        size = files.size(file)
        try:
            return files.pread(file, size, 0)
        except OSError as failure:
            if failure.errno != errno.EIO:
                raise
        data = bytearray(size)
        for offset in range(0, size, _PIECE_BYTES):
            with suppress(OSError):
                piece = files.pread(file, _PIECE_BYTES, offset)
                data[offset : offset + len(piece)] = piece
        return bytes(data)
    finally:
        files.close(file)


class Recovery:
    """Fills the index from the segments, and leaves the files as if nothing had happened."""

    def __init__(  # noqa: PLR0913, PLR0917 - what one store is made of
        self, folder: Path, files: Files, state: State, index: Index, spares: Spares, salt: int
    ) -> None:
        self._folder = folder
        self._files = files
        self._state = state
        self._index = index
        self._spares = spares
        self._salt = salt
        self.damages: list[Damage] = []
        self.torn: Damage | None = None
        """The end that was cut off: nobody was told that it is safe."""

    def run(self) -> Iterator[tuple[int, bytes]]:
        """Yield each record that is there, in the order of positions."""
        self._tidy()
        for first, until in sorted(self._state.segments.items()):
            yield from self._recover(first, until)
        self._index.next = max(self._index.next, self._state.synced)

    def _tidy(self) -> None:
        """Remove what was half made, and use again what is in no use."""
        paths = [self._folder / name for name in self._files.names(self._folder)]
        for path in paths:
            if path.suffix == DRAFT:
                self._files.remove(path)
            elif path.suffix == SPARE:
                self._spares.adopt(path, self._size(path))
        for path in paths:  # after all spare ones, whose names are taken
            if path.suffix == SEGMENT and int(path.stem) not in self._state.segments:
                self._spares.give(path, self._size(path))
        self._files.sync_folder(self._folder)

    def _size(self, path: Path) -> int:
        file = self._files.open(path)
        try:
            return self._files.size(file)
        finally:
            self._files.close(file)

    def _recover(self, first: int, until: int | None) -> Iterator[tuple[int, bytes]]:
        data = read_segment(self._folder, self._files, first)
        if data is None:
            yield from self._missing(first, until)
            return
        found = look(data, first, until, self._state.synced, self._salt)
        if until is None:
            self._cut(first, found)
            if found.until == first:  # it had just been begun
                self._state.remove_segments([first], max(first, self._state.synced))
                self._spares.give(self._folder / segment_name(first), len(data))
                return
        segment = Segment(first, len(data))
        segment.recovered(found.scan.offsets, found.scan.used)
        for hole in found.lost:
            inside = hole.length if hole.offset < found.scan.used else 0
            segment.lose(hole.first, hole.until, inside)
            self._damaged(first, hole, data)
        # Behind records that are missing at the end nothing is written: what is there is evidence.
        segment.is_full = found.scan.until < found.until
        self._index.add_segment(segment)
        for number, offset in enumerate(found.scan.offsets):
            position = first + number
            if not segment.is_lost(position):
                body = body_at(data, offset, position, self._salt)
                assert body is not None, "it was whole a moment ago"
                yield position, body

    def _missing(self, first: int, until: int | None) -> Iterator[tuple[int, bytes]]:
        """Note that a whole segment is gone, unless nothing was ever synced into it."""
        behind = max(first, self._state.synced) if until is None else until
        segment = Segment(first, 0)
        if behind > first:
            segment.lose(first, behind, 0)
            self.damages.append(
                Damage(
                    segment_name(first),
                    0,
                    0,
                    f"it is missing, with records {first} to {behind - 1}",
                )
            )
            segment.is_full = True
            self._index.add_segment(segment)
        else:
            self._state.remove_segments([first], behind)
        yield from ()

    def _cut(self, first: int, found: Found) -> None:
        """Zero what is behind the last record, so that nothing of it is ever taken for one."""
        used = found.scan.used
        path = self._folder / segment_name(first)
        rest = found.data[used:].rstrip(b"\0")
        file = self._files.open(path)
        try:
            if rest and found.scan.until == found.until:
                if found.torn is not None:
                    kept = self._quarantine(first, used, rest)
                    why = "the end was being written, and nobody was told that it is safe"
                    self.torn = Damage(segment_name(first), used, len(rest), why, kept)
                self._files.pwrite(file, bytes(len(rest)), used)
            self._write_again(file, first, found)
        finally:
            self._files.close(file)

    def _write_again(self, file: int, first: int, found: Found) -> None:
        """Sync what a killed process may have left in memory only: later records say it is safe.

        Where a sync had failed, the kernel takes it for clean, and would not write it otherwise.
        """
        number = found.known - first
        if number < len(found.scan.offsets):
            offset = found.scan.offsets[number]
            self._files.pwrite(file, found.data[offset : found.scan.used], offset)
        self._files.fdatasync(file)

    def _damaged(self, first: int, hole: Hole, data: bytes) -> None:
        kept = self._quarantine(first, hole.offset, data[hole.offset : hole.offset + hole.length])
        self.damages.append(describe(first, hole, kept))

    def _quarantine(self, first: int, offset: int, damaged: bytes) -> str | None:
        """Copy damaged bytes to a file of their own; None where there are none, or no room."""
        if not damaged:
            return None
        folder = self._folder / QUARANTINE
        name = f"{first:020d}-{offset}.bytes"
        with suppress(OSError):
            self._files.make_folder(folder)
            write_whole(self._files, folder / name, damaged)
            self._files.sync_folder(folder)
            return f"{QUARANTINE}/{name}"
        return None
