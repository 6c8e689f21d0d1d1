"""Damaged segments: detected, never served, and every other record served."""

import errno
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from octopis.errors import StoreDamaged
from octopis.store import check
from octopis.store.files import RealFiles
from octopis.store.records import HEADER_BYTES
from support.disk import Crash, Disk
from support.stores import FOLDER, Stepped, stepped

__all__ = ["stepped"]

Make = Callable[..., Stepped]
SEGMENT_BYTES = 4096
DAMAGES = 500


def chance_of(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - repeatable on purpose


class UnsyncedDatabase(sqlite3.Connection):
    def execute(self, sql: str, *rest: object) -> sqlite3.Cursor:
        return super().execute(sql.replace("synchronous=FULL", "synchronous=OFF"), *rest)


class Unsynced(RealFiles):
    """Files without syncs: what is tried here is no crash, and it is tried often."""

    def fdatasync(self, file: int) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass

    def database(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, factory=UnsyncedDatabase)


class Image:
    """A store on a real disk that was closed, and where each record lies."""

    def __init__(self, folder: Path, make: Make) -> None:
        self.folder = folder
        chance = chance_of(1)
        used = make(RealFiles(), folder, segment_bytes=SEGMENT_BYTES)
        self.bodies: dict[int, bytes] = {}
        for number in range(60):
            body = chance.randbytes(chance.choice([0, 40, 200, 700, 5000]))
            self.bodies[used.store.append(body)] = body
            if number % 7 == 0:
                used.step()
        used.store.close()
        index = used.store._index
        self.places = {
            position: (segment.first, segment.offsets[number], segment.end(number))
            for position in self.bodies
            for segment in [index.find(position)]
            for number in [position - segment.first]
        }
        self.firsts = sorted({first for first, _, _ in self.places.values()})

    def path(self, first: int, folder: Path | None = None) -> Path:
        return (folder or self.folder) / f"{first:020d}.log"

    def hit(self, first: int, begin: int, end: int) -> set[int]:
        """Return the positions of records in these bytes of a segment."""
        return {
            position
            for position, (segment, offset, until) in self.places.items()
            if segment == first and offset < end and begin < until
        }


@pytest.fixture
def image(tmp_path: Path, stepped: Make) -> Image:
    return Image(tmp_path / "whole", stepped)


def damage(image: Image, folder: Path, chance: Random) -> set[int]:
    """Damage one segment of a copy; return the positions of the records that are hit."""
    first = chance.choice(image.firsts)
    path = image.path(first, folder)
    content = bytearray(path.read_bytes())
    kind = chance.choice(["truncate", "flip", "flips", "zeros"])
    if kind == "truncate":
        at = chance.randrange(len(content))
        path.write_bytes(content[:at])
        return image.hit(first, at, len(content))
    if kind == "zeros":
        at = chance.randrange(len(content))
        length = min(chance.choice([1, 512, 2000]), len(content) - at)
        changed = {at + step for step in range(length) if content[at + step]}
        content[at : at + length] = bytes(length)
    else:
        changed = {chance.randrange(len(content)) for _ in range(1 if kind == "flip" else 5)}
        for at in changed:
            content[at] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return {each for at in changed for each in image.hit(first, at, at + 1)}


def test_damage_is_found_and_every_other_record_is_served(
    tmp_path: Path, image: Image, stepped: Make
):
    folder = tmp_path / "damaged"
    hits = 0
    for seed in range(DAMAGES):
        shutil.copytree(image.folder, folder)
        hit = damage(image, folder, chance_of(seed))
        report = check(folder)
        used = stepped(Unsynced(), folder, segment_bytes=SEGMENT_BYTES)
        good = {each: body for each, body in image.bodies.items() if each not in hit}
        assert used.recovered == good, seed
        assert bool(used.store.damages) is bool(hit), seed
        assert len(report.damages) == len(used.store.damages)
        assert report.records == len(good)
        for position in hit:
            with pytest.raises(StoreDamaged):
                used.store.read([position])
        assert used.store.read(list(good)) == list(good.values())
        assert used.store.append(b"on") == max(image.bodies) + 1
        used.store.close()
        hits += bool(hit)
        shutil.rmtree(folder)
    assert hits > DAMAGES / 2


def test_damaged_bytes_are_kept_in_quarantine(image: Image, stepped: Make):
    position, (first, offset, end) = next(
        (position, place) for position, place in image.places.items() if place[2] - place[1] > 99
    )
    path = image.path(first)
    content = bytearray(path.read_bytes())
    content[offset + 50] ^= 1
    path.write_bytes(content)
    for _ in range(2):  # it stays damaged, and is said each time
        used = stepped(RealFiles(), image.folder, segment_bytes=SEGMENT_BYTES)
        (found,) = used.store.damages
        assert (found.segment, found.offset, found.length) == (path.name, offset, end - offset)
        assert found.reason == f"record {position} is damaged or missing"
        assert found.quarantined is not None
        assert (image.folder / found.quarantined).read_bytes() == content[offset:end]
        used.store.close()


def test_damaged_segment_can_go_when_all_that_is_left_is_free(image: Image, stepped: Make):
    first = image.firsts[1]
    image.path(first).write_bytes(b"")
    used = stepped(RealFiles(), image.folder, segment_bytes=SEGMENT_BYTES)
    assert len(used.store.damages) == 1
    assert used.store.reclaimable
    used.store.reclaim()
    used.store.close()
    again = stepped(RealFiles(), image.folder, segment_bytes=SEGMENT_BYTES)
    assert again.store.damages == []
    assert again.recovered == used.recovered
    again.store.close()


def test_segment_that_somebody_took_away_is_said(image: Image, stepped: Make):
    first = image.firsts[2]
    image.path(first).unlink()
    used = stepped(RealFiles(), image.folder, segment_bytes=SEGMENT_BYTES)
    assert [each.segment for each in used.store.damages] == [image.path(first).name]
    lost = set(image.bodies) - set(used.recovered)
    assert lost == image.hit(first, 0, SEGMENT_BYTES * 9)
    with pytest.raises(StoreDamaged, match="is missing"):
        used.store.read([min(lost)])
    assert used.store.reclaim() == 0
    used.store.close()


class BadSector(RealFiles):
    """A disk that cannot read one place."""

    def __init__(self, bad: int) -> None:
        self._bad = bad

    def pread(self, file: int, length: int, offset: int) -> bytes:
        if self.size(file) == SEGMENT_BYTES * 4 and offset <= self._bad < offset + length:
            raise OSError(errno.EIO, "Input/output error")
        return super().pread(file, length, offset)


def test_place_that_cannot_be_read_costs_only_what_is_there(tmp_path: Path, stepped: Make):
    size = 4 * SEGMENT_BYTES
    used = stepped(RealFiles(), tmp_path, segment_bytes=size)
    bodies = {used.store.append(bytes([number]) * 980): number for number in range(1, 17)}
    used.store.close()
    again = stepped(BadSector(5000), tmp_path, segment_bytes=size)
    assert sorted(set(bodies) - set(again.recovered)) == [5, 6, 7, 8, 9]  # one piece of 4096 bytes
    assert len(again.store.damages) == 1
    with pytest.raises(StoreDamaged, match="record 6 is damaged"):
        again.store.read([6])
    assert again.store.read([4, 10]) == [bytes([4]) * 980, bytes([10]) * 980]
    again.store.close()


def test_bytes_that_somebody_published_never_pass_for_a_record(stepped: Make, tmp_path: Path):
    used = stepped(RealFiles(), tmp_path, segment_bytes=SEGMENT_BYTES)
    forged = stepped(RealFiles(), tmp_path / "forge", segment_bytes=SEGMENT_BYTES)
    for number in range(3):
        forged.store.append(b"forged %d" % number)
    forged.store.close()
    payload = (tmp_path / "forge" / f"{1:020d}.log").read_bytes()[:200]
    used.store.append(payload)  # records 1 to 3 of another store, inside record 1 of this one
    used.store.append(b"real")
    used.store.close()
    path = tmp_path / f"{1:020d}.log"
    content = bytearray(path.read_bytes())
    content[HEADER_BYTES - 1] ^= 1
    path.write_bytes(content)
    again = stepped(RealFiles(), tmp_path, segment_bytes=SEGMENT_BYTES)
    assert again.recovered == {2: b"real"}
    again.store.close()


def torn(stepped: Make) -> Disk:
    """Return a disk whose power went in a group of three: the first of them is torn."""
    disk = Disk()
    used = stepped(disk, segment_bytes=SEGMENT_BYTES)
    used.store.append(b"0" * 492)
    used.step()
    for digit in (b"1", b"2", b"3"):
        used.store.append(digit * 492)
    disk.crash_at = disk.calls + 2  # after the write, before the sync
    with pytest.raises(Crash):
        used.step()
    inode = disk.names_seen[FOLDER / f"{1:020d}.log"]
    assert len(inode.between) == 3
    inode.between.pop(1)
    inode.sync_left()
    disk.kill()
    return disk


def test_torn_end_is_cut_off_and_nothing_of_it_comes_back(stepped: Make):
    disk = torn(stepped)
    used = stepped(disk, segment_bytes=SEGMENT_BYTES)
    assert list(used.recovered) == [1]
    assert used.store.damages == []
    assert used.store.torn is not None
    assert used.store.torn.quarantined is not None
    used.store.append(b"4" * 492)  # exactly in the place of what was torn
    used.step()
    assert used.synced == 1
    disk.kill()
    again = stepped(disk, segment_bytes=SEGMENT_BYTES)
    assert again.recovered == {1: b"0" * 492, 2: b"4" * 492}
    assert again.store.torn is None


def test_what_later_records_prove_is_damage_also_without_a_clean_end(stepped: Make):
    disk = Disk()
    used = stepped(disk, segment_bytes=SEGMENT_BYTES)
    for number in range(4):
        used.store.append(b"%d" % number * 100)
        used.step()
    disk.kill()
    disk.names_seen[FOLDER / f"{1:020d}.log"].seen[150] ^= 1
    again = stepped(disk, segment_bytes=SEGMENT_BYTES)
    assert sorted(again.recovered) == [1, 3, 4]
    assert [each.reason for each in again.store.damages] == ["record 2 is damaged or missing"]
