"""How much memory Spark's Python workers hold together, watched while they work."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_EVERY_S = 0.25


class Peak:
    """The most that was seen, in megabytes."""

    mb = 0.0


@contextmanager
def worker_memory() -> Iterator[Peak]:
    """Watch all Python workers of Spark on this machine; 0 where there is no /proc."""
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        while not ended.wait(_EVERY_S):
            peak.mb = max(peak.mb, sum(map(_memory_mb, Path("/proc").glob("[0-9]*"))))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def _memory_mb(process: Path) -> float:
    """Return the memory of one process, what it shares divided among those who share it."""
    try:
        if b"pyspark.daemon" not in (process / "cmdline").read_bytes():
            return 0.0
        lines = (process / "smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0  # it has ended meanwhile
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3
