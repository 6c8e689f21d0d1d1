"""What all doors share: limits, members, counts, and the order to end."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from octopis.gateway.counts import Counts
from octopis.gateway.doors.bodies import Scope, header
from octopis.gateway.members import Member, Members
from octopis.gateway.overlay_view import OverlayView
from octopis.gateway.problems import Problem
from octopis.gateway.readers import Reader
from octopis.gateway.settings import GatewayLimits, GatewayOptions

_ADDRESSES_MAX = 10_000


@dataclass
class Context:
    """One gateway, as its doors see it."""

    view: OverlayView
    options: GatewayOptions
    counts: Counts
    members: Members
    readers: set[Reader] = field(default_factory=set)
    is_ending: bool = False

    def __post_init__(self) -> None:
        self.rates = Rates(self.options.limits.rate_per_s)

    @property
    def limits(self) -> GatewayLimits:
        """The limits."""
        return self.options.limits

    def member(self, scope: Scope) -> Member:
        """Return who makes a request, or raise Problem where that is not said as it must be."""
        text = header(scope, b"authorization")
        if text and not text.lower().startswith("bearer "):
            raise Problem(401, "say who you are as Authorization: Bearer TOKEN")
        return self.members.of()

    @contextmanager
    def reader(self, door: str) -> Iterator[Reader]:
        """Have a reader meanwhile, or raise Problem where there are too many."""
        if self.is_ending:
            raise Problem(503, "the gateway is stopping")
        if len(self.readers) >= self.limits.streams:
            self.counts.ended["streams"] += 1
            raise Problem(503, f"there are {self.limits.streams:,} subscribers already: try later")
        reader = Reader(self.limits, self.options.slow)
        self.readers.add(reader)
        self.counts.streams[door] += 1
        try:
            yield reader
        finally:
            self.readers.discard(reader)
            self.counts.streams[door] -= 1
            self.counts.dropped[door] += reader.dropped


class Rates:
    """How many requests each address may make: a bucket for each, which fills all the time."""

    def __init__(self, per_s: int) -> None:
        self._per_s = per_s
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, scope: Scope) -> bool:
        """Tell whether the address of a request may make one more now."""
        client = scope.get("client")
        host = client[0] if client else ""
        now = asyncio.get_running_loop().time()
        left, at = self._buckets.pop(host, (float(self._per_s), now))
        left = min(float(self._per_s), left + (now - at) * self._per_s)
        may = left >= 1
        self._buckets[host] = (left - 1 if may else left, now)
        if len(self._buckets) > _ADDRESSES_MAX:  # whoever has been away for longest has a full one
            self._buckets.popitem(last=False)
        return may
