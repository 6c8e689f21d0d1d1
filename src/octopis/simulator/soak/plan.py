"""What a seed means: an overlay, its links, its clients, and the faults that happen to it."""

from enum import Enum
from random import Random

import msgspec

from octopis.core.delivery.lasting.records import Policy
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.model import BrokerId
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor

MS = 1_000_000
BEGIN_NS = 300 * MS
"""Until then the subscriptions spread; then publications and faults begin."""

TOPICS = 4


class Kind(Enum):
    """Which law holds of a run."""

    LIVING = "hosts live"
    """Hosts stand still at most: nothing is lost, twice or out of order."""

    RESTARTS = "hosts restart"
    """Nothing is twice or out of order, and of what is lost somebody is told."""

    DEATH = "a host stays dead"
    """It is given up and counted, publishers wait no longer, and all others get everything."""

    DISKS = "brokers have disks"
    """Nothing that was answered is lost to durable subscriptions, whatever loses its power."""


class FaultKind(Enum):
    """What can happen to links and brokers."""

    CUT = "cut"
    ONE_WAY = "one-way cut"
    SLOW = "slow"
    LOSSY = "lossy"
    STILL = "stands still"
    DEATH = "dead"
    SLOW_DISK = "slow disk"
    FULL_DISK = "full disk"


EVERYWHERE = [each for each in FaultKind if "disk" not in each.value]
"""What happens with and without disks."""


class Fault(msgspec.Struct, frozen=True):
    """A fault of a broker, or of the link to `other`; where it has no end, it stays."""

    kind: FaultKind
    broker: BrokerId
    other: BrokerId | None
    begin_ns: int
    end_ns: int | None
    strength: float = 0
    """How slow a slow link is, and how much of what goes over a lossy one is lost."""

    def __str__(self) -> str:
        where = f"{self.broker} - {self.other}" if self.other else str(self.broker)
        until = "for good" if self.end_ns is None else f"for {self.length_ns // MS} ms"
        strength = f" ({self.strength:.2g})" if self.strength else ""
        return f"{where}: {self.kind.value}{strength} {until}"

    @property
    def length_ns(self) -> int:
        """How long it lasts."""
        return 0 if self.end_ns is None else self.end_ns - self.begin_ns


class PlannedLink(msgspec.Struct, frozen=True):
    """One direction of a link: how long messages take, and how many may wait."""

    latency_ns: int
    service_ns: int
    capacity: int
    loss: float
    doubling: float


class PlannedPublisher(msgspec.Struct, frozen=True):
    """A publisher: bursts of notifications, each with its time and the topics of its members."""

    name: str
    host: BrokerId
    bursts: list[tuple[int, list[int]]]
    payload: int


class PlannedSubscriber(msgspec.Struct, frozen=True):
    """A subscriber asks for topics from `low` to `high`; one that comes and goes says when."""

    name: str
    host: BrokerId
    low: int
    high: int
    changes_ns: tuple[int, ...] = ()

    @property
    def filter(self) -> str:
        """What it asks for."""
        return f"topic >= {self.low} AND topic <= {self.high}"

    @property
    def is_stable(self) -> bool:
        """Whether it is there all the time."""
        return not self.changes_ns


class PlannedDurable(msgspec.Struct, frozen=True):
    """A durable subscription: its topics, when it is made, and when its reader comes and goes."""

    name: str
    host: BrokerId
    low: int
    high: int
    policy: Policy
    begin_ns: int
    away_ns: tuple[tuple[int, int], ...]
    """From when until when its reader is away."""

    pause_ms_max: int
    """So long its reader waits at most before it reads again."""

    @property
    def filter(self) -> str:
        """What it asks for."""
        return f"topic >= {self.low} AND topic <= {self.high}"


class PlannedDisk(msgspec.Struct, frozen=True):
    """How the disks of a run are."""

    segment_records: int
    sync_ms_max: int
    slow_ms_max: int
    tidy_ms: int
    """So often drivers tidy."""

    quota_bytes: int


