"""A store takes records from the moment that it is recovered, also before it is started."""

import asyncio
from pathlib import Path

from octopis.errors import StoreFailed
from octopis.store import Store


async def written(folder: Path, early: list[bytes], late: list[bytes]) -> list[bytes]:
    """Write some before the start and some after it; return what was there before."""
    store = Store(folder, "a,0", segment_bytes=4_096)
    found = [body for _, body in store.recover()]
    done = asyncio.Event()
    failures: list[StoreFailed] = []
    for body in early:
        store.append(body)

    def synced(ticket: int) -> None:
        if ticket == len(early) + len(late):
            done.set()

    store.start(asyncio.get_running_loop(), synced, failures.append)
    for body in late:
        store.append(body)
    try:
        if early or late:
            await asyncio.wait_for(done.wait(), 10)
    finally:
        store.close()
    assert failures == []
    return found


def test_what_is_appended_before_the_start_is_written_with_the_rest(tmp_path: Path):
    async def work() -> None:
        assert await written(tmp_path, [], [b"one"]) == []
        assert await written(tmp_path, [b"two", b"three"], [b"four"]) == [b"one"]
        assert await written(tmp_path, [b"five"], []) == [b"one", b"two", b"three", b"four"]
        assert (await written(tmp_path, [], []))[-1] == b"five"

    asyncio.run(work())
