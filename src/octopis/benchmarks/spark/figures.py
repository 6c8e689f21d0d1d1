"""What is measured of Spark's work: figures, seconds, and the memory of its processes."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from octopis.pipeline.spark.progress import meanwhile

_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class PipelineFigure:
    """One thing measured; the target is what we set out to reach."""

    what: str
    size: str
    value: float
    unit: str
    target: str = ""


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Peak:
    """The most that was seen, in megabytes."""

    mb = 0.0


@contextmanager
def worker_memory() -> Iterator[Peak]:
    """Watch all Python workers of Spark on this machine; 0 where there is no /proc."""
    peak = Peak()

    def look() -> None:
        peak.mb = max(peak.mb, sum(map(_memory_mb, Path("/proc").glob("[0-9]*"))))

    with meanwhile(look, _LOOK_S):
        yield peak


@contextmanager
def driver_memory(spark: SparkSession) -> Iterator[tuple[Peak, Peak]]:
    """Watch the driver: how much more its own Python process takes, and what lives in its Java.

    Python's is 0 where there is no /proc. Java's is all that lives, not what is more than before:
    Spark lets go late of what earlier work has kept. Its garbage is collected at each look, which
    costs time, so nothing is timed meanwhile. In local mode its tasks live in the same Java.
    """
    python, java, own = Peak(), Peak(), Path(f"/proc/{os.getpid()}")
    before = _memory_mb(own, b"")

    def look() -> None:
        python.mb = max(python.mb, _memory_mb(own, b"") - before)
        java.mb = max(java.mb, _live_mb(spark))

    with meanwhile(look, _LOOK_S):
        yield python, java
    look()


def _live_mb(spark: SparkSession) -> float:
    """Return what is left in the heap of Spark's Java once its garbage is collected."""
    java: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way
    runtime = java.java.lang.Runtime.getRuntime()
    runtime.gc()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def _memory_mb(process: Path, named: bytes = b"pyspark.daemon") -> float:
    """Return the memory of one process, what it shares divided among those who share it."""
    try:
        if named not in (process / "cmdline").read_bytes():
            return 0.0
        lines = (process / "smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0  # it has ended meanwhile
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3
