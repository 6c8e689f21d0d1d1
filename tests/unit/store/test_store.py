import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random

import pytest

from octopis.errors import StoreDamaged, StoreFailed, StoreLocked, StoreVersion
from octopis.store import Store, Sync
from octopis.store.folder import VERSION
from support.stores import OWNER, opened

SEGMENT_BYTES = 4096  # a dozen records

HOLDER = """
import sys
from pathlib import Path
from octopis.store import Store
store = Store(Path(sys.argv[1]), "b,2")
print("locked", flush=True)
sys.stdin.read()
"""


def body(number: int) -> bytes:
    return f"{number:04d}".encode() * 75


def segments(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.log"))


def run(test: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(test())


def fill(folder: Path, count: int) -> None:
    """Leave a store with so many records, closed."""

    async def append() -> None:
        with opened(folder, segment_bytes=SEGMENT_BYTES) as live:
            for number in range(1, count + 1):
                assert live.store.append(body(number)) == number
            live.store.put("names", "risk", b"1")
            await live.settled()

    run(append)


@pytest.mark.parametrize("sync", Sync)
def test_what_was_appended_and_put_is_there_before_and_after_it_is_closed(
    tmp_path: Path, sync: Sync
):
    async def use() -> None:
        with opened(tmp_path, segment_bytes=SEGMENT_BYTES, sync=sync) as live:
            positions = [live.store.append(body(number)) for number in range(1, 101)]
            assert positions == list(range(1, 101))
            live.store.put("names", "risk", b"1")
            live.store.put("names", "risk", b"2")
            live.store.put("names", "gone", b"")
            live.store.delete("names", "gone")
            assert live.store.read([100, 1]) == [body(100), body(1)]
            assert live.store.ticket == 104
            await live.settled()
            assert live.store.read(positions) == [body(number) for number in positions]
            assert live.store.read([]) == []
        with opened(tmp_path, segment_bytes=SEGMENT_BYTES, sync=sync) as live:
            assert live.recovered == {number: body(number) for number in range(1, 101)}
            assert live.store.items("names") == {"risk": b"2"}
            assert live.store.items("others") == {}
            assert live.store.damages == []
            assert live.store.append(b"") == 101
            assert live.store.read([100, 101]) == [body(100), b""]

    run(use)


def test_close_writes_what_waits_and_reports_it(tmp_path: Path):
    async def use() -> None:
        with opened(tmp_path) as live:
            live.store.append(b"late")
        assert live._synced == 1
        with opened(tmp_path) as live:
            assert live.recovered == {1: b"late"}

    run(use)


def test_free_segments_are_used_again_and_their_leftovers_never_come_back(tmp_path: Path):
    fill(tmp_path, 60)
    before = segments(tmp_path)
    inodes = {(tmp_path / name).stat().st_ino for name in before}

    async def use() -> None:
        with opened(tmp_path, segment_bytes=SEGMENT_BYTES) as live:
            for position in range(1, 41):
                live.store.free(position)
                live.store.free(position)  # said twice, counted once
            assert (live.store.records, live.store.reclaimable) == (20, True)
            assert live.store.live_bytes == 20 * 320
            assert live.store.reclaim() == 3 * SEGMENT_BYTES
            assert not live.store.reclaimable
            live.store.append(body(61))
            await live.settled()
            assert segments(tmp_path)[:-1] == before[3:]
            newest = tmp_path / segments(tmp_path)[-1]
            assert newest.stat().st_ino in inodes
            assert body(5) in newest.read_bytes() or body(17) in newest.read_bytes()
        with opened(tmp_path, segment_bytes=SEGMENT_BYTES) as live:
            assert sorted(live.recovered) == [*range(37, 62)]
            assert live.recovered[61] == body(61)
            assert live.store.damages == []

    run(use)


def test_positions_go_on_where_all_segments_are_gone(tmp_path: Path):
    fill(tmp_path, 24)

    async def use() -> None:
        with opened(tmp_path, segment_bytes=SEGMENT_BYTES) as live:
            assert live.store.append(bytes(4000)) == 25
            await live.settled()
            for position in range(1, 26):
                live.store.free(position)
            assert live.store.reclaim() == 2 * SEGMENT_BYTES
        assert len(segments(tmp_path)) == 1
        (tmp_path / segments(tmp_path)[0]).unlink()
        with opened(tmp_path, segment_bytes=SEGMENT_BYTES) as live:
            assert [damage.segment for damage in live.store.damages] == [f"{25:020d}.log"]
            assert live.recovered == {}
            assert live.store.append(b"x") == 26
            await live.settled()
            assert live.store.reclaim() == 0  # of a file that is gone
            await live.settled()
            assert not live.failures
        with opened(tmp_path, segment_bytes=SEGMENT_BYTES) as live:
            assert live.recovered == {26: b"x"}
            assert live.store.damages == []

    run(use)


def test_large_record_has_a_segment_of_its_own(tmp_path: Path):
    async def use() -> None:
        with opened(tmp_path, segment_bytes=SEGMENT_BYTES) as live:
            for each in (b"a", b"l" * 10_000, b"b"):
                live.store.append(each)
            await live.settled()
            sizes = [(tmp_path / name).stat().st_size for name in segments(tmp_path)]
            assert sizes == [SEGMENT_BYTES, 10_020, SEGMENT_BYTES]
            assert live.store.used_bytes == SEGMENT_BYTES + 10_020 + 21
            assert live.store.read([1, 2, 3]) == [b"a", b"l" * 10_000, b"b"]

    run(use)


def test_sparse_names_what_is_live_in_the_oldest_thin_segment(tmp_path: Path):
    fill(tmp_path, 40)

    async def use() -> None:
        with opened(tmp_path, segment_bytes=SEGMENT_BYTES) as live:
            assert live.store.sparse(0.5) == []
            for position in (*range(14, 24), *range(26, 37)):
                live.store.free(position)
            assert live.store.sparse(0.5) == [13, 24]
            assert live.store.sparse(0.1) == [25]
            assert live.store.sparse(0.01) == []
            assert live.store.sparse(1.0) == list(range(1, 13))

    run(use)


def test_syncs_are_timed(tmp_path: Path):
    async def use() -> None:
        with opened(tmp_path) as live:
            assert live.store.sync_ns.count == 0
            live.store.append(b"x")
            await live.settled()
            times = live.store.sync_ns
            assert times.count == 1
            assert 0 < times.mean == times.max

    run(use)


def test_closing_does_not_wait_for_a_spare_segment_and_leaves_no_half_of_one(tmp_path: Path):
    async def use() -> None:
        for _ in range(3):
            with opened(tmp_path, segment_bytes=2**30):
                pass  # a spare segment of 1 GiB is begun
            assert list(tmp_path.glob("*.draft")) == []
            assert list(tmp_path.glob("*.spare")) == []

    run(use)


def test_each_folder_has_its_own_epoch_and_keeps_it(tmp_path: Path):
    epochs = []
    for name in ("a", "b", "a"):
        store = Store(tmp_path / name, OWNER)
        epochs.append(store.epoch)
        store.close()
    assert epochs[0] == epochs[2] != epochs[1]


def test_another_process_has_the_folder(tmp_path: Path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(StoreLocked, match=f"{tmp_path}: another process uses it"):
            Store(tmp_path, OWNER)
        holder.kill()
    Store(tmp_path, OWNER).close()


def test_folder_of_another_broker_is_refused_and_not_held(tmp_path: Path):
    Store(tmp_path, "a,1").close()
    for _ in range(2):
        with pytest.raises(StoreFailed, match="belongs to broker a,1, not to b,2"):
            Store(tmp_path, OWNER)


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_another_version_is_refused(tmp_path: Path, version: int):
    Store(tmp_path, OWNER).close()
    path = tmp_path / "format.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": version, "more": 1}))
    with pytest.raises(StoreVersion, match=f"format version {version}, and this OctopiS knows"):
        Store(tmp_path, OWNER)


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff{", b'{"version":%d}' % VERSION, b"[1]"])
def test_damaged_format_is_said(tmp_path: Path, content: bytes):
    Store(tmp_path, OWNER).close()
    (tmp_path / "format.json").write_bytes(content)
    with pytest.raises(StoreDamaged, match=r"format.json is damaged"):
        Store(tmp_path, OWNER)


def test_folder_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed, match="cannot be written"):
        Store(tmp_path / "file" / "below", OWNER)


