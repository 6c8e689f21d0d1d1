"""What the demonstration plays, and on what: stock quotes, one high-rate feed, one slowed link.

The feed's publisher sends far more than all others. Which link is slowed down, and to what, is
found in the scenario, the same for every algorithm.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msgspec.structs import replace
from pyspark.sql import SparkSession

from octopis.core.model import BrokerId, Value
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import SCOT, from_catalogue
from octopis.core.wire.published import encode_published
from octopis.pipeline.ingest.quotes import synthetic_quotes
from octopis.pipeline.scenarios.build import build
from octopis.pipeline.scenarios.truth import FOLDER, write_truth
from octopis.scenario.folder import Scenario, read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.tables import Subscriber

SEED = 7
"""With it a subscriber sits right behind the slowed link, so that no algorithm can avoid that link
by the luck of its tree; with other seeds, BID's tree may lead past it."""

SPEED = 2.5
"""The high-rate publisher starts after 5 s of the scenario: 2 s here."""

_DAYS = 20

SPARK_SETTINGS = {
    "spark.driver.memory": "1g",
    # A session of seconds, with small frames: to share them out, or to compile, costs more than it
    # saves.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


FULL = ScenarioPlan(
    routing=RoutingOptions(Algorithm.DNR),
    name="demo",
    topology=from_catalogue("figure-3"),
    subscribers=60,
    publishers=8,
    notifications_each=60,
    per_minute=240,
    high_rate_notifications=1_600,
    high_rate_per_minute=9_600,
    selectivity=0.05,
    seed=SEED,
)
SMALL = replace(
    FULL, subscribers=20, publishers=3, notifications_each=10, high_rate_notifications=300
)

SHARE = 0.4
"""What the slowed link can carry, of what the high-rate publisher sends."""


@dataclass(frozen=True)
class Feed:
    """What the high-rate publisher sends, from where, when, and who wants it."""

    host: BrokerId
    example: dict[str, Value]
    subscribers: list[Subscriber]
    begin_s: float
    end_s: float
    """Seconds after the start of a play, at the demonstration's speed."""

    count: int
    bytes_each: float
    """What one of its notifications takes on a link, on average."""

    @property
    def per_s(self) -> float:
        """How many notifications it sends a second."""
        return (self.count - 1) / (self.end_s - self.begin_s)


def read_feed(scenario: Scenario) -> Feed:
    """Return the feed of a scenario that has a high-rate publisher with several notifications."""
    number, publisher = next(
        (number, each) for number, each in enumerate(scenario.publishers) if each.high_rate
    )
    sent = [
        (due_ns, attributes)
        for batch in scenario.publications()
        for author, _, due_ns, attributes in zip(*batch, strict=True)
        if author == number
    ]
    # The time that is really sent is since 1970, which takes eight bytes.
    sizes = [
        len(encode_published(attributes, b"", publisher.name, sequence, 2**60 + due_ns))
        for sequence, (due_ns, attributes) in enumerate(sent, 1)
    ]
    example = sent[0][1]
    return Feed(
        host=publisher.broker,
        example=example,
        subscribers=[each for each in scenario.subscribers if each.filter.matches(example)],
        begin_s=sent[0][0] / 1e9 / SPEED,
        end_s=sent[-1][0] / 1e9 / SPEED,
        count=len(sent),
        bytes_each=sum(sizes) / len(sizes),
    )


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


@dataclass(frozen=True)
class Prepared:
    """A scenario with its ground truth, its feed, and the link that is slowed down."""

    scenario: Scenario
    due: int
    """How many deliveries the ground truth asks for."""

    @cached_property
    def feed(self) -> Feed:
        """The feed of the high-rate publisher."""
        return read_feed(self.scenario)

    @cached_property
    def link(self) -> SlowedLink:
        """The link that is slowed down."""
        return slowed_link(self.scenario.topology.scot, self.feed)


def prepare(spark: SparkSession, plan: ScenarioPlan, folder: Path) -> Prepared:
    """Build the scenario and its ground truth into a new folder, on Spark."""
    build(spark, synthetic_quotes(spark, plan.seed, _DAYS), plan, folder)
    scenario = read_scenario(folder)
    report = write_truth(spark, scenario, folder / FOLDER)
    return Prepared(scenario, report.pairs)
