import asyncio
import json
from pathlib import Path

import pytest

from octopis.store import Store
from support.stores import opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The stores of two brokers."""

    async def fill() -> None:
        for name in ("a", "b"):
            with opened(tmp_path / name) as live:
                for number in range(5):
                    live.store.append(b"%d" % number * 300)
                live.store.put("names", "risk", b"1")

    asyncio.run(fill())
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_store_that_is_whole_is_described_and_left_as_it_is(octopis, folder: Path):
    before = content(folder)
    status, printed, error = octopis("store", "check", str(folder / "a"), "--json")
    assert (status, error) == (0, "")
    (report,) = json.loads(printed)
    assert (report["owner"], report["segments"], report["records"]) == ("b,2", 1, 5)
    assert report["state"] == {"names": 1}
    assert report["damages"] == report["unfinished"] == []
    assert content(folder) == before


def test_damage_in_one_of_several_stores_is_said(octopis, folder: Path):
    (segment,) = (folder / "b").glob("*.log")
    damaged = bytearray(segment.read_bytes())
    damaged[400] ^= 1
    segment.write_bytes(damaged)
    before = content(folder)
    status, printed, _ = octopis("store", "check", str(folder))
    assert status == 1
    words = printed.split()
    assert words.index("ok:") < words.index("damaged:")  # a, and then b
    assert "record 2 is damaged or missing" in " ".join(words)
    assert content(folder) == before


def test_damaged_state_is_said_beside_the_others(octopis, folder: Path):
    (folder / "a" / "state.db").write_bytes(b"no database" * 100)
    status, printed, _ = octopis("store", "check", str(folder), "--json")
    assert status == 1
    first, second = json.loads(printed)
    assert [each["segment"] for each in first["damages"]] == ["state.db"]
    assert second["damages"] == []


def test_store_in_use_is_not_checked(octopis, folder: Path):
    store = Store(folder / "a", "b,2")
    status, _, error = octopis("store", "check", str(folder / "a"))
    assert status == 1
    assert "another process uses it: stop that one first" in error
    store.close()


def test_folder_without_a_store_is_said(octopis, tmp_path: Path):
    status, _, error = octopis("store", "check", str(tmp_path))
    assert status == 1
    assert "it holds no store" in error
    status, _, error = octopis("store", "check", str(tmp_path / "nowhere"))
    assert "it is no folder" in error
