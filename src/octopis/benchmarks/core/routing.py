"""`octopis bench routing`: how many notifications one broker routes in a second, on one core."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import median

import numpy as np

from octopis.core.filters.python import attr
from octopis.core.model import BrokerId, ClusterBitVector, Notification
from octopis.core.routing import (
    WINDOW_MS,
    Algorithm,
    Broker,
    Effect,
    Enqueue,
    LinkStatus,
    NotificationMessage,
    Subscribe,
    Subscription,
)
from octopis.core.routing.algorithms.tnr import Crossroads, plan
from octopis.core.routing.messages import Flooded, HostChange
from octopis.core.topology import SCOT, LinkKind, from_catalogue
from octopis.scenario.stock import StockWorkload

BATCH = 64
BATCHES = 60
ROUNDS = 3
"""How often all rows are measured, one after the other: what is compared, runs side by side."""

WHO = BrokerId("viii", 0)
"""The middle of S_e: an inner broker with four aCOLs and four iCOLs."""

_JAM = 1_000_000
"""Messages on the queue of an overloaded link."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Notifications routed in a second, and messages that this made."""

    algorithm: str
    role: str
    notifications_per_s: float
    ims_per_notification: float


@dataclass(frozen=True, slots=True)
class _Row:
    """What is measured: a broker, what comes to it in batches (from `sender`), and jammed links."""

    broker: Broker
    role: str
    batches: list[list[NotificationMessage]]
    sender: BrokerId | None
    jammed: Sequence[BrokerId] = ()


def run(subscriptions: int, seed: int) -> Iterator[Rate]:
    """Yield the rates of all algorithms, at the publisher's host and on the way."""
    workload = StockWorkload(seed)
    scot = from_catalogue("paper").scot
    filters = workload.filters(subscriptions)
    places = np.random.default_rng(seed).integers(0, len(scot.brokers), subscriptions).tolist()
    placed = [
        (Subscription(f"s{number}", filter_), scot.brokers[place])
        for number, (filter_, place) in enumerate(zip(filters, places, strict=True))
    ]
    quotes = [Notification(each) for each in workload.notifications(BATCH * BATCHES)]
    published = _in_batches([NotificationMessage(quote) for quote in quotes])
    before = scot.primary_neighbours(WHO)[0]
    icols = scot.secondary_neighbours(WHO)
    rows = []
    for algorithm in (Algorithm.SNR, Algorithm.DNR):
        broker = _broker(scot, algorithm)
        for subscription, host in placed:
            tell(broker, scot, subscription, host)
        rows += [
            _Row(broker, "publisher's host", published, None),
            _Row(broker, "on the way", published, before),
        ]
    rows.append(
        _Row(broker, "publisher's host, 2 of 4 iCOLs overloaded", published, None, icols[:2])
    )
    rows += [row for row in _target_rows(scot, placed, published) if row.batches]
    seconds: list[list[float]] = [[] for _ in rows]
    ims = [0] * len(rows)
    windows = count()
    for _ in range(ROUNDS):
        for number, row in enumerate(rows):
            ims[number] += _measure(row, windows, seconds[number])
    for row, made, measured in zip(rows, ims, seconds, strict=True):
        routed = ROUNDS * sum(map(len, row.batches))
        yield Rate(row.broker.algorithm.value, row.role, 1 / median(measured), made / routed)


def _target_rows(
    scot: SCOT,
    placed: list[tuple[Subscription, BrokerId]],
    published: list[list[NotificationMessage]],
) -> list[_Row]:
    """Return what is measured of target routing, and BID's step with the same targets."""
    broker = _broker(scot, Algorithm.TNR)
    for host in scot.brokers:
        held = tuple(each for each, at in placed if at == host)
        if host == WHO:
            for each in held:
                tell(broker, scot, each, host)
        elif held:
            change = HostChange(host, 1, 0, len(held), held)
            drain(broker, broker.messages_arrived(scot.neighbours(WHO)[0], [change]))
    before = scot.primary_neighbours(WHO)[0]
    arriving = _arriving(broker, scot, before, [each for batch in published for each in batch])
    own_bit = scot.bit(WHO)
    at_target = _in_batches([each for each in arriving if each.targets & own_bit])
    elsewhere = _in_batches([each for each in arriving if not each.targets & own_bit])
    identified = identifying_broker(scot)
    every_other = (*scot.primary_neighbours(WHO)[1::2], *scot.secondary_neighbours(WHO)[1::2])
    half = "half of all links overloaded"
    return [
        _Row(identified, "on the way, no target", elsewhere, before),  # as TNR's, to compare
        _Row(broker, "publisher's host", published, None),
        _Row(broker, "on the way, a target", at_target, before),
        _Row(broker, "on the way, no target", elsewhere, before),
        _Row(broker, f"publisher's host, {half}", published, None, every_other),
        _Row(broker, f"on the way, a target, {half}", at_target, before, every_other),
        _Row(broker, f"on the way, no target, {half}", elsewhere, before, every_other),
    ]


