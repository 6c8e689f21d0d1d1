"""Scenarios for the simulator, by hand and at random, on disk as a user's would be; their traces.

At `PLAIN` costs everything is easy to add up: a message keeps a server busy for 10 us and a
sender for 1 us, and is on its way for 100 us.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from octopis.core.delivery.options import DeliveryOptions
from octopis.core.filters import print_filter
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import SCOT, NamedTopology
from octopis.scenario.costs import Costs, Profile
from octopis.scenario.document import (
    ROUTING_ALONE,
    CutLink,
    Fault,
    Heading,
    QueueOptions,
    SlowLink,
    format_scenario,
)
from octopis.scenario.folder import Scenario, read_scenario, write_scenario
from octopis.scenario.tables import PUBLISHERS, SUBSCRIPTIONS
from octopis.simulator.run import run
from octopis.simulator.simulation import Simulation
from octopis.trace import Level, RunSummary
from octopis.trace.writer import TraceWriter
from support.overlays import CHAIN
from support.scenarios import FILTERS, random_overlay

PLAIN = Costs(
    routing_us=10,
    matching_us=0,
    matching_per_subscription_ns=0,
    identification_ns=0,
    subscription_us=0,
    send_overhead_us=1,
    bandwidth_mbit_per_s=8000,  # a byte is a nanosecond
    latency_us=100,
    notification_bytes=0,
    subscription_bytes=0,
    identification_bytes=0,
)
MS = 1_000_000
FILTER_TEXTS = tuple(map(print_filter, FILTERS))
ATTRIBUTES = pa.struct([("x", pa.int64()), ("y", pa.int64())])

Row = dict[str, Any]


class Subscribes(NamedTuple):
    """Somebody at a broker subscribes."""

    broker: str
    filter: str = "TRUE"
    at_ns: int = 0


class Publishes(NamedTuple):
    """Somebody at a broker publishes; times count from when all subscriptions have settled."""

    broker: str
    at_ns: int = 0
    x: int = 1
    y: int | None = None

    @property
    def attributes(self) -> dict[str, int]:
        return {"x": self.x} | ({} if self.y is None else {"y": self.y})


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a scenario says. Every broker has one publisher, which is named after it."""

    scot: SCOT = CHAIN
    algorithm: Algorithm = Algorithm.SNR
    subscribers: tuple[Subscribes, ...] = ()
    publications: tuple[Publishes, ...] = ()
    costs: Costs = PLAIN
    congestion_threshold: float = 10.0
    window_ns: int = 50 * MS
    queues: QueueOptions = field(default_factory=QueueOptions)
    delivery: DeliveryOptions = ROUTING_ALONE
    faults: tuple[Fault, ...] = ()
    seed: int = 7

    def numbered(self) -> list[tuple[str, int, Publishes]]:
        """Return the publications in the order of their times, each with publisher and number."""
        counts: Counter[str] = Counter()
        found = []
        for each in sorted(self.publications, key=lambda each: each.at_ns):
            found.append((each.broker, counts[each.broker], each))
            counts[each.broker] += 1
        return found


def plain(**changes: float) -> Costs:
    """Return `PLAIN` costs but for a few."""
    return msgspec.structs.replace(PLAIN, **changes)


def one_publication(algorithm: Algorithm, *targets: str, **changes: float) -> Setup:
    """Return a scenario in which all these brokers get one notification; `changes` are of costs."""
    return Setup(
        algorithm=algorithm,
        subscribers=tuple(
            Subscribes(target, at_ns=number * 10**7) for number, target in enumerate(targets)
        ),
        publications=(Publishes("a,0"),),
        costs=plain(**changes),
    )


