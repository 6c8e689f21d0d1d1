"""Stores for tests: written step by step, so that a seed gives the same run each time."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from octopis.errors import StoreFailed
from octopis.store import Files, Store, Sync
from octopis.store import store as module
from octopis.store.spares import Spares
from octopis.store.writer import Writer

FOLDER = Path("/disk/b,2")
OWNER = "b,2"


class SteppedWriter(Writer):
    """The writer without its thread: it writes a group when it is told to."""

    def start(self) -> None:
        pass

    def step(self) -> None:
        if not self._queue.empty() or self._retry_at is not None:
            self._turn()

    def close(self) -> StoreFailed | None:
        if self._failure is None:  # else the thread would have ended
            self._queue.put(None)
            self._run()
        return self._failure


class Turns:
    """As much of an event loop as a store needs."""

    def __init__(self) -> None:
        self._soon: deque[Callable[[], object]] = deque()

    def call_soon(self, call: Callable[[], object]) -> None:
        self._soon.append(call)

    call_soon_threadsafe = call_soon

    def turn(self) -> None:
        while self._soon:
            self._soon.popleft()()


class Stepped:
    """A store on any files, with what it reported."""

    def __init__(self, files: Files, folder: Path = FOLDER, **settings: object) -> None:
        self.store = Store(folder, OWNER, files=files, **settings)  # type: ignore[arg-type]
        self.recovered = dict(self.store.recover())
        self.synced = 0
        self.failures: list[StoreFailed] = []
        self._turns = Turns()
        self.store.start(self._turns, self._on_synced, self.failures.append)  # type: ignore[arg-type]

    def _on_synced(self, ticket: int) -> None:
        assert ticket >= self.synced
        self.synced = ticket

    def step(self) -> None:
        """Hand over, write one group, hear of it."""
        self._turns.turn()
        writer = self.store._writer
        assert isinstance(writer, SteppedWriter)
        try:
            writer.step()
        except OSError as failure:
            writer._fail(str(failure))
        self._turns.turn()


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stepped]:
    """Make stores whose writing is stepped, and whose spare segments are made at once."""
    monkeypatch.setattr(module, "Writer", SteppedWriter)

    def prepare(spares: Spares) -> None:
        if not spares._ready:
            spares._prepare()

    monkeypatch.setattr(Spares, "prepare", prepare)
    return Stepped


class Live:
    """A real store with its thread, in a real loop."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.recovered = dict(store.recover())
        self.failures: list[StoreFailed] = []
        self._synced = 0
        self._waiting: asyncio.Event = asyncio.Event()
        store.start(asyncio.get_running_loop(), self._on_synced, self._on_failed)

    def _on_synced(self, ticket: int) -> None:
        self._synced = ticket
        self._waiting.set()

    def _on_failed(self, failure: StoreFailed) -> None:
        self.failures.append(failure)
        self._waiting.set()

    async def settled(self) -> None:
        """Wait until all is synced, or nothing ever will be."""
        while self._synced < self.store.ticket and not self.failures:
            self._waiting.clear()
            await asyncio.wait_for(self._waiting.wait(), 30)


@contextmanager
def opened(folder: Path, *, segment_bytes: int = 2**16, sync: Sync = Sync.ALWAYS) -> Iterator[Live]:
    """Open a real store for a while."""
    live = Live(Store(folder, OWNER, segment_bytes=segment_bytes, sync=sync))
    try:
        yield live
    finally:
        live.store.close()
