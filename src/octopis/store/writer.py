"""The thread that writes: it takes everything that has come while the last sync ran."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol

from octopis.errors import StoreFailed
from octopis.store.folder import is_full, reason
from octopis.store.journal import Batch, Journal

RETRY_S = 1.0
"""So long it waits for room before it tries again."""


class Listener(Protocol):
    """Whoever is told what has become of batches; called in the writing thread."""

    def written(self, ticket: int, until: int, sync_ns: list[int]) -> None:
        """All up to a ticket is on disk, as the way of syncing has it, and below a position."""

    def room(self, *, there_is: bool) -> None:
        """There is no room, or there is again."""

    def failed(self, failure: StoreFailed) -> None:
        """Nothing can be written any more."""


class Writer:
    """Writes batches in a thread of its own, until it is closed or a write fails."""

    def __init__(
        self,
        folder: Path,
        journal: Journal,
        listener: Listener,
        interval_s: float,
    ) -> None:
        self._folder = folder
        self._journal = journal
        self._listener = listener
        self._interval_s = interval_s
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._ticket = self._until = 0
        self._has_news = self._is_closing = False
        self._has_room = True
        self._sync_at = self._prepare_at = 0.0
        self._retry_at: float | None = None
        self._failure: StoreFailed | None = None
        self._thread = Thread(target=self._run, name=f"store {folder.name}", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def give(self, batch: Batch) -> None:
        """Let a batch be written, after all before it."""
        self._queue.put(batch)

    def close(self) -> StoreFailed | None:
        """Return when all is written and synced and the thread has ended, or why it is not."""
        self._queue.put(None)
        self._thread.join()
        return self._failure

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._turn()
            self._guarded(self._journal.close)
            if self._retry_at is not None:
                self._fail("there is no room for what was not written yet")
        except OSError as failure:
            self._fail(reason(failure))
        except Exception as failure:  # noqa: BLE001 - whatever it is, nobody must wait for it
            self._fail(str(failure))

    def _turn(self) -> None:
        """Write one group."""
        self._take()
        self._guarded(self._work)

    def _take(self) -> None:
        """Wait until there is something to do, and take all that is there."""
        batch = self._next(self._wait_s())
        while batch is not None:
            if batch.gone:  # the room that they leave may be what others wait for
                self._retry_at = None if self._retry_at is None else 0.0
            self._journal.take(batch)
            self._ticket = max(self._ticket, batch.ticket)
            self._until = max(self._until, batch.until)
            self._has_news = True
            batch = self._next(0.0)

    def _next(self, wait_s: float | None) -> Batch | None:
        try:
            batch = self._queue.get(timeout=wait_s) if wait_s != 0 else self._queue.get_nowait()
        except Empty:
            return None
        if batch is None:
            self._is_closing = True
        return batch

    def _wait_s(self) -> float | None:
        """Return how long nothing need be done; None where nothing is under way."""
        now = time.monotonic()
        if self._retry_at is not None:
            return max(0.0, self._retry_at - now)
        if not self._has_room:
            return RETRY_S
        return max(0.0, self._sync_at - now) if self._journal.is_dirty else None

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do something that may find no room: then it is tried again later."""
        try:
            work()
        except OSError as failure:
            if not is_full(failure):
                raise
            self._wait_for_room()
        except sqlite3.Error as failure:
            if getattr(failure, "sqlite_errorcode", None) != sqlite3.SQLITE_FULL:
                raise
            self._wait_for_room()

    def _work(self) -> None:
        now = time.monotonic()
        if self._retry_at is not None and now < self._retry_at and not self._is_closing:
            return
        self._journal.flush()
        self._retry_at = None
        self._look_ahead(now)
        if self._has_news:
            self._has_news = False
            sync_ns, self._journal.sync_ns = self._journal.sync_ns, []
            self._listener.written(self._ticket, self._until, sync_ns)
            self._journal.prepare()
        if self._journal.is_dirty and now >= self._sync_at:
            self._journal.sync()
            self._sync_at = time.monotonic() + self._interval_s

    def _look_ahead(self, now: float) -> None:
        """Say that there is no room while there is a little left.

        Whoever frees something writes that down first: on a disk without any room nobody could.
        """
        if self._journal.lacks_room and now >= self._prepare_at:
            self._prepare_at = now + RETRY_S
            self._journal.prepare()
        self._say_room(there_is=not self._journal.lacks_room)

    def _wait_for_room(self) -> None:
        self._say_room(there_is=False)
        self._retry_at = time.monotonic() + RETRY_S

    def _say_room(self, *, there_is: bool) -> None:
        if there_is != self._has_room:
            self._has_room = there_is
            self._listener.room(there_is=there_is)

    def _fail(self, why: str) -> None:
        self._failure = StoreFailed(
            str(self._folder),
            f"it cannot be written any more: {why}; what was accepted is kept: look after the "
            "disk, then start the broker again",
        )
        self._listener.failed(self._failure)
