"""The machine that a figure was measured on, and how much memory a run took."""

import os
import platform
import resource
import sys
from pathlib import Path

import numpy as np


def describe() -> str:
    """Return the processor, its cores, the memory and the versions that matter, in one line."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory_gb:.0f} GB, {platform.system()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )


def memory_peak_mb() -> float:
    """Return the most memory that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3  # bytes there, kilobytes here


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
