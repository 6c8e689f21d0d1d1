"""A disk in memory that does what disks do: it loses, tears and reorders what is not synced."""

import errno
import sqlite3
from collections.abc import Callable
from copy import copy
from pathlib import Path
from random import Random

SECTOR = 512


class Crash(BaseException):
    """The machine is off. No error of the store's own: nobody may catch it."""


class Inode:
    """A file: what is on disk, what processes see, and every state a sector had in between."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.durable = bytearray()
        self.between: dict[int, list[bytes]] = {}

    def write(self, data: bytes, offset: int) -> None:
        end = offset + len(data)
        self.seen.extend(bytes(max(0, end - len(self.seen))))
        self.seen[offset:end] = data
        for sector in range(offset // SECTOR, -(-end // SECTOR)):
            state = bytes(self.seen[sector * SECTOR : (sector + 1) * SECTOR])
            self.between.setdefault(sector, []).append(state)

    def sync(self) -> None:
        """Let those sectors reach the disk that are known to be dirty."""
        for sector, states in self.between.items():
            offset = sector * SECTOR
            end = offset + len(states[-1])
            self.durable.extend(bytes(max(0, end - len(self.durable))))
            self.durable[offset:end] = states[-1]
        self.between = {}

    def sync_left(self) -> None:
        """Sync, and lose what is in memory only."""
        self.sync()
        self.seen = bytearray(self.durable)

    def lose_power(self, chance: Random) -> None:
        """Keep of each sector any state that it had since the last sync."""
        left = bytearray(self.durable)
        for sector, states in self.between.items():
            state = chance.choice([None, *states])
            if state is not None:
                offset = sector * SECTOR
                left.extend(bytes(max(0, offset + len(state) - len(left))))
                left[offset : offset + len(state)] = state
        self.seen, self.durable, self.between = left, bytearray(left), {}


class KeptDatabase(sqlite3.Connection):
    """A database that stays when it is closed; a crash undoes what was not committed."""

    step: Callable[[], None] = staticmethod(lambda: None)

    def execute(self, sql: str, *rest: object) -> sqlite3.Cursor:
        if sql == "COMMIT":
            self.step()
        return super().execute(sql, *rest)

    def close(self) -> None:
        if self.in_transaction:
            self.rollback()


class Disk:
    """Files for a store. `calls` counts; the call with the number `crash_at` never happens."""

    def __init__(self) -> None:
        self.names_seen: dict[Path, Inode] = {}
        self.names_durable: dict[Path, Inode] = {}
        self._renames: list[dict[Path, Inode]] = []
        self._open: dict[int, Inode | None] = {}
        self._locked: dict[int, Path] = {}
        self._number = 2
        self._database: KeptDatabase | None = None
        self.calls = 0
        self.crash_at: int | None = None
        self.room: int | None = None
        self.sync_failure: int | None = None

    def _step(self) -> None:
        self.calls += 1
        if self.crash_at is not None and self.calls >= self.crash_at:
            raise Crash

    def _renamed(self, names: dict[Path, Inode]) -> None:
        self.names_seen = names
        self._renames.append(names)

    def _new_number(self, inode: Inode | None) -> int:
        self._number += 1
        self._open[self._number] = inode
        return self._number

    def lose_power(self, chance: Random) -> None:
        """Turn the machine off and on again."""
        names = chance.choice([self.names_durable, *self._renames])
        inodes = {id(each): each for each in names.values()}
        for inode in inodes.values():
            inode.lose_power(chance)
        self.names_seen, self.names_durable = dict(names), dict(names)
        self.kill()
        self._renames = []

    def kill(self) -> None:
        """End the process: what it has written stays, its locks do not."""
        self._open, self._locked, self.crash_at = {}, {}, None
        if self._database is not None:
            self._database.close()

    def make_folder(self, _: Path) -> None:
        self._step()

    def names(self, folder: Path) -> list[str]:
        found = {path.name for path in self.names_seen if path.parent == folder}
        return sorted(found | ({"state.db"} if self._database is not None else set()))

    def lock(self, path: Path) -> int:
        if path in self._locked.values():
            raise BlockingIOError(errno.EWOULDBLOCK, "locked")
        number = self._new_number(None)
        self._locked[number] = path
        return number

    def open(self, path: Path, *, create: bool = False) -> int:
        self._step()
        if create:
            self._renamed({**self.names_seen, path: Inode()})
        if path not in self.names_seen:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return self._new_number(self.names_seen[path])

    def close(self, file: int) -> None:
        self._open.pop(file, None)
        self._locked.pop(file, None)

    def _at(self, file: int) -> Inode:
        inode = self._open[file]
        assert inode is not None
        return inode

    def size(self, file: int) -> int:
        return len(self._at(file).seen)

    def pread(self, file: int, length: int, offset: int) -> bytes:
        return bytes(self._at(file).seen[offset : offset + length])

    def pwrite(self, file: int, data: bytes | memoryview, offset: int) -> None:
        inode = self._at(file)
        try:
            self._step()
        except Crash:
            inode.write(bytes(data)[: len(data) // 2], offset)
            raise
        growth = max(0, offset + len(data) - len(inode.seen))
        if self.room is not None and growth > self.room:
            inode.write(bytes(data)[: len(data) - growth], offset)
            raise OSError(errno.ENOSPC, "No space left on device")
        if self.room is not None:
            self.room -= growth
        inode.write(bytes(data), offset)

    def fdatasync(self, file: int) -> None:
        self._step()
        if self.sync_failure is not None:
            self._at(file).between = {}  # as Linux has it: the pages are clean, the disk is not
            raise OSError(self.sync_failure, "the disk cannot")
        self._at(file).sync()

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        names = copy(self.names_seen)
        names[new] = names.pop(old)
        self._renamed(names)

    def remove(self, path: Path) -> None:
        self._step()
        if self.room is not None:
            self.room += len(self.names_seen[path].seen)
        self._renamed({name: each for name, each in self.names_seen.items() if name != path})

    def sync_folder(self, _: Path) -> None:
        self._step()
        self.names_durable, self._renames = dict(self.names_seen), []

    def database(self, _: Path) -> sqlite3.Connection:
        if self._database is None:
            self._database = sqlite3.connect(
                ":memory:", isolation_level=None, check_same_thread=False, factory=KeptDatabase
            )
            self._database.step = self._step
        return self._database
