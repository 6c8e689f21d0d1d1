"""How long things take, measured now and then: histograms that cost next to nothing.

One batch of `EVERY` is measured. What is measured is added up here, in plain numbers, and rendered
only when somebody asks.
"""

import time
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from octopis.core.matching import BitsetIndex
from octopis.core.matching.interface import Batch
from octopis.core.matching.layers import Submit
from octopis.core.wire.published import Published

EVERY = 64
"""One batch of so many is measured."""

_MATCHING_S = (1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 1e-2, 1e-1)
_DELIVERY_S = (5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SYNC_S = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1.0, 2.5)

OLDEST_S = 3_600.0
"""What was meant to be published longer ago is replayed, or its clock is wrong: no delay."""


class Histogram:
    """How often something took how long: a count for each bound (inclusive), and one above."""

    __slots__ = ("bounds", "counts", "sum_s")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one that took so long."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.sum_s += seconds


def buckets(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Return how many took no longer than each bound, as Prometheus wants it."""
    names = [*map(str, bounds), "+Inf"]
    return list(zip(names, map(float, accumulate(counts)), strict=True))


class Sampled(Histogram):
    """A histogram of one in `EVERY`, beginning with the first."""

    __slots__ = ("_count",)

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__(bounds)
        self._count = -1

    def is_due(self) -> bool:
        """Count one more, and tell whether it is to be measured."""
        self._count += 1
        return self._count % EVERY == 0


class Delays:
    """The histograms of one broker."""

    def __init__(self) -> None:
        self.matching = Sampled(_MATCHING_S)
        self.delivery = Sampled(_DELIVERY_S)
        self.syncs = Histogram(_SYNC_S)

    def synced(self, took_ns: Sequence[int]) -> None:
        """Count syncs of the disk, all of them."""
        for each in took_ns:
            self.syncs.observe(each / 1e9)


class TimedIndex(BitsetIndex[str, Any]):
    """A matching index that looks at the clock now and then, as the core has none."""

    def __init__(self, times: Sampled, submit: Submit | None = None) -> None:
        super().__init__(submit)
        self._times = times

    def reached(self, batch: Batch) -> list[int]:
        """Do what the index does."""
        if not self._times.is_due():
            return super().reached(batch)
        begun = time.perf_counter()
        found = super().reached(batch)
        self._note(begun, batch)
        return found

    def matches(self, batch: Batch) -> list[list[str]]:
        """Do what the index does."""
        if not self._times.is_due():
            return super().matches(batch)
        begun = time.perf_counter()
        found = super().matches(batch)
        self._note(begun, batch)
        return found

    def reached_and_matches(
        self, batch: Batch, destination: Any
    ) -> tuple[list[int], list[list[str]]]:
        """Do what the index does."""
        if not self._times.is_due():
            return super().reached_and_matches(batch, destination)
        begun = time.perf_counter()
        found = super().reached_and_matches(batch, destination)
        self._note(begun, batch)
        return found

    def _note(self, begun: float, batch: Batch) -> None:
        if batch:
            self._times.observe((time.perf_counter() - begun) / len(batch))


def index_of(delays: Delays | None, submit: Submit) -> BitsetIndex[str, Any]:
    """Return an empty index, timed where delays are asked for."""
    return BitsetIndex(submit) if delays is None else TimedIndex(delays.matching, submit)


class ClientDelays:
    """How long what goes to one client was on its way: the last of a batch, now and then.

    Deliveries of a client are counted as they are queued; one is followed until it has left.
    """

    __slots__ = ("_followed", "_intended_ns", "_times", "latest")

    def __init__(self, times: Sampled) -> None:
        self._times = times
        self._followed = 0
        self._intended_ns = 0
        self.latest: Published | None = None
        """What was added last since the last batch was queued."""

    def queued(self, last: int) -> None:
        """Know that a batch was queued; its last is the delivery of that number."""
        latest, self.latest = self.latest, None
        if latest is not None and self._times.is_due() and not self._followed:
            self._followed, self._intended_ns = last, latest.intended_ns

    def left(self, last: int) -> None:
        """Know that all deliveries up to a number have gone to the client."""
        if self._followed and last >= self._followed:
            self._followed = 0
            delay_s = (time.time_ns() - self._intended_ns) / 1e9
            if delay_s <= OLDEST_S:
                self._times.observe(max(0.0, delay_s))  # clocks differ by a little

    def dropped(self, last: int) -> None:
        """Know that all up to a number have gone or were dropped."""
        if last >= self._followed:
            self._followed = 0
