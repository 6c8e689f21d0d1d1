"""What is seen of the overlay while it plays, and kept for the pictures."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from octopis.demo.workload import SlowedLink, direction
from octopis.overlay.status import Statuses, totals

RATE_OVER_S = 1.0
"""Rates are over about the last second: over a fifth of one they would flicker."""


@dataclass(frozen=True)
class BrokerView:
    """How one broker is."""

    queued: int
    """What waits in all its output queues."""

    ims_per_s: float
    overloaded: bool
    """Whether one of its links is overloaded."""


@dataclass(frozen=True)
class OverlayMoment:
    """How the overlay was at one moment."""

    seen_ns: int
    brokers: dict[str, BrokerView]
    slowed_queue: int
    longest_queue: int
    longest_link: str
    overloaded: list[str]
    """Links, as `b,2 → b,0`."""

    cases: dict[str, int]
    published: int
    deliveries: int
    publishers_wait: bool
    """Whether brokers accept no publications because a queue is past its high-water mark."""


@dataclass
class Rates:
    """How many IMs brokers send a second, over about the last second."""

    _seen: list[tuple[int, dict[str, int]]] = field(default_factory=list)

    def per_s(self, now_ns: int, statuses: Statuses) -> dict[str, float]:
        """Take in how brokers are now, and return the rate of each."""
        now = {name: status["counters"]["notification_ims"] for name, status in statuses.items()}
        self._seen.append((now_ns, now))
        while len(self._seen) > 2 and now_ns - self._seen[1][0] > RATE_OVER_S * 1e9:
            del self._seen[0]
        then_ns, then = self._seen[0]
        seconds = (now_ns - then_ns) / 1e9
        return {
            # A broker that was started anew counts from 0 again.
            name: max(0, count - then.get(name, count)) / seconds if seconds else 0.0
            for name, count in now.items()
        }


@dataclass
class Watcher:
    """Takes in statuses as they come, and tells `on_moment` what they mean."""

    link: SlowedLink
    on_moment: Callable[[OverlayMoment], None] = lambda _: None
    snapshots: list[OverlayMoment] = field(default_factory=list)
    _rates: Rates = field(default_factory=Rates)

    def see(self, statuses: Statuses) -> None:
        """Take in how every broker is now."""
        now_ns = time.time_ns()
        rates = self._rates.per_s(now_ns, statuses)
        queues = {
            direction(source, target): link["queue_length"]
            for source, status in statuses.items()
            for target, link in status["links"].items()
        }
        longest = max(queues, key=lambda name: queues[name])
        total = totals(statuses)
        snapshot = OverlayMoment(
            seen_ns=now_ns,
            brokers={name: _view(status, rates[name]) for name, status in statuses.items()},
            slowed_queue=queues[self.link.short],
            longest_queue=queues[longest],
            longest_link=longest,
            overloaded=[
                direction(source, target)
                for source, status in statuses.items()
                for target, link in status["links"].items()
                if link["overloaded"]
            ],
            cases=total["cases"],
            published=total["published"],
            deliveries=total["counters"]["deliveries"],
            publishers_wait=bool(total["backpressure"]),
        )
        self.snapshots.append(snapshot)
        self.on_moment(snapshot)


def _view(status: dict[str, Any], ims_per_s: float) -> BrokerView:
    links = status["links"].values()
    return BrokerView(
        sum(link["queue_length"] for link in links),
        ims_per_s,
        any(link["overloaded"] for link in links),
    )
