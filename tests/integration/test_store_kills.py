"""A real process that appends is killed: nothing that it reported is missing."""

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from octopis.store import Store

KILLS = 20
SEGMENT_BYTES = 2**16

APPENDER = """
import asyncio, sys
from pathlib import Path
from octopis.store import Store, Sync

async def main():
    store = Store(Path(sys.argv[1]), "b,2", segment_bytes=2**16, sync=Sync(sys.argv[2]))
    for _ in store.recover():
        pass
    reached = {}

    def synced(ticket):
        print(reached[ticket], flush=True)

    store.start(asyncio.get_running_loop(), synced, lambda failure: sys.exit(str(failure)))
    while True:
        for _ in range(20):
            position = store.append(b"%d " % (store._index.next) * 50)
            reached[store.ticket] = position
        store.put("last", "position", b"%d" % position)
        reached[store.ticket] = position
        await asyncio.sleep(0.0005)

asyncio.run(main())
"""


@pytest.mark.parametrize("sync", ["always", "interval"])
def test_nothing_reported_is_missing_after_kill_9(tmp_path: Path, sync: str):
    chance = Random(1)  # noqa: S311 - repeatable on purpose
    reported = 0
    for _ in range(KILLS // 2):
        command = [sys.executable, "-c", APPENDER, str(tmp_path), sync]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(chance.randint(1, 60)):
                reported = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            reported = max([reported, *map(int, process.stdout.read().split())])
        store = Store(tmp_path, "b,2", segment_bytes=SEGMENT_BYTES)
        found = dict(store.recover())
        assert store.damages == []
        assert sorted(found) == list(range(1, len(found) + 1))
        assert len(found) >= reported
        assert all(body == b"%d " % position * 50 for position, body in found.items())
        assert int(store.items("last")["position"]) <= len(found)
        store.close()
    assert reported > 1_000