def _arriving(
    broker: Broker, scot: SCOT, before: BrokerId, published: list[NotificationMessage]
) -> list[NotificationMessage]:
    """Return the copies that reach the broker of what is published at the neighbour `before`."""
    links = {
        each: LinkStatus(each, is_icol=scot.link_kind(before, each) is LinkKind.ICOL)
        for each in scot.neighbours(before)
    }
    there = Crossroads(before, scot, links)
    hosts = broker.hosts_of([each.notification for each in published])
    arriving = []
    for message, found in zip(published, hosts, strict=True):
        targets = sum(map(scot.bit, found)) & there.others
        for way, part, tried, _ in plan(there, targets, 0, 0).copies:
            if way.link == broker.id:
                copy = NotificationMessage(message.notification, targets=part, tried=tried)
                arriving.append(copy)
    return arriving


def _broker(scot: SCOT, algorithm: Algorithm) -> Broker:
    # All of a batch is on its queues before any of it leaves: a threshold above that.
    return Broker(WHO, scot, algorithm, congestion_threshold=10 * BATCH)


def identifying_broker(scot: SCOT) -> Broker:
    """Return a broker under BID that has heard of every host over a shortest way."""
    broker = _broker(scot, Algorithm.BID)
    for number, host in enumerate(each for each in scot.brokers if each != WHO):
        change = Flooded(host, 0, 1, Subscription(f"s{number}", attr("price") > 0), None)
        way = min(scot.neighbours(WHO), key=lambda each: scot.distance(each, host))
        drain(broker, broker.messages_arrived(way, [change]))
    return broker


def _in_batches(messages: list[NotificationMessage]) -> list[list[NotificationMessage]]:
    return [messages[start : start + BATCH] for start in range(0, len(messages), BATCH)]


def tell(broker: Broker, scot: SCOT, subscription: Subscription, host: BrokerId) -> None:
    """Tell the broker of a subscription as it would hear of it in the overlay."""
    cbv_s = ClusterBitVector.of([host.cluster])
    if host == broker.id:
        effects = broker.client_subscribes(
            f"client of {subscription.id}", subscription.id, subscription.filter
        )
    else:
        if host.cluster == broker.id.cluster:
            nearer = scot.primary_neighbours(broker.id)
            last_hop = min(nearer, key=lambda other: scot.distance(other, host))
        else:
            last_hop = BrokerId(broker.id.region, host.cluster)
        effects = broker.messages_arrived(last_hop, [Subscribe(subscription, cbv_s, host)])
    drain(broker, effects)


def _measure(row: _Row, windows: Iterator[int], seconds: list[float]) -> int:
    """Add the seconds for a notification of each batch, and return the messages that this made.

    Each batch comes in a window of its own.
    """
    broker = row.broker
    for link in row.jammed:
        broker.link_status[link].queue_length = _JAM
    before = broker.counters.notification_ims
    for batch in row.batches:
        now_ns = next(windows) * WINDOW_MS * 1_000_000
        published = [message.notification for message in batch]
        start = time.process_time()
        if row.sender is None:
            effects = broker.client_publishes(published, now_ns)
        else:
            effects = broker.messages_arrived(row.sender, batch, now_ns)
        drain(broker, effects, now_ns)
        seconds.append((time.process_time() - start) / len(batch))
    for link in row.jammed:
        broker.link_status[link].queue_length = 0
    return broker.counters.notification_ims - before


def drain(broker: Broker, effects: Sequence[Effect], now_ns: int = 0) -> None:
    """Let everything leave its queue, as fast links would."""
    for effect in effects:
        if isinstance(effect, Enqueue):
            broker.messages_left(effect.link, len(effect.messages), now_ns)
