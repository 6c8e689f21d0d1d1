"""What was seen of the scene, and what that means: gaps, losses, and when the broker was back."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import NamedTuple

from octopis.core.model import BrokerId
from octopis.demo.fault.cast import Cast

BUCKET_S = 0.1
GAP_MAX_S = 5.0
"""Deliveries that stay away for longer have stopped."""

BEFORE_S = 1.0
"""So much earlier than the kill, at most, was published what may have been lost by it."""


@dataclass
class FaultRecord:
    """Everything that happened, as it comes in; times are nanoseconds since 1970."""

    cast: Cast
    begin_ns: int = 0
    killed_ns: int = 0
    back_ns: int = 0
    whole_ns: int = 0
    published_ns: list[int] = field(default_factory=list)
    """When each notification was to be published; the first has sequence 1."""

    got: dict[BrokerId, list[tuple[int, int]]] = field(default_factory=dict)
    """What each subscriber got: sequence and time."""

    around_fault: int = 0
    """Copies that brokers have sent around a fault."""

    passed_on: int = 0
    """What the victim has passed on since it is back."""

    @property
    def delivered(self) -> int:
        """How many deliveries came so far."""
        return sum(map(len, self.got.values()))

    def rates(self, subscribers: Iterable[BrokerId], since_ns: int, until_ns: int) -> list[int]:
        """Return the deliveries in each tenth of a second that lies wholly between two times."""
        buckets = max(0, int((until_ns - since_ns) / 1e9 / BUCKET_S))
        counts = Counter(
            int((at_ns - since_ns) / 1e9 / BUCKET_S)
            for each in subscribers
            for _, at_ns in self.got.get(each, ())
            if at_ns >= since_ns
        )
        return [counts[number] for number in range(buckets)]

    def gap_so_far_ms(self) -> float | None:
        """Return the longest gap since the kill at anyone behind the victim.

        One that goes on counts up to the last publication: later there is nothing to wait for.
        """
        if not self.killed_ns:
            return None
        last_ns = self.published_ns[-1:]
        times = (sorted(self._times(each) + last_ns) for each in self.cast.behind)
        return max(_longest_ms(each, self.killed_ns) for each in times)

    def received(self) -> list["Received"]:
        """Return what came of each subscriber."""
        return [self._received(each) for each in self.cast.subscribers]

    def _received(self, subscriber: BrokerId) -> "Received":
        counts = Counter(sequence for sequence, _ in self.got.get(subscriber, ()))
        last = len(self.published_ns)
        lost = [number for number in range(1, last + 1) if not counts[number]]
        times = self._times(subscriber)
        return Received(
            subscriber,
            is_behind=subscriber in self.cast.behind,
            delivered=sum(counts.values()),
            lost_ns=[self.published_ns[number - 1] - self.killed_ns for number in lost],
            twice=sum(count > 1 for count in counts.values()),
            gaps=Gaps(
                _longest_ms(times, 0, self.killed_ns),
                _longest_ms(times, self.killed_ns, self.back_ns),
                _longest_ms(times, self.back_ns),
            ),
            has_last=bool(counts[last]),
        )

    def _times(self, subscriber: BrokerId) -> list[int]:
        return sorted(at_ns for _, at_ns in self.got.get(subscriber, ()))


class Gaps(NamedTuple):
    """The longest time between two deliveries, in milliseconds, by when the later one came."""

    before: float
    """Before the kill: so much is the machine's."""

    dead: float
    """Until the broker was back; the kill itself lies in the first."""

    back: float
    """After that."""

    def document(self) -> dict[str, float]:
        """Return them for JSON."""
        names = ("before_kill", "while_dead", "since_back")
        return dict(zip(names, self, strict=True))


@dataclass(frozen=True)
class Received:
    """What came of one subscriber."""

    subscriber: BrokerId
    is_behind: bool
    delivered: int
    lost_ns: list[int]
    """When each notification that never came was published, from the kill on."""

    twice: int
    gaps: Gaps
    has_last: bool
    """Whether the last notification came."""

    @property
    def has_stopped(self) -> bool:
        """Whether deliveries stayed away."""
        return not self.has_last or max(self.gaps.dead, self.gaps.back) > GAP_MAX_S * 1000

    @property
    def lost_elsewhere(self) -> int:
        """How many were lost that the kill does not explain."""
        first, last = -BEFORE_S * 1e9, GAP_MAX_S * 1e9
        return sum(not first <= each <= last for each in self.lost_ns)


def _longest_ms(times_ns: Sequence[int], since_ns: int, until_ns: float = inf) -> float:
    """Return the longest time between two deliveries of which the later came in a time."""
    gaps = (
        later - earlier for earlier, later in pairwise(times_ns) if since_ns < later <= until_ns
    )
    return round(max(gaps, default=0) / 1e6, 3)
