"""A disk that is full, or fails: nothing is lost, reordered or synced twice."""

import asyncio
import errno
import sqlite3
from collections.abc import Callable
from random import Random

import pytest

from octopis.errors import StoreFailed
from octopis.store import Store, Sync, writer
from support.disk import Disk
from support.stores import FOLDER, OWNER, Live, Stepped, stepped

__all__ = ["stepped"]

Make = Callable[..., Stepped]
SEGMENT_BYTES = 2048
BODY = b"x" * 300


def full(used: Stepped) -> None:
    """Append what goes into two segments, and write it."""
    for _ in range(12):
        used.store.append(BODY)
    used.step()


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
@pytest.mark.parametrize("sync", Sync)
def test_after_a_failed_sync_nothing_is_synced_again(stepped: Make, error: int, sync: Sync):
    disk = Disk()
    used = stepped(disk, segment_bytes=SEGMENT_BYTES, sync=sync, interval_s=0.0)
    used.store.append(b"safe")
    used.step()
    assert used.synced == 1
    disk.sync_failure = error
    used.store.append(b"lost")
    used.step()
    assert len(used.failures) == 1
    assert "cannot be written any more" in str(used.failures[0])
    with pytest.raises(StoreFailed, match="cannot be written any more"):
        used.store.append(b"more")
    with pytest.raises(StoreFailed, match="cannot be written any more"):
        used.store.put("names", "risk", b"")
    assert used.store.read([1, 2]) == [b"safe", b"lost"]
    disk.sync_failure = None
    calls = disk.calls
    used.store.close()
    assert disk.calls == calls, "closing must not write or sync"


def test_what_is_recovered_after_a_failed_sync_is_really_on_disk(stepped: Make):
    disk = Disk()
    used = stepped(disk, segment_bytes=SEGMENT_BYTES)
    used.store.append(b"safe")
    used.step()
    disk.sync_failure = errno.EIO
    used.store.append(b"in memory only")
    used.step()
    disk.sync_failure = None
    disk.kill()
    again = stepped(disk, segment_bytes=SEGMENT_BYTES)
    assert again.recovered == {1: b"safe", 2: b"in memory only"}
    disk.lose_power(Random(1))  # noqa: S311 - any will do
    assert stepped(disk, segment_bytes=SEGMENT_BYTES).recovered == again.recovered


async def _fails(disk: Disk) -> Live:
    live = Live(Store(FOLDER, OWNER, files=disk, segment_bytes=SEGMENT_BYTES))
    live.store.append(b"safe")
    await live.settled()
    disk.sync_failure = errno.EIO
    live.store.append(b"lost")
    await live.settled()
    live.store.close()
    return live


def test_real_thread_says_once_that_it_failed():
    live = asyncio.run(_fails(Disk()))
    assert len(live.failures) == 1
    assert live._synced == 1


def test_full_disk_makes_appends_wait_and_go_on_in_order(stepped: Make, monkeypatch):
    monkeypatch.setattr(writer, "RETRY_S", 0.0)
    disk = Disk()
    disk.room = SEGMENT_BYTES + 200  # one segment, and the format
    used = stepped(disk, segment_bytes=SEGMENT_BYTES)
    full(used)
    assert not used.store.has_room
    assert used.synced == 0
    used.store.put("names", "risk", b"1")
    used.step()
    assert not used.store.has_room
    assert used.store.read(range(1, 13)) == [BODY] * 12
    disk.room = 10 * SEGMENT_BYTES
    used.step()
    assert used.store.has_room
    assert used.synced == used.store.ticket == 13
    disk.kill()
    again = stepped(disk, segment_bytes=SEGMENT_BYTES)
    assert sorted(again.recovered) == list(range(1, 13))
    assert again.store.items("names") == {"risk": b"1"}
    assert again.store.damages == []
    assert not [path for path in disk.names_seen if path.suffix == ".draft"]


def test_full_disk_goes_on_when_segments_are_reclaimed(stepped: Make):
    disk = Disk()
    used = stepped(disk, segment_bytes=SEGMENT_BYTES)
    full(used)
    disk.room = 0
    for spare in [path for path in disk.names_seen if path.suffix == ".spare"]:
        used.store._spares.take(spare.with_suffix(".gone"), SEGMENT_BYTES)
    full(used)
    assert not used.store.has_room
    for position in range(1, 7):
        used.store.free(position)
    assert used.store.reclaim() == SEGMENT_BYTES
    used.step()  # with the room that this leaves, long before it would try again
    assert used.store.read(range(7, 25)) == [BODY] * 18
    assert [path.name for path in sorted(disk.names_seen) if path.suffix == ".log"] == [
        f"{first:020d}.log" for first in (7, 13)
    ]


