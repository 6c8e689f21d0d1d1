"""How much memory Spark's Python workers hold together, watched while they work.

A measuring process of its own, that never outlives the one who has started it.
"""

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from octopis.errors import OperationFailed


def run_child(command: list[str], what: str) -> bytes:
    """Run a command and return what it prints; an interrupt ends it, whenever it comes.

    Raises OperationFailed, which says `what` failed, where it ends with another status than 0.
    """
    process: subprocess.Popen[bytes] | None = None
    interrupts: list[object] = []
    try:
        # Held back until the process is known: an interrupt while it starts would leave it behind.
        # Blocking the signal is not enough: a thread of numpy's takes it, and Python acts on it.
        before = signal.signal(signal.SIGINT, lambda *facts: interrupts.append(facts))
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE)  # noqa: S603 - our own
        finally:
            signal.signal(signal.SIGINT, before)
        if interrupts:
            signal.raise_signal(signal.SIGINT)
        printed, _ = process.communicate()
    except BaseException:
        if process is not None:
            process.kill()
            process.communicate()
        raise
    if process.returncode:
        raise OperationFailed(f"{what} failed with status {process.returncode}")
    return printed


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
