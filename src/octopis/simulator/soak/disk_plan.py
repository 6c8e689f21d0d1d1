"""What a seed means where brokers have disks: durable subscriptions, and power that fails."""

from random import Random

from octopis.core.delivery.lasting.records import Policy
from octopis.core.delivery.options import DeliveryOptions
from octopis.core.model import BrokerId
from octopis.core.topology import SCOT
from octopis.simulator.soak.plan import (
    BEGIN_NS,
    MS,
    TOPICS,
    Fault,
    FaultKind,
    Kind,
    Plan,
    PlannedDisk,
    PlannedDurable,
    faults_of,
    links_of,
    overlay_of,
    publishers_of,
    subscribers_of,
)


def disk_plan_of(seed: int) -> Plan:
    """Return what a seed means where brokers have disks."""
    random = Random(f"disk {seed}")  # noqa: S311 - runs must repeat
    scot = overlay_of(random)
    span_ns = random.randint(600, 2200) * MS
    hosts = random.sample(scot.brokers, random.randint(2, min(4, len(scot.brokers) - 1)))
    publishers = publishers_of(random, hosts, span_ns)
    subscribers = subscribers_of(random, hosts, publishers, span_ns)
    give_up_s = random.choice((1, 6))
    faults = faults_of(random, scot, hosts, Kind.DISKS, span_ns)
    if give_up_s == 1:  # hosts that live are never apart for as long as it takes to be given up
        faults = [each for each in faults if each.length_ns < 300 * MS]
    bursts = [(each.host, at_ns) for each in publishers for at_ns, _ in each.bursts]
    first = [(each.host, each.bursts[0][0]) for each in publishers]
    bursts += first * 8  # where channels begin, much can go wrong
    faults += _of_power(random, scot, hosts, bursts, give_up_s)
    faults += _of_disks(random, scot, span_ns)
    return Plan(
        seed,
        Kind.DISKS,
        scot,
        DeliveryOptions(
            window=random.choice((4, 8, 16, 64)),
            window_bytes=random.choice((2_000, 8 * 2**20)),
            bytes=random.choice((4_000, 64 * 2**20)),
            give_up_s=give_up_s,
        ),
        congestion_threshold=random.choice((2, 4, 10)),
        silence_ns=random.choice((20, 100, 400)) * MS,
        is_prompt=random.random() < 0.5,
        links=links_of(random, scot, Kind.DEATH if give_up_s == 1 else Kind.DISKS),
        publishers=publishers,
        subscribers=subscribers,
        faults=sorted(faults, key=lambda fault: fault.begin_ns),
        end_ns=max([each.end_ns or each.begin_ns for each in faults], default=BEGIN_NS),
        disk=PlannedDisk(
            segment_records=random.choice((2, 4, 8)),
            sync_ms_max=random.choice((1, 5, 30)),
            slow_ms_max=random.choice((200, 2000)),
            tidy_ms=random.choice((5, 20, 50)),
            quota_bytes=random.choice((20_000, 40_000, 2**30)),
        ),
        durables=_durables(random, hosts, span_ns),
    )


def _durables(random: Random, hosts: list[BrokerId], span_ns: int) -> list[PlannedDurable]:
    found = []
    for number in range(random.randint(1, 4)):
        low = random.choice((0, 0, 1, 2))
        high = random.randint(low, TOPICS - 1)
        begin_ns = random.choice((0, 0, 0, BEGIN_NS + random.randint(0, span_ns)))
        away = []
        for _ in range(random.randint(0, 3)):
            gone_ns = BEGIN_NS + random.randint(0, span_ns)
            away.append((gone_ns, gone_ns + random.randint(10, 1500) * MS))
        policy = random.choice((Policy.REFUSE,) * 6 + (Policy.DROP_OLDEST, Policy.SUSPEND))
        about = random.choice(hosts), low, high, policy, begin_ns, tuple(away)
        found.append(PlannedDurable(f"d{number}", *about, random.choice((5, 30, 200))))
    return found


def _of_power(
    random: Random,
    scot: SCOT,
    hosts: list[BrokerId],
    bursts: list[tuple[BrokerId, int]],
    give_up_s: float,
) -> list[Fault]:
    """Return losses of power: of hosts, often again while they recover, and of all at once.

    They come soon after something was published, as there is little to lose at other times.
    """
    found = []
    longest_ns = round(give_up_s * 1e9)
    for _ in range(random.randint(1, 6)):
        broker, begin_ns = random.choice(bursts)
        if random.random() < 0.5:
            broker = random.choice(hosts if random.random() < 0.8 else scot.brokers)
        begin_ns += random.choice((1, 5, 30, 300)) * random.randint(0, MS)
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            length_ns = random.choice((random.randint(5, 800) * MS, 0))
            if random.random() < 0.1:  # for longer than it takes to be given up, and some more
                length_ns = random.choice((longest_ns, 3 * longest_ns)) + 300 * MS
            found.append(Fault(FaultKind.DEATH, broker, None, begin_ns, begin_ns + length_ns))
            begin_ns += length_ns + random.choice((1, 20, 100, 500)) * random.randint(0, MS)
    if random.random() < 0.4:
        begin_ns = random.choice(bursts)[1] + random.choice((1, 30)) * random.randint(0, MS)
        for broker in scot.brokers:
            end_ns = begin_ns + random.randint(0, random.choice((10, 1000))) * MS
            found.append(Fault(FaultKind.DEATH, broker, None, begin_ns, end_ns))
    return found


def _of_disks(random: Random, scot: SCOT, span_ns: int) -> list[Fault]:
    found = []
    for _ in range(random.randint(0, 3)):
        what = random.choice((FaultKind.SLOW_DISK, FaultKind.SLOW_DISK, FaultKind.FULL_DISK))
        begin_ns = BEGIN_NS + random.randint(0, span_ns)
        end_ns = begin_ns + random.randint(10, 800) * MS
        found.append(Fault(what, random.choice(scot.brokers), None, begin_ns, end_ns))
    return found
