"""Random scenarios for routing: an overlay, who wants what where, and what is published where."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from octopis.core.filters import Filter, parse_filter
from octopis.core.matching import LinearIndex
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm, Broker, NotificationMessage
from octopis.core.routing.table import IndexFactory
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor
from support.network import Network

FILTERS = tuple(
    map(
        parse_filter,
        (
            "x = 1",
            "x > 2",
            "x < 4 AND y = 1",
            "x >= 0",
            "y = 0 OR x = 5",
            "x <> 3",
            "z = 1",
            "y = 1",
        ),
    )
)


@dataclass(frozen=True)
class Subscriber:
    broker: BrokerId
    client: str
    identity: str
    filter: Filter


@dataclass(frozen=True)
class Publication:
    """A notification and where it is published. Its payload is one of a kind."""

    broker: BrokerId
    notification: Notification


@dataclass(frozen=True)
class Scenario:
    scot: SCOT
    subscribers: tuple[Subscriber, ...]
    publications: tuple[Publication, ...]
    seed: int

    def wanted_deliveries(self) -> list[tuple[bytes, BrokerId, str, str]]:
        """Say by the filters alone who must get what, sorted."""
        return sorted(
            (each.notification.payload, subscriber.broker, subscriber.client, subscriber.identity)
            for each in self.publications
            for subscriber in self.subscribers
            if subscriber.filter.matches(each.notification.attributes)
        )


def random_overlay(
    random: Random, regions: tuple[int, int] = (1, 12), clusters: tuple[int, int] = (1, 6)
) -> SCOT:
    """Any tree: each region but the first hangs on one before it; then all is shuffled."""
    labels = [f"r{number}" for number in range(random.randint(*regions))]
    random.shuffle(labels)
    edges = [(labels[random.randrange(at)], labels[at]) for at in range(1, len(labels))]
    random.shuffle(labels)
    complete = ConnectivityFactor.complete(random.randint(*clusters))
    return SCOT(AcyclicFactor(labels, edges), complete)


def random_notification(random: Random, number: int) -> Notification:
    names = ("x", "y") if random.random() < 0.8 else ("x",)
    attributes = {name: random.randint(0, 5 if name == "x" else 1) for name in names}
    return Notification(attributes, str(number).encode())


def random_scenario(random: Random, scot: SCOT | None = None) -> Scenario:
    scot = scot or random_overlay(random)
    subscribers = tuple(
        Subscriber(
            random.choice(scot.brokers), f"c{random.randint(0, 3)}", f"s{number}",
            random.choice(FILTERS),
        )
        for number in range(random.randint(0, 12))
    )  # fmt: skip
    publications = tuple(
        Publication(random.choice(scot.brokers), random_notification(random, number))
        for number in range(random.randint(1, 12))
    )
    return Scenario(scot, subscribers, publications, random.getrandbits(32))


def random_weather(random: Random) -> Callable[[Network, BrokerId], None]:
    """Let all links of a broker look different each time that it is told something."""
    dryness = random.random()

    def weather(network: Network, broker: BrokerId) -> None:
        status = network.brokers[broker].link_status
        for link in network.scot.neighbours(broker):
            roll = int(300 * random.random())  # one throw for all three: there are millions
            jam = 0 if random.random() < dryness else (1, 2, 20)[roll % 3]
            waiting = len(network.queues.get((broker, link), ()))
            status[link].queue_length = waiting + jam
            status[link].finish_window(roll // 3 % 10, roll // 30)

    return weather


def play(
    scenario: Scenario,
    algorithm: Algorithm,
    make: Callable[..., Broker] = Broker,
    index: IndexFactory = LinearIndex,
) -> Network:
    """Let everybody subscribe, then publish, in random order and under random weather."""
    random = Random(scenario.seed)  # noqa: S311 - repeatable on purpose
    network = Network(
        scenario.scot,
        algorithm,
        make,
        random_weather(random),
        index=index,
        congestion_threshold=random.choice((0.5, 3.0, 10.0)),
    )
    batch_max = random.choice((1, 1, 4))
    for subscriber in scenario.subscribers:
        network.subscribe(
            subscriber.broker, subscriber.client, subscriber.identity, subscriber.filter
        )
        step_at_random(network, random, batch_max)
    network.settle(random, batch_max=batch_max)
    for publication in scenario.publications:
        network.publish(publication.broker, publication.notification)
        step_at_random(network, random, batch_max)
    # A copy goes to a broker once under SNR and DNR, and once for each host under BID and TNR; in a
    # region it may try all clusters under TNR.
    hosts = max(1, len(scenario.subscribers)) if algorithm in (Algorithm.BID, Algorithm.TNR) else 1
    copies = len(scenario.publications) * len(scenario.scot.brokers) * hosts
    network.settle(random, copies + 1, batch_max)
    return network


def step_at_random(network: Network, random: Random, batch_max: int = 1) -> None:
    """Let a few messages arrive."""
    for _ in range(random.choice((0, 0, 1, 5, 30))):
        if network.queues:
            network.step(random.choice(list(network.queues)), random.randint(1, batch_max))


def deliveries(network: Network) -> list[tuple[bytes, BrokerId, str, str]]:
    """Return what was delivered, sorted, one row for each subscription."""
    return sorted(
        (each.notification.payload, each.broker, each.client, subscription)
        for each in network.delivered
        for subscription in each.subscriptions
    )


def routes(network: Network, payload: bytes) -> dict[BrokerId, BrokerId]:
    """Return for each broker that got a notification who sent it, and check that it got one."""
    senders: dict[BrokerId, BrokerId] = {}
    for sent in network.sent:
        if (
            isinstance(sent.message, NotificationMessage)
            and sent.message.notification.payload == payload
        ):
            assert sent.target not in senders, f"{sent.target} gets {payload!r} twice"
            senders[sent.target] = sent.source
    return senders