def written(setup: Setup, folder: Path) -> Scenario:
    """Write a scenario, and read it back."""
    routing = RoutingOptions(setup.algorithm, setup.congestion_threshold, setup.window_ns / MS)
    sources = dict.fromkeys(setup.costs.__struct_fields__, "a test")
    document = format_scenario(
        Heading("test", setup.seed),
        NamedTopology("test", "", setup.scot),
        routing,
        profile=Profile("test", setup.costs, sources),
        queues=setup.queues,
        delivery=setup.delivery,
        faults=setup.faults,
    )
    subscriptions = [
        {
            "subscription": f"s{number}",
            "client": f"c{number}",
            "broker": each.broker,
            "filter": each.filter,
            "subscribe_ns": each.at_ns,
        }
        for number, each in enumerate(setup.subscribers)
    ]
    publishers = [
        {"publisher": broker.short, "broker": broker.short, "high_rate": False}
        for broker in setup.scot.brokers
    ]
    numbered = setup.numbered()
    notifications = pa.table(
        {
            "publisher": pa.array([publisher for publisher, _, _ in numbered], pa.string()),
            "sequence": pa.array([sequence for _, sequence, _ in numbered], pa.int64()),
            "intended_ns": pa.array([each.at_ns for _, _, each in numbered], pa.int64()),
            "attributes": pa.array([each.attributes for _, _, each in numbered], ATTRIBUTES),
        }
    )
    write_scenario(
        folder,
        document,
        pa.Table.from_pylist(subscriptions, SUBSCRIPTIONS),
        pa.Table.from_pylist(publishers, PUBLISHERS),
        notifications,
    )
    return read_scenario(folder)


@contextmanager
def on_disk(setup: Setup) -> Iterator[tuple[Scenario, Path]]:
    """Give a written scenario, and a folder in which traces find room."""
    with TemporaryDirectory() as folder:
        yield written(setup, Path(folder) / "scenario"), Path(folder)


@contextmanager
def simulated(
    setup: Setup, level: Level = Level.FULL, *, real_brokers: bool = False
) -> Iterator[tuple[Simulation, Path]]:
    """Give a simulation that has not begun, and the folder of its trace."""
    with on_disk(setup) as (scenario, folder), TraceWriter(folder / "trace", level) as writer:
        yield (
            Simulation(scenario, writer, lambda *_: None, real_brokers=real_brokers),
            writer.folder,
        )


@contextmanager
def ran(
    setup: Setup, level: Level = Level.FULL, *, real_brokers: bool = False
) -> Iterator[tuple[RunSummary, Path]]:
    """Give the summary and the trace of a scenario that has been run."""
    with on_disk(setup) as (scenario, folder):
        trace = folder / "trace"
        yield run(scenario, trace, level=level, real_brokers=real_brokers), trace


# Traces


def rows(trace: Path, table: str) -> list[Row]:
    """Return the rows of a trace's table."""
    found: list[Row] = pq.read_table(trace / f"{table}.parquet").to_pylist()
    return found


def sorted_rows(trace: Path, table: str) -> list[Row]:
    """Return the rows of a trace's table in an order that does not depend on when they came."""
    return sorted(rows(trace, table), key=lambda row: [str(value) for value in row.values()])


def digests(folder: Path) -> dict[str, str]:
    """Return the checksum of every file in a folder."""
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def wanted_deliveries(scenario: Scenario) -> list[tuple[str, int, str]]:
    """Say by the filters alone who must get what: publisher, sequence, subscription; sorted."""
    return sorted(
        (scenario.publishers[publisher].name, sequence, subscriber.subscription)
        for batch in scenario.publications()
        for publisher, sequence, attributes in zip(
            batch.publishers, batch.sequences, batch.attributes, strict=True
        )
        for subscriber in scenario.subscribers
        if subscriber.filter.matches(attributes)
    )


def made_deliveries(trace: Path) -> list[tuple[str, int, str]]:
    """Return who got what according to a trace, as `wanted_deliveries` does."""
    return sorted(
        (row["publisher"], row["sequence"], row["subscription"])
        for row in rows(trace, "deliveries")
    )


def out_of_order(trace: Path) -> int:
    """Count deliveries that came after a later one of the same publisher, subscriber for each."""
    last: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    found = 0
    in_time = sorted(
        rows(trace, "deliveries"), key=lambda row: (row["delivered_ns"], row["sequence"])
    )
    for row in in_time:
        whose = row["publisher"], row["subscription"]
        found += row["sequence"] < last[whose]
        last[whose] = max(last[whose], row["sequence"])
    return found


# Random scenarios


