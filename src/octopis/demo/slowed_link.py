"""Which link is slowed down, and to what: found in the scenario, the same for every algorithm."""

from dataclasses import dataclass

from octopis.demo.workload import SPEED
from octopis.model import BrokerId, Value
from octopis.wire.published import encode_published
from octopis.workload.folder import Scenario
from octopis.workload.tables import Publisher

SHARE = 0.4
"""What the slowed link can carry, of what the high-rate publisher sends."""

Feed = list[tuple[int, dict[str, Value]]]
"""When the high-rate publisher's notifications are due, and their attributes."""


@dataclass(frozen=True)
class SlowedLink:
    """One direction of an iCOL, from the host of the high-rate publisher to another cluster."""

    source: BrokerId
    target: BrokerId
    bytes_per_s: float
    feed_per_s: float
    """How many notifications a second the high-rate publisher sends."""

    hops_beyond: int
    """How far behind the link its subscriber is; at 0, every way there leads over the link or
    around it, and no algorithm can avoid it by the luck of its tree."""

    @property
    def short(self) -> str:
        """The form for tables: `b,2 → b,0`."""
        return f"{self.source.short} → {self.target.short}"

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"


def slowed_link(scenario: Scenario) -> SlowedLink:
    """Return the iCOL by which static routing sends the feed to its nearest other cluster.

    The nearer its subscriber is behind the link, the fewer ways around it BID's tree can have.
    """
    publisher = next(each for each in scenario.publishers if each.high_rate)
    feed = _feed(scenario, publisher)
    scot, host = scenario.topology.scot, publisher.broker
    away = [
        (scot.acyclic.distance(host.region, each.broker.region), each.broker.cluster)
        for each in scenario.subscribers
        if each.broker.cluster != host.cluster and each.wanted.matches(feed[0][1])
    ]
    hops, cluster = min(away)
    seconds = (feed[-1][0] - feed[0][0]) / 1e9 / SPEED
    per_s = (len(feed) - 1) / seconds
    return SlowedLink(
        host,
        BrokerId(host.region, cluster),
        round(SHARE * per_s * _bytes_each(publisher, feed)),
        per_s,
        hops,
    )


def _feed(scenario: Scenario, publisher: Publisher) -> Feed:
    number = scenario.publishers.index(publisher)
    return [
        (due_ns, attributes)
        for batch in scenario.publications()
        for author, _, due_ns, attributes in zip(*batch, strict=True)
        if author == number
    ]


def _bytes_each(publisher: Publisher, feed: Feed) -> float:
    """Return what a notification of the feed takes on a link, on average."""
    sizes = [
        len(encode_published(attributes, b"", publisher.name, number, 2**60 + due_ns))
        for number, (due_ns, attributes) in enumerate(feed, 1)
    ]
    return sum(sizes) / len(sizes)
