"""Which link is slowed down, and to what: found in the scenario, the same for every algorithm."""

from dataclasses import dataclass

from octopis.demo.feed import Feed
from octopis.model import BrokerId
from octopis.topology import SCOT

SHARE = 0.4
"""What the slowed link can carry, of what the high-rate publisher sends."""


@dataclass(frozen=True)
class SlowedLink:
    """One direction of an iCOL, from the host of the high-rate publisher to another cluster."""

    source: BrokerId
    target: BrokerId
    bytes_per_s: float
    hops_beyond: int
    """How far behind the link the nearest subscriber of the feed is. At 0 the link is the one
    shortest way there, which every algorithm takes at first."""

    @property
    def short(self) -> str:
        """The form for tables: `b,2 → b,0`."""
        return direction(self.source.short, self.target.short)

    def __str__(self) -> str:
        return direction(str(self.source), str(self.target))


def direction(source: str, target: str) -> str:
    """Return how one direction of a link is written."""
    return f"{source} → {target}"


def slowed_link(scot: SCOT, feed: Feed) -> SlowedLink:
    """Return the iCOL by which static routing sends the feed to another cluster.

    Of several, the one with the nearest subscriber behind it: the fewer other ways BID's tree has.
    """
    host = feed.host
    hops, cluster = min(
        (scot.acyclic.distance(host.region, each.broker.region), each.broker.cluster)
        for each in feed.subscribers
        if each.broker.cluster != host.cluster
    )
    bytes_per_s = float(round(SHARE * feed.per_s * feed.bytes_each))
    return SlowedLink(host, BrokerId(host.region, cluster), bytes_per_s, hops)
