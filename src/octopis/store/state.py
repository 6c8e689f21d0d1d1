"""The small state of a store, in SQLite: what its user puts, and which segments there are.

SQLite keeps a write-ahead log: a transaction is one sync there, three or four with a rollback
journal. Only one process ever opens the database, so the log needs no shared memory. SQLite finds
damage of its own structure; a checksum beside each value finds the rest.
"""

import sqlite3
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from zlib import crc32

from octopis.errors import StoreDamaged, StoreFailed
from octopis.store.files import Files

NAME = "state.db"
Key = tuple[str, str]

_CHECKSUM = struct.Struct("<I")
_NUMBER = struct.Struct("<Q")
_SEGMENT, _MARK = ".segment", ".mark"
_SYNCED: Key = (_MARK, "synced")
_SURROUNDINGS = (
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
"""What SQLite says where not the database is at fault."""

_SETTINGS = (
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
)
_TABLE = (
    "CREATE TABLE IF NOT EXISTS state (kind TEXT NOT NULL, key TEXT NOT NULL, "
    "value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
)


class State:
    """One table, written by one connection. Raises StoreDamaged where it is not whole."""

    def __init__(self, folder: Path, files: Files, *, make: bool = False) -> None:
        """`make` is for a new folder: elsewhere a table that is not there is damage."""
        self._folder = folder
        self.segments: dict[int, int | None] = {}
        """First positions, and those behind the last ones; None where it is being written."""
        self.synced = 1
        """All positions below were used, and synced: also where their segments are gone."""
        try:
            self._connection = files.database(folder / NAME)
            try:
                for setting in _SETTINGS:
                    self._connection.execute(setting)
                if make:
                    self._connection.execute(_TABLE)
                    self.write({}, self.synced)
                self.items = self._load()
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as failure:
            raise self._error(failure) from failure

    def _load(self) -> dict[str, dict[str, bytes]]:
        """Return all that was put, by kind and key; take out what is ours."""
        faults = [row[0] for row in self._connection.execute("PRAGMA quick_check(1)")]
        if faults != ["ok"]:
            raise self._damage(str(faults[0]))
        items: dict[str, dict[str, bytes]] = {}
        for kind, key, stored in self._connection.execute("SELECT kind, key, value FROM state"):
            if not _is_whole(kind, key, stored):
                raise self._damage(f"the value of {kind} {key} has another checksum")
            items.setdefault(kind, {})[key] = stored[_CHECKSUM.size :]
        for first, value in items.pop(_SEGMENT, {}).items():
            self.segments[int(first)] = _number(value) or None
        marks = items.pop(_MARK, {})
        if _SYNCED[1] not in marks:
            raise self._damage("what was synced is not noted")
        self.synced = _number(marks[_SYNCED[1]])
        return items

    def write(self, changes: Mapping[Key, bytes | None], synced: int) -> None:
        """Put and delete (None), and note what is synced, in one transaction: all or nothing."""
        self._write([*changes.items(), (_SYNCED, _NUMBER.pack(synced))])
        self.synced = synced

    def add_segment(self, first: int) -> None:
        """Note a segment that is about to be written; the one before ends where it begins."""
        ended = [each for each, until in self.segments.items() if until is None]
        changes: list[tuple[Key, bytes | None]] = [
            ((_SEGMENT, str(each)), _NUMBER.pack(first)) for each in ended
        ]
        self._write([*changes, ((_SEGMENT, str(first)), _NUMBER.pack(0))])
        self.segments.update(dict.fromkeys(ended, first))
        self.segments[first] = None

    def remove_segments(self, firsts: Iterable[int], synced: int) -> None:
        """Forget segments: from now on their files mean nothing."""
        gone = list(firsts)
        removed: list[tuple[Key, bytes | None]] = [((_SEGMENT, str(each)), None) for each in gone]
        self._write([*removed, (_SYNCED, _NUMBER.pack(synced))])
        self.synced = synced
        for first in gone:
            self.segments.pop(first, None)

    def _write(self, changes: list[tuple[Key, bytes | None]]) -> None:
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        try:
            for (kind, key), value in changes:
                if value is None:
                    run("DELETE FROM state WHERE kind = ? AND key = ?", (kind, key))
                else:
                    stored = _CHECKSUM.pack(_checksum(kind, key, value)) + value
                    run("INSERT OR REPLACE INTO state VALUES (?, ?, ?)", (kind, key, stored))
            run("COMMIT")
        except sqlite3.Error:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()

    def _error(self, failure: sqlite3.Error) -> StoreFailed:
        code = getattr(failure, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # not on all errors
        if code & 0xFF in _SURROUNDINGS:
            return StoreFailed(str(self._folder), f"{NAME} cannot be opened: {failure}")
        return self._damage(str(failure))

    def _damage(self, what: str) -> StoreDamaged:
        return StoreDamaged(
            str(self._folder),
            f"{NAME} is damaged ({what}): put a copy of the whole folder back, or move the folder "
            "away and start with an empty one",
        )


def _checksum(kind: str, key: str, value: bytes) -> int:
    return crc32(value, crc32(f"{kind}\0{key}\0".encode()))


def _is_whole(kind: object, key: object, stored: object) -> bool:
    if not (isinstance(kind, str) and isinstance(key, str) and isinstance(stored, bytes)):
        return False
    head, value = stored[: _CHECKSUM.size], stored[_CHECKSUM.size :]
    return head == _CHECKSUM.pack(_checksum(kind, key, value))


def _number(value: bytes) -> int:
    return int(_NUMBER.unpack(value)[0])
