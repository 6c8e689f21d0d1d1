"""All that one broker has on disk: a log of records, and small state."""

import sqlite3
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from octopis.errors import StoreFailed
from octopis.store import folder as folders
from octopis.store.files import Files, RealFiles
from octopis.store.index import Index
from octopis.store.journal import Batch, Journal, Run, Sync
from octopis.store.reading import Reader
from octopis.store.records import BODY_BYTES_MAX
from octopis.store.recovery import Damage, Recovery
from octopis.store.spares import Spares
from octopis.store.state import State
from octopis.store.writer import Writer

SEGMENT_BYTES = 64 * 2**20
_SYNCS_KEPT = 256


class SyncTimes(Struct, frozen=True):
    """How long the latest syncs took."""

    count: int
    mean: float
    max: int


class Store:
    """All that one broker has on disk.

    It is opened and recovered first, then started; afterwards it is used from one thread, the
    event loop's. Bodies and values are bytes whose meaning is nothing to it.
    """

    def __init__(  # noqa: PLR0913 - two facts, and four settings with defaults
        self,
        folder: Path,
        owner: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        sync: Sync = Sync.ALWAYS,
        interval_s: float = 1.0,
        files: Files | None = None,
    ) -> None:
        """Open a folder, and make it where it is not there.

        Raises StoreLocked where another process has it, StoreVersion where it has another form,
        StoreDamaged where it cannot be understood, and StoreFailed where it is somebody else's, or
        cannot be written.
        """
        assert 0 < segment_bytes < 2**32, "offsets have 32 bits"
        self._folder = folder
        self._files = files or RealFiles()
        self._sync, self._interval_s = sync, interval_s
        self._lock = folders.take(folder, self._files)
        try:
            self._format = folders.identify(folder, self._files, owner)
            self._state = State(folder, self._files)
        except OSError as failure:
            self._files.close(self._lock)
            raise StoreFailed(str(folder), folders.reason(failure)) from failure
        except BaseException:
            self._files.close(self._lock)
            raise
        self.epoch = self._format.epoch
        """A random number, made with the folder: another folder has another one."""
        self.ticket = 0
        """Rises with each append, put and delete."""
        self.has_room = True
        """False where the disk is full: what was appended waits in memory until there is room."""
        self._index = Index(segment_bytes)
        self._spares = Spares(folder, self._files, segment_bytes)
        self._reader = Reader(folder, self._files, self._index, self._format.salt)
        self._recovery = Recovery(
            folder, self._files, self._state, self._index, self._spares, self._format.salt
        )
        self.synced = 0
        """Up to this ticket all is on disk."""
        self._is_recovered = False
        self._items = self._state.items
        self._batch: Batch | None = None
        self._unwritten: dict[int, bytes] = {}
        self._written_until = 1
        self._sync_ns: deque[int] = deque(maxlen=_SYNCS_KEPT)
        self.on_syncs: Callable[[list[int]], None] = lambda _: None
        """Told how long syncs took, in nanoseconds."""

        self._writer: Writer | None = None
        self._loop: AbstractEventLoop | None = None
        self._journal: Journal | None = None
        self._news: deque[Callable[[], None]] = deque()
        self._failure: StoreFailed | None = None
        self._is_closed = False

    def recover(self) -> Iterator[tuple[int, bytes]]:
        """Yield position and body of each record that is there, in order; once, before `start`."""
        try:
            yield from self._recovery.run()
        except (OSError, sqlite3.Error) as failure:
            raise StoreFailed(str(self._folder), f"it cannot be recovered: {failure}") from failure
        self._is_recovered = True
        self._written_until = self._index.next

    @property
    def damages(self) -> list[Damage]:
        """What recovery found damaged, or missing."""
        return self._recovery.damages

    @property
    def torn(self) -> Damage | None:
        """The end that recovery cut off: it was being written when the process or machine died."""
        return self._recovery.torn

    def start(
        self,
        loop: AbstractEventLoop,
        on_synced: Callable[[int], None],
        on_failed: Callable[[StoreFailed], None],
    ) -> None:
        """Begin to write. Both are called in the loop; after `on_failed` nothing is written."""
        assert self._is_recovered, "recover first, to the end"
        assert self._writer is None, "it is started once"
        self._loop = loop
        self._on_synced, self._on_failed = on_synced, on_failed
        self._journal = Journal(
            self._folder,
            self._files,
            self._state,
            salt=self._format.salt,
            spares=self._spares,
            sync=self._sync,
            synced=self._written_until,
        )
        if self._index.last is None:
            self._spares.prepare()
        self._writer = Writer(self._folder, self._journal, self, self._interval_s)
        self._writer.start()
        if self._batch is not None:
            loop.call_soon(self._hand_over)

    def append(self, body: bytes) -> int:
        """Let a record be written soon, and return its position."""
        assert self._is_recovered, "recover first, to the end"
        assert len(body) <= BODY_BYTES_MAX, "no record is so long"
        batch = self._open_batch()
        segment, offset = self._index.append(len(body))
        position = self._index.next - 1
        runs = batch.runs
        if not runs or runs[-1].segment != segment.first:
            runs.append(Run(segment.first, segment.size, offset, position, []))
        runs[-1].bodies.append(body)
        batch.until = position + 1
        self._unwritten[position] = body
        self.ticket += 1
        batch.ticket = self.ticket
        return position

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Keep a small value, durably after all that was appended before."""
        self._change(kind, key, value)
        self._items.setdefault(kind, {})[key] = value

    def delete(self, kind: str, key: str) -> None:
        """Forget a small value."""
        self._change(kind, key, None)
        self._items.get(kind, {}).pop(key, None)

    def _change(self, kind: str, key: str, value: bytes | None) -> None:
        assert not kind.startswith("."), "kinds that begin with a dot are the store's own"
        batch = self._open_batch()
        batch.changes[kind, key] = value
        self.ticket += 1
        batch.ticket = self.ticket

    def items(self, kind: str) -> dict[str, bytes]:
        """Return all values of a kind by their keys, as of now."""
        return dict(self._items.get(kind, {}))

    def read(self, positions: Sequence[int]) -> list[bytes]:
        """Return the bodies of records, also of those that are not written yet.

        Raises StoreDamaged where one is damaged, and StoreFailed where the disk cannot be read.
        """
        if not positions:
            return []
        if max(positions) < self._written_until:
            return self._reader.read(positions)
        written = iter(
            self._reader.read([each for each in positions if each < self._written_until])
        )
        return [
            next(written) if each < self._written_until else self._unwritten[each]
            for each in positions
        ]

    def free(self, position: int) -> None:
        """Note that nobody needs a record any more."""
        self._index.free(position)

    @property
    def reclaimable(self) -> bool:
        """Tell whether there are segments of which every record is free."""
        return bool(self._index.empty(self._written_until))

    def reclaim(self, upto: int | None = None) -> int:
        """Let segments go of which every record is free; return their bytes.

        What must outlive them has to be put and synced before: where that is so of records up to
        a position only, say which.
        """
        until = self._written_until if upto is None else min(self._written_until, upto + 1)
        gone = self._index.empty(until)
        if not gone:
            return 0
        batch = self._open_batch()
        batch.gone += [(each.first, each.size) for each in gone]
        self._index.remove(gone)
        for each in gone:
            self._reader.forget(each.first)
        return sum(each.size for each in gone)

    def sparse(self, share: float, besides: Container[int] = ()) -> list[int]:
        """Return what is live in the oldest full segment of which less than `share` is live.

        What stands in `besides` is left out, and segments that hold nothing else.
        """
        return self._index.sparse(share, besides)

    @property
    def position(self) -> int:
        """The position of the last record."""
        return self._index.next - 1

    @property
    def used_bytes(self) -> int:
        """What is in use on disk: full segments, and what is written of the last one."""
        return self._index.bytes

    @property
    def live_bytes(self) -> int:
        """What records take that are not free."""
        return self._index.live_bytes

    @property
    def records(self) -> int:
        """How many records are not free."""
        return self._index.records

    @property
    def sync_ns(self) -> SyncTimes:
        """How long the latest syncs took."""
        times = self._sync_ns
        count = len(times)
        return SyncTimes(count, sum(times) / count if count else 0.0, max(times, default=0))

    def close(self) -> None:
        """Write and sync all, end the thread, and let others have the folder.

        Raises StoreFailed where something could not be written, and nobody was told yet.
        """
        if self._is_closed:
            return
        self._is_closed = True
        was_known = self._failure
        if self._writer is not None:
            self._hand_over()
            self._writer.close()
            self._collect()
        self._reader.close()
        if self._journal is not None:
            self._journal.release()
        else:
            self._state.close()
        self._files.close(self._lock)
        if self._failure is not None and was_known is None:
            raise self._failure

    def _open_batch(self) -> Batch:
        """Return what is handed over when the loop has done all that is to be done now."""
        if self._failure is not None:
            raise StoreFailed(self._failure.folder, self._failure.reason)
        assert not self._is_closed, "the store is closed"
        if self._batch is None:
            self._batch = Batch(self.ticket)
            if self._loop is not None:
                self._loop.call_soon(self._hand_over)
        return self._batch

    def _hand_over(self) -> None:
        if self._batch is not None and self._writer is not None:
            self._writer.give(self._batch)
            self._batch = None

    # What the writing thread says comes here in that thread, and is heard in the loop.

    def written(self, ticket: int, until: int, sync_ns: list[int]) -> None:
        """All up to a ticket is on disk, as the way of syncing has it, and below a position."""
        self._tell(partial(self._hear_written, ticket, until, sync_ns))

    def room(self, *, there_is: bool) -> None:
        """There is no room, or there is again."""
        self._tell(partial(self._hear_room, there_is))

    def failed(self, failure: StoreFailed) -> None:
        """Nothing can be written any more."""
        self._tell(partial(self._hear_failed, failure))

    def _tell(self, news: Callable[[], None]) -> None:
        self._news.append(news)
        assert self._loop is not None
        with suppress(RuntimeError):  # a loop that is closed hears nothing, but `close` does
            self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        while self._news:
            self._news.popleft()()

    def _hear_written(self, ticket: int, until: int, sync_ns: list[int]) -> None:
        for position in range(self._written_until, until):
            del self._unwritten[position]
        self._written_until = max(self._written_until, until)
        self._sync_ns.extend(sync_ns)
        self.on_syncs(sync_ns)
        self.synced = ticket
        self._on_synced(ticket)

    def _hear_room(self, there_is: bool) -> None:
        self.has_room = there_is

    def _hear_failed(self, failure: StoreFailed) -> None:
        self._failure = failure
        self._on_failed(failure)