def test_folder_with_something_else_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(StoreFailed, match=r"is no store, and holds thesis.tex"):
        Store(tmp_path, OWNER)


def test_missing_state_is_said(tmp_path: Path):
    Store(tmp_path, OWNER).close()
    (tmp_path / "state.db").unlink()
    with pytest.raises(StoreDamaged, match=r"state.db is missing"):
        Store(tmp_path, OWNER)


def test_damaged_state_is_said_and_never_believed(tmp_path: Path):
    async def put() -> None:
        with opened(tmp_path) as live:
            for number in range(300):
                live.store.put("names", f"{number:04d}", b"v" * 30)
            await live.settled()
            items.update(live.store.items("names"))

    items: dict[str, bytes] = {}
    run(put)
    path = tmp_path / "state.db"
    whole, chance = path.read_bytes(), Random(1)  # noqa: S311 - repeatable on purpose
    said = 0
    for _ in range(200):
        content = bytearray(whole)
        at = chance.choice([chance.randrange(200), chance.randrange(len(content))])
        content[at] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        try:
            store = Store(tmp_path, OWNER)
        except StoreDamaged:
            said += 1
        else:  # where SQLite keeps nothing
            assert store.items("names") == items
            store.close()
        (tmp_path / "state.db-wal").unlink(missing_ok=True)
    assert said > 50


def test_value_that_changed_on_disk_is_found(tmp_path: Path):
    async def put() -> None:
        with opened(tmp_path) as live:
            live.store.put("names", "risk", b"seventeen")

    run(put)
    path = tmp_path / "state.db"
    assert path.read_bytes().count(b"seventeen") == 1
    path.write_bytes(path.read_bytes().replace(b"seventeen", b"seventyyy"))
    with pytest.raises(StoreDamaged, match="the value of names risk has another checksum"):
        Store(tmp_path, OWNER)