class Plan(msgspec.Struct, frozen=True):
    """All that a seed says."""

    seed: int
    kind: Kind
    scot: SCOT
    options: DeliveryOptions
    congestion_threshold: float
    silence_ns: int
    """After so long a broker notices that a neighbour is silent."""

    is_prompt: bool
    """Whether drivers open channels before they publish, and send again and deliver what has waited
    as soon as a post lets them; or all of that with the next look. Posts are not answered at once:
    where each has copies, answers to answers would have no end."""

    links: dict[tuple[BrokerId, BrokerId], PlannedLink]
    publishers: list[PlannedPublisher]
    subscribers: list[PlannedSubscriber]
    faults: list[Fault]
    end_ns: int
    """When the last fault is over."""

    disk: PlannedDisk | None = None
    durables: list[PlannedDurable] = []

    @property
    def hosts(self) -> list[BrokerId]:
        """Brokers with clients."""
        found = {each.host for each in self.publishers} | {each.host for each in self.subscribers}
        found |= {each.host for each in self.durables}
        return sorted(found, key=self.scot.brokers.index)


def plan_of(seed: int) -> Plan:
    """Return what a seed means."""
    random = Random(seed)  # noqa: S311 - runs must repeat
    kind = random.choice([Kind.LIVING] * 7 + [Kind.RESTARTS] * 2 + [Kind.DEATH])
    scot = overlay_of(random)
    span_ns = random.randint(600, 2200) * MS
    hosts = random.sample(scot.brokers, random.randint(2, min(4, len(scot.brokers) - 1)))
    publishers = publishers_of(random, hosts, span_ns)
    subscribers = subscribers_of(random, hosts, publishers, span_ns)
    faults = faults_of(random, scot, hosts, kind, span_ns)
    if kind is Kind.DEATH:
        targets = [each.host for each in subscribers if each.is_stable]
        begin_ns = BEGIN_NS + random.randint(0, span_ns)
        faults.append(Fault(FaultKind.DEATH, random.choice(targets), None, begin_ns, None))
    return Plan(
        seed,
        kind,
        scot,
        DeliveryOptions(
            window=random.choice((4, 8, 16, 64)),
            window_bytes=random.choice((2_000, 8 * 2**20)),
            bytes=random.choice((4_000, 64 * 2**20)),
            give_up_s=2 if kind is Kind.DEATH else 6,
        ),
        congestion_threshold=random.choice((2, 4, 10)),
        silence_ns=random.choice((20, 100, 400)) * MS,
        is_prompt=random.random() < 0.5,
        links=links_of(random, scot, kind),
        publishers=publishers,
        subscribers=subscribers,
        faults=sorted(faults, key=lambda fault: fault.begin_ns),
        end_ns=max([each.end_ns or each.begin_ns for each in faults], default=BEGIN_NS),
    )


def overlay_of(random: Random) -> SCOT:
    """Return a small overlay."""
    regions = "abcd"[: random.randint(2, 4)]
    edges = [(random.choice(regions[:place]), regions[place]) for place in range(1, len(regions))]
    clusters = random.choice((2, 2, 3))
    return SCOT(AcyclicFactor(regions, edges), ConnectivityFactor.complete(clusters))


def links_of(
    random: Random, scot: SCOT, kind: Kind
) -> dict[tuple[BrokerId, BrokerId], PlannedLink]:
    """Return both directions of all links."""
    loss, doubling = random.choice((0, 0.01, 0.05, 0.2)), random.choice((0, 0.02, 0.1, 0.2))
    if kind is Kind.DEATH:  # else the living seem dead: they are given up soon in these runs
        loss = min(loss, 0.05)
    slowest_us = random.choice((50, 500, 2000))
    return {
        (source, target): PlannedLink(
            latency_ns=random.choice((200, 1_000, 5_000, 20_000)) * 1000,
            service_ns=random.randint(20, slowest_us) * 1000,
            capacity=random.choice((4, 16, 64)),
            loss=loss,
            doubling=doubling,
        )
        for source in scot.brokers
        for target in scot.neighbours(source)
    }


