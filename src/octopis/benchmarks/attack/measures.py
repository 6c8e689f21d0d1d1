"""What was measured of the unrelated clients in one phase, and whether it is good enough.

The yardstick: while one client does its worst, the others keep four fifths of their rate, wait at
most five times as long (or 50 ms), and lose nothing; and every process of brokers stays below
`limits.client_bytes` and what it has anyway.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from octopis.broker.settings import Limits

BEFORE, WHILE, AFTER = PHASES = ("before", "while", "after")
RATE_SHARE_MIN = 0.8
P99_TIMES_MAX = 5
P99_MS_FREE = 50.0
BASE_MB = 512
"""What a process of brokers may have beside what it holds for clients: code, tables, queues."""

CLIENT_BYTES = getattr(Limits(), "client_bytes", 2**30)
MEMORY_MB_MAX = BASE_MB + CLIENT_BYTES / 2**20


@dataclass(frozen=True, slots=True)
class Phase:
    """What the unrelated clients did and got in one phase, by the times when they meant to."""

    rate: float
    """Notifications that brokers accepted in a second."""

    p50_ms: float | None
    p99_ms: float | None
    """From when it was meant to be published until a subscriber had it; None where none had."""

    lost: int
    twice: int
    failed: int
    """Publications that raised an error; nobody knows what became of them."""

    pause_ms: float
    """The longest time that a subscriber got nothing."""

    memory_mb: float | None
    """The most that any process of brokers had; None where the system does not say."""


@dataclass(frozen=True, slots=True)
class Attacked:
    """One attack, and what it did to others."""

    attack: str
    what: str
    met: str
    """How the brokers took it."""

    phases: Mapping[str, Phase]
    notes: tuple[str, ...] = ()
    """What the unrelated clients were told."""

    @property
    def faults(self) -> list[str]:
        """What does not keep to the yardstick; nothing where it holds."""
        return list(_faults(self.phases))


def _faults(phases: Mapping[str, Phase]) -> Iterator[str]:
    quiet = phases[BEFORE]
    p99_ms_max = max(P99_MS_FREE, P99_TIMES_MAX * (quiet.p99_ms or 0.0))
    for name in (WHILE, AFTER):
        found, when = phases[name], "" if name == WHILE else " after"
        share = found.rate / quiet.rate if quiet.rate else 0.0
        if share < RATE_SHARE_MIN:
            yield f"rate {share:.0%}{when}"
        if found.p99_ms is not None and found.p99_ms > p99_ms_max:
            yield f"p99 {found.p99_ms:,.0f} ms{when}"
        if found.memory_mb is not None and found.memory_mb > MEMORY_MB_MAX:
            yield f"memory {found.memory_mb:,.0f} MB{when}"
    for name, count in (
        ("lost", sum(each.lost for each in phases.values())),
        ("twice", sum(each.twice for each in phases.values())),
        ("failed", sum(each.failed for each in phases.values())),
    ):
        if count:
            yield f"{count:,} {name}"
