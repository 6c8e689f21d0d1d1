"""`octopis bench routing`: how many notifications one broker routes in a second, on one core."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from octopis.core.model import BrokerId, ClusterBitVector, Notification
from octopis.core.routing import (
    WINDOW_MS,
    Algorithm,
    Broker,
    Effect,
    Enqueue,
    NotificationMessage,
    Subscribe,
    Subscription,
)
from octopis.core.topology import SCOT, from_catalogue
from octopis.scenario.stock import StockWorkload

BATCH = 64
BATCHES = 60
WHO = BrokerId("viii", 0)
"""The middle of S_e: an inner broker with four aCOLs and four iCOLs."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Notifications routed in a second, and messages that this made."""

    algorithm: str
    role: str
    notifications_per_s: float
    ims_per_notification: float


def run(subscriptions: int, seed: int) -> Iterator[Rate]:
    """Yield the rates of all algorithms, at the publisher's host and on the way."""
    workload = StockWorkload(seed)
    scot = from_catalogue("paper").scot
    filters = workload.filters(subscriptions)
    hosts = np.random.default_rng(seed).integers(0, len(scot.brokers), subscriptions).tolist()
    quotes = [Notification(attributes) for attributes in workload.notifications(BATCH * BATCHES)]
    batches = [quotes[start : start + BATCH] for start in range(0, len(quotes), BATCH)]
    for algorithm in (Algorithm.SNR, Algorithm.DNR):
        # All of a batch is on its queues before any of it leaves: a threshold above that.
        broker = Broker(WHO, scot, algorithm, congestion_threshold=10 * BATCH)
        for number, (filter_, host) in enumerate(zip(filters, hosts, strict=True)):
            tell(broker, scot, Subscription(f"s{number}", filter_), scot.brokers[host])
        yield _measure(broker, batches, "publisher's host", None)
        yield _measure(broker, batches, "on the way", scot.primary_neighbours(WHO)[0])
        if algorithm is Algorithm.DNR:
            for icol in scot.secondary_neighbours(WHO)[:2]:
                broker.link_status[icol].queue_length = 1_000_000
            yield _measure(broker, batches, "publisher's host, 2 of 4 iCOLs overloaded", None)


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


def _measure(
    broker: Broker, batches: list[list[Notification]], role: str, sender: BrokerId | None
) -> Rate:
    seconds = []
    before = broker.counters.notification_ims
    for window, batch in enumerate(batches):
        now_ns = window * WINDOW_MS * 1_000_000
        routed = [NotificationMessage(notification) for notification in batch]
        start = time.perf_counter()
        if sender is None:
            effects = broker.client_publishes(batch, now_ns)
        else:
            effects = broker.messages_arrived(sender, routed, now_ns)
        drain(broker, effects, now_ns)
        seconds.append(time.perf_counter() - start)
    ims = (broker.counters.notification_ims - before) / (BATCH * len(batches))
    return Rate(broker.algorithm.value, role, BATCH / median(seconds), ims)


def drain(broker: Broker, effects: Sequence[Effect], now_ns: int = 0) -> None:
    """Let everything leave its queue, as fast links would."""
    for effect in effects:
        if isinstance(effect, Enqueue):
            broker.messages_left(effect.link, len(effect.messages), now_ns)
