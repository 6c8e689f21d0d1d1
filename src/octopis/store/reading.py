"""Reading records where the index says they are: what lies together is read at once."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

from octopis.errors import StoreDamaged, StoreFailed
from octopis.store.files import Files
from octopis.store.folder import reason, segment_name
from octopis.store.index import Index, Segment
from octopis.store.records import bodies_in

_OPEN_MAX = 32
_READ_BYTES_MAX = 4 * 2**20


def _in_a_row(positions: Sequence[int]) -> int:
    """Return how many positions, from the first on, each are the one behind the last."""
    first, count = positions[0], len(positions)
    if positions == list(range(first, first + count)):  # as most are; this compares fast
        return count
    rising = enumerate(positions)
    return next((number for number, each in rising if each != first + number), count)


class Reader:
    """Reads from segment files, a few of which it keeps open."""

    def __init__(self, folder: Path, files: Files, index: Index, salt: int) -> None:
        self._folder = folder
        self._files = files
        self._index = index
        self._salt = salt
        self._open: dict[int, int] = {}

    def read(self, positions: Sequence[int]) -> list[bytes]:
        """Return the bodies of records that are written; raise StoreDamaged for a damaged one."""
        bodies: list[bytes] = []
        for segment, first, count in self._runs(positions):
            bodies += self._read_run(segment, first, count)
        return bodies

    def _runs(self, positions: Sequence[int]) -> Iterator[tuple[Segment, int, int]]:
        """Yield what is one behind the other in a segment: first positions and counts."""
        at = 0
        while at < len(positions):
            first = positions[at]
            segment = self._index.find(first)
            offsets, base = segment.offsets, segment.first
            number = first - base
            bound = bisect_left(offsets, offsets[number] + _READ_BYTES_MAX, number + 1)
            count = _in_a_row(positions[at : at + bound - number])
            at += count
            yield segment, first, count

    def _read_run(self, segment: Segment, first: int, count: int) -> list[bytes]:
        number = first - segment.first
        offset, end = segment.offsets[number], segment.end(number + count - 1)
        name = segment_name(segment.first)
        try:
            data = self._files.pread(self._file(segment.first), end - offset, offset)
        except FileNotFoundError as failure:
            raise StoreDamaged(str(self._folder), f"{name} is missing") from failure
        except OSError as failure:
            why = f"{name} cannot be read: {reason(failure)}"
            raise StoreFailed(str(self._folder), why) from failure
        bodies = bodies_in(data, first, count, self._salt)
        if bodies is not None:
            return bodies
        if count > 1:  # one by one: to say which, and to step over bytes that are no record
            return [self._read_run(segment, first + step, 1)[0] for step in range(count)]
        raise StoreDamaged(
            str(self._folder),
            f"record {first} is damaged, at byte {offset:,} of {name}: `octopis store check` "
            "says what else is",
        )

    def _file(self, first: int) -> int:
        file = self._open.pop(first, None)
        if file is None:
            if len(self._open) >= _OPEN_MAX:
                self.forget(next(iter(self._open)))
            file = self._files.open(self._folder / segment_name(first))
        self._open[first] = file  # the latest is the last
        return file

    def forget(self, first: int) -> None:
        """Close the file of a segment, which is about to go."""
        file = self._open.pop(first, None)
        if file is not None:
            self._files.close(file)

    def close(self) -> None:
        """Close all files."""
        for first in list(self._open):
            self.forget(first)