def test_positions_of_a_segment_that_went_before_it_was_synced_never_come_again(stepped: Make):
    disk = Disk()
    used = stepped(disk, segment_bytes=SEGMENT_BYTES, sync=Sync.INTERVAL, interval_s=1e6)
    used.store.append(BODY)
    used.step()  # the first group is synced, the next one is not due for long
    for _ in range(5):
        used.store.append(BODY)
    used.step()
    for position in range(1, 7):
        used.store.free(position)
    used.store.append(b"l" * 3000)  # has a segment of its own, for which there is no room
    disk.room = 0
    assert used.store.reclaim() == SEGMENT_BYTES
    used.step()
    assert not used.store.has_room
    disk.room = None
    disk.kill()
    again = stepped(disk, segment_bytes=SEGMENT_BYTES)
    assert again.recovered == {}
    assert again.store.append(b"") == 7


def test_sync_that_finds_no_room_writes_the_group_once_more(stepped: Make, monkeypatch):
    monkeypatch.setattr(writer, "RETRY_S", 0.0)
    disk = Disk()
    used = stepped(disk, segment_bytes=SEGMENT_BYTES)
    used.store.append(b"first")
    used.step()
    disk.sync_failure = errno.ENOSPC
    used.store.append(b"second")
    used.step()
    assert (used.store.has_room, used.synced) == (False, 1)
    disk.sync_failure = None
    used.step()
    assert (used.store.has_room, used.synced) == (True, 2)
    disk.lose_power(Random(1))  # noqa: S311 - any will do
    assert stepped(disk, segment_bytes=SEGMENT_BYTES).recovered == {1: b"first", 2: b"second"}


def test_sync_now_and_then_that_finds_no_room_is_a_failure(stepped: Make):
    disk = Disk()
    used = stepped(disk, segment_bytes=SEGMENT_BYTES, sync=Sync.INTERVAL, interval_s=0.0)
    used.store.append(b"first")
    used.step()
    disk.sync_failure = errno.ENOSPC
    used.store.append(b"second")
    used.step()
    assert len(used.failures) == 1, "groups that were written before cannot be written again"


def test_closing_without_room_says_what_is_not_written(stepped: Make):
    disk = Disk()
    disk.room = 200  # the format, and no segment
    used = stepped(disk, segment_bytes=SEGMENT_BYTES)
    used.store.append(BODY)
    with pytest.raises(StoreFailed, match="no room for what was not written"):
        used.store.close()
    assert used.synced == 0
    disk.room = None
    assert stepped(disk, segment_bytes=SEGMENT_BYTES).recovered == {}


class FullDatabase(Disk):
    """A disk whose database has no room for a while."""

    is_full = False

    def _step(self) -> None:
        if self.is_full:
            failure = sqlite3.OperationalError("database or disk is full")
            failure.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise failure
        super()._step()


def test_database_without_room_is_tried_again(stepped: Make, monkeypatch):
    monkeypatch.setattr(writer, "RETRY_S", 0.0)
    disk = FullDatabase()
    used = stepped(disk, segment_bytes=SEGMENT_BYTES)
    disk.is_full = True
    used.store.put("names", "risk", b"1")
    used.step()
    assert (used.store.has_room, used.synced) == (False, 0)
    disk.is_full = False
    used.step()
    assert (used.store.has_room, used.synced) == (True, 1)


async def _waits_for_room(disk: Disk) -> Live:
    store = Store(FOLDER, OWNER, files=disk, segment_bytes=SEGMENT_BYTES)
    disk.room = 0
    live = Live(store)
    live.store.append(BODY)
    async with asyncio.timeout(30):
        while live.store.has_room:
            await asyncio.sleep(0.001)
    disk.room = None
    await live.settled()
    assert live.store.has_room
    live.store.close()
    return live


def test_real_thread_goes_on_by_itself_when_there_is_room(monkeypatch):
    monkeypatch.setattr(writer, "RETRY_S", 0.01)
    live = asyncio.run(_waits_for_room(Disk()))
    assert (live._synced, live.failures) == (1, [])
