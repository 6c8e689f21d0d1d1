"""`octopis bench store`: how fast a broker's records reach the disk, and come back from it."""

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from octopis.errors import StoreFailed
from octopis.store import Store

BODY_BYTES = 300
GROUP = 64
GROUPS = 3_000
SINGLES = 2_000
READ = 1_000
_OWNER = "bench"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure; `target` is what we set out to reach, where there is such a figure."""

    what: str
    value: float
    unit: str
    target: str = ""


def run(records: int, folder: Path | None) -> Iterator[Figure]:
    """Yield each figure when it is measured; files are made in `folder`, and removed."""
    with TemporaryDirectory(dir=folder) as parent:
        yield from _writing(Path(parent) / "groups")
        yield from _one_at_a_time(Path(parent))
        yield from _reading(Path(parent) / "many", records)


class _Syncs:
    """Waits for tickets of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._synced = asyncio.Event()
        store.start(asyncio.get_running_loop(), self._on_synced, self._on_failed)
        self._failure: StoreFailed | None = None

    def _on_synced(self, ticket: int) -> None:
        if ticket >= self._store.ticket:
            self._synced.set()

    def _on_failed(self, failure: StoreFailed) -> None:
        self._failure = failure
        self._synced.set()

    async def wait(self) -> None:
        """Return when all is synced."""
        self._synced.clear()
        await self._synced.wait()
        if self._failure is not None:
            raise self._failure


def _opened(folder: Path) -> Store:
    store = Store(folder, _OWNER)
    for _ in store.recover():
        raise AssertionError("the folder is new")
    return store


def _bodies(count: int) -> list[bytes]:
    return [os.urandom(BODY_BYTES) for _ in range(count)]


async def _write(store: Store, groups: int, size: int) -> list[float]:
    """Append groups, each when the one before is synced; return the seconds of each."""
    syncs = _Syncs(store)
    bodies = _bodies(size)
    store.append(b"")  # the first segment is made
    await syncs.wait()
    seconds = []
    for _ in range(groups):
        begun = time.perf_counter()
        for body in bodies:
            store.append(body)
        await syncs.wait()
        seconds.append(time.perf_counter() - begun)
    store.close()
    return seconds


def _writing(folder: Path) -> Iterator[Figure]:
    seconds = asyncio.run(_write(_opened(folder), GROUPS, GROUP))
    yield Figure(f"synced, groups of {GROUP}", GROUP * GROUPS / sum(seconds), "records/s")
    yield Figure(f"one group of {GROUP}, median", 1e6 * median(seconds), "us")
    yield Figure("slowest group", 1e3 * max(seconds), "ms")


def _one_at_a_time(parent: Path) -> Iterator[Figure]:
    """Measure single records beside the least that any store has to do, in turns."""
    plain, ours = [], []
    for turn in range(4):
        plain += _plain(parent / f"plain{turn}", SINGLES // 4)
        ours += asyncio.run(_write(_opened(parent / f"single{turn}"), SINGLES // 4, 1))
    yield Figure("plain pwrite and fdatasync, median", 1e6 * median(plain), "us")
    yield Figure("one record at a time, median", 1e6 * median(ours), "us")


def _plain(path: Path, count: int) -> list[float]:
    """Write into a file that is as long as it will be, and sync, again and again."""
    body = os.urandom(BODY_BYTES + 20)
    path.write_bytes(bytes(len(body) * count))
    file = os.open(path, os.O_RDWR)
    os.fsync(file)
    seconds = []
    for number in range(count):
        begun = time.perf_counter()
        os.pwrite(file, body, number * len(body))
        os.fdatasync(file)
        seconds.append(time.perf_counter() - begun)
    os.close(file)
    return seconds


def _reading(folder: Path, records: int) -> Iterator[Figure]:
    asyncio.run(_write(_opened(folder), records // READ, READ))
    store = Store(folder, _OWNER)
    begun = time.perf_counter()
    found = [position for position, _ in store.recover()]
    yield Figure(f"recovery of {len(found):,}", time.perf_counter() - begun, "s", "below 5")
    begun = time.perf_counter()
    for start in range(0, len(found), READ):
        store.read(found[start : start + READ])
    rate = len(found) / (time.perf_counter() - begun)
    yield Figure(f"read in batches of {READ:,}", rate, "records/s", "above 500,000")
    store.close()