def publishers_of(random: Random, hosts: list[BrokerId], span_ns: int) -> list[PlannedPublisher]:
    """Return publishers, at one half of the hosts."""
    found = []
    for number in range(random.randint(1, 3)):
        bursts = []
        for _ in range(random.randint(5, 30)):
            at_ns = BEGIN_NS + random.randint(0, span_ns)
            topics = [random.randrange(TOPICS) for _ in range(random.randint(1, 6))]
            bursts.append((at_ns, topics))
        bursts.sort()
        host = random.choice(hosts[: len(hosts) // 2])
        found.append(PlannedPublisher(f"p{number}", host, bursts, random.choice((10, 200))))
    return found


def subscribers_of(
    random: Random, hosts: list[BrokerId], publishers: list[PlannedPublisher], span_ns: int
) -> list[PlannedSubscriber]:
    """Return subscribers: at all hosts where nobody publishes, and at some where somebody does."""
    found: list[PlannedSubscriber] = []
    publishing = {each.host for each in publishers}
    for host in hosts:
        if host in publishing and random.random() < 0.5:
            continue
        for _ in range(random.randint(1, 2)):
            low = random.choice((0, 0, 1, 2))
            high = random.randint(low, TOPICS - 1)
            found.append(PlannedSubscriber(f"s{len(found)}", host, low, high))
        if random.random() < 0.3:
            times = [BEGIN_NS + random.randint(0, span_ns) for _ in range(random.randint(1, 6))]
            low = random.randrange(TOPICS)
            name = f"s{len(found)}"
            found.append(PlannedSubscriber(name, host, low, TOPICS - 1, tuple(sorted(times))))
    return found


def faults_of(
    random: Random, scot: SCOT, hosts: list[BrokerId], kind: Kind, span_ns: int
) -> list[Fault]:
    """Return what happens to links, and to brokers without clients."""
    # Hosts that live are never apart for as long as it takes to be given up.
    longest_ms = 300 if kind is Kind.DEATH else 1500
    others = [broker for broker in scot.brokers if broker not in hosts]
    found = []
    for _ in range(random.randint(1, 10)):
        what = random.choice(EVERYWHERE)
        begin_ns = BEGIN_NS + random.randint(0, span_ns)
        length_ns = random.randint(5, random.choice((50, longest_ms))) * MS
        broker = random.choice(scot.brokers)
        other = random.choice(scot.neighbours(broker))
        strength = 0.0
        if what in {FaultKind.DEATH, FaultKind.STILL}:
            broker = random.choice(others if what is FaultKind.DEATH else scot.brokers)
            found.append(Fault(what, broker, None, begin_ns, begin_ns + length_ns))
            continue
        if what is FaultKind.SLOW:
            strength = random.uniform(5, 50)
        elif what is FaultKind.LOSSY:
            strength = random.uniform(0.1, 0.6)
        elif what is FaultKind.CUT and random.random() < 0.4:  # it flaps
            for _ in range(random.randint(2, 6)):
                end_ns = begin_ns + random.randint(1, 40) * MS
                found.append(Fault(what, broker, other, begin_ns, end_ns))
                begin_ns = end_ns + random.randint(1, 60) * MS
            continue
        found.append(Fault(what, broker, other, begin_ns, begin_ns + length_ns, strength))
    if kind is Kind.RESTARTS:
        for _ in range(random.randint(1, 3)):
            begin_ns = BEGIN_NS + random.randint(0, span_ns)
            end_ns = begin_ns + random.randint(5, 800) * MS
            found.append(Fault(FaultKind.DEATH, random.choice(hosts), None, begin_ns, end_ns))
    return found
