"""Whether the machine kept pace with a round: if not, delays say nothing about routing.

Brokers, clients and the display share the machine. Where it has too much else to do, publishers
publish later than they should, and the time that is lost so is in every delay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from octopis.demo.watching import OverlayMoment
from octopis.errors import OperationFailed

LATE_MS = 250.0
"""Publishers are late where one in a hundred notifications was accepted so much after its time:
what the demonstration shows is of half a second and more."""

UNSEEN_S = 1.0
"""Brokers are looked at five times a second; processes that answer so late are starved."""


@dataclass(frozen=True)
class Pace:
    """How far behind its times a round was."""

    late_median_ms: float
    late_p99_ms: float
    """From the intended time of a notification until its broker had accepted it."""
    unseen_s: float
    """The longest time in which the brokers could not be looked at."""

    @property
    def troubles(self) -> list[str]:
        """What went wrong, in words; nothing where the machine kept pace."""
        found = []
        if self.late_p99_ms > LATE_MS:
            found.append(
                f"publishers were late ({self.late_median_ms:,.0f} ms at the median, "
                f"{self.late_p99_ms:,.0f} ms at the 99th percentile)"
            )
        if self.unseen_s > UNSEEN_S:
            found.append(f"brokers took {self.unseen_s:.1f} s to say how they are")
        return found

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "publications_late_ms": {"median": self.late_median_ms, "p99": self.late_p99_ms},
            "longest_without_status_s": self.unseen_s,
            "kept": not self.troubles,
        }


def pace_of(trace: Path, snapshots: Sequence[OverlayMoment]) -> Pace:
    """Return the pace of a round, from its brokers' traces and from when they were looked at."""
    tables = [
        pq.read_table(path, columns=["intended_ns", "accepted_ns"])
        for path in sorted(trace.glob("*/publications.parquet"))
    ]
    late = [
        np.maximum(0, np.subtract(*(table.column(name) for name in ("accepted_ns", "intended_ns"))))
        for table in tables
        if len(table)
    ]
    if not late:
        raise OperationFailed(f"the brokers have left no publications in {trace}")
    median_ns, p99_ns = np.quantile(np.concatenate(late), (0.5, 0.99), method="inverted_cdf")
    seen = [each.seen_ns for each in snapshots]
    gaps = np.diff(seen) if len(seen) > 1 else np.zeros(1)
    return Pace(round(median_ns / 1e6, 3), round(p99_ns / 1e6, 3), round(gaps.max() / 1e9, 3))