def random_costs(random: Random) -> Costs:
    """Any balance of server, sender and latency, with some costs of nothing and some enormous."""
    unit_ns = random.choice((1, 7, 1_000, 50_000, 10**7))

    def duration(*factors: float) -> float:
        return random.choice(factors) * unit_ns * random.choice((1, 1, 1, 3))

    return Costs(
        routing_us=duration(0, 1, 1, 10) / 1000,
        matching_us=duration(0, 0, 1, 5) / 1000,
        matching_per_subscription_ns=duration(0, 0, 0.1, 1),
        identification_ns=duration(0, 0, 1, 10),
        subscription_us=duration(0, 1, 20) / 1000,
        send_overhead_us=duration(0, 1, 10, 100, 100) / 1000,
        bandwidth_mbit_per_s=8000 / (random.choice((1e-4, 0.001, 0.1, 1)) * unit_ns),
        latency_us=duration(0, 0, 1, 30) / 1000,
        notification_bytes=random.choice((0, 1, 512)),
        subscription_bytes=random.choice((0, 1, 512)),
        identification_bytes=random.choice((0, 1, 16)),
        target_routing_us=random.choice((None, duration(0, 1, 1, 10) / 1000)),
    )


def message_ns(costs: Costs) -> int:
    """Return about how long a message takes from broker to broker where nobody is busy."""
    hop_ns = costs.routing_ns() + costs.matching_ns(10) + costs.latency_ns
    return hop_ns + costs.send_notification_ns() + costs.send_subscription_ns()


def random_times(random: Random, count: int, step_ns: int) -> list[int]:
    """Return rising times in bursts: many equal, many close together, some far apart."""
    now, times = random.randrange(step_ns), []
    while len(times) < count:
        gap = random.choice((0, 1, step_ns // 20, step_ns // 7, step_ns))
        for _ in range(random.choice((1, 2, 5, 20))):
            times.append(now)
            now += gap
        now += random.choice((0, step_ns, 20 * step_ns))
    return times[:count]


def random_slow_links(random: Random, scot: SCOT, step_ns: int) -> tuple[SlowLink, ...]:
    """Return slow links, each another one."""
    links = [*scot.acols, *scot.icols]
    found = []
    for one, other, _ in random.sample(links, min(len(links), random.choice((0, 0, 1, 3)))):
        source, target = random.sample((one, other), 2)
        begin_ms = random.randrange(30) * step_ns / MS
        end_ms = begin_ms + random.choice((1, 10, 1000)) * step_ns / MS
        factor = random.choice((1, 1.5, 20, 1000))
        found.append(SlowLink(source.short, target.short, factor, begin_ms, end_ms))
    return tuple(found)


def random_cuts(random: Random, setup: Setup) -> tuple[CutLink, ...]:
    """Return cuts of a few links, each of another."""
    links = [*setup.scot.acols, *setup.scot.icols]
    step_ns = message_ns(setup.costs)
    found = []
    for one, other, _ in random.sample(links, min(len(links), random.choice((1, 1, 2, 5)))):
        begin_ns = random.randrange(60) * step_ns // 2
        end_ns = begin_ns + random.choice((1, 5, 20, 200)) * step_ns
        found.append(CutLink(one.short, other.short, begin_ns / MS, end_ns / MS))
    return tuple(found)


def random_setup(
    random: Random,
    algorithm: Algorithm,
    *,
    costs: Costs | None = None,
    regions: tuple[int, int] = (1, 6),
    clusters: tuple[int, int] = (1, 4),
) -> Setup:
    """Any small scenario without cuts and with room in all queues."""
    scot = random_overlay(random, regions, clusters)
    costs = costs or random_costs(random)
    step_ns = message_ns(costs)
    places = [broker.short for broker in scot.brokers]
    busy = random.sample(places, min(len(places), random.choice((1, 1, 3, 24))))
    subscribers = random.choice((0, 1, 3, 10, 10, 10, 40, 40))
    publications = random.choice((1, 10, 30, 60))
    return Setup(
        scot=scot,
        algorithm=algorithm,
        subscribers=tuple(
            Subscribes(random.choice(places), random.choice(FILTER_TEXTS), time_ns)
            for time_ns in random_times(random, subscribers, step_ns)
        ),
        publications=tuple(
            Publishes(
                random.choice(busy),
                time_ns,
                random.randint(0, 5),
                random.choice((None, 0, 1)),
            )
            for time_ns in random_times(random, publications, step_ns)
        ),
        costs=costs,
        congestion_threshold=random.choice((0.01, 1.0, 2.5, 10.0, 1e9)),
        window_ns=min(10**11, max(1000, step_ns * random.choice((1, 3, 10, 100)) // 3)),
        faults=random_slow_links(random, scot, step_ns),
        seed=random.getrandbits(16),
    )
