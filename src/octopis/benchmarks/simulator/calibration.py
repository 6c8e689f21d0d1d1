"""`octopis bench calibrate`: what work costs this machine, as a profile for the simulator."""

import socket
import threading
import time
from statistics import median

import msgspec

from octopis.benchmarks.core import routing
from octopis.benchmarks.core.matching import in_batches, per_notification
from octopis.core.matching import BitsetIndex
from octopis.core.model import Notification, Value
from octopis.core.routing import Algorithm, Broker, NotificationMessage, Subscription
from octopis.core.topology import from_catalogue
from octopis.report.machine import describe
from octopis.scenario.costs import Profile, profile_named
from octopis.scenario.stock import StockWorkload

FEW, MANY = 1_000, 10_000
BATCH = 64


def calibrate(seed: int) -> Profile:
    """Return the `octopis` profile, with every cost measured that one machine can measure."""
    shipped = profile_named("octopis")
    workload = StockWorkload(seed)
    quotes = workload.notifications(BATCH * 40)
    few, many = (_matching_us(workload, quotes, size) for size in (FEW, MANY))
    slope_ns = max(0.0, 1000 * (many - few) / (MANY - FEW))
    rates = {(rate.algorithm, rate.role): rate for rate in routing.run(MANY, seed)}
    whole_us = 1e6 / rates["snr", "on the way"].notifications_per_s
    target_us, bid_us = (
        1e6 / rates[name, "on the way, no target"].notifications_per_s for name in ("tnr", "bid")
    )
    encoded = msgspec.msgpack.encode(quotes[0])
    measured = {
        "matching_us": max(0.0, few - slope_ns * FEW / 1000),
        "matching_per_subscription_ns": slope_ns,
        "routing_us": max(0.1, whole_us - many),
        "subscription_us": _subscription_us(workload),
        "identification_ns": _identification_ns(),
        "send_overhead_us": _send_us(quotes),
        "notification_bytes": len(encoded),
        "target_routing_us": target_us,
    }
    values = {name: _rounded(value) for name, value in measured.items()}
    costs = msgspec.structs.replace(shipped.costs, **values)
    sources = shipped.sources | dict.fromkeys(values, f"measured on {describe()}")
    # What TNR's step costs others follows from what BID's does: both split sets of brokers.
    sources["target_routing_us"] += f": {target_us / bid_us:.2f} of BID's step"
    return Profile("octopis", costs, sources)


def _matching_us(workload: StockWorkload, quotes: list[dict[str, Value]], size: int) -> float:
    index: BitsetIndex[int, int] = BitsetIndex()
    index.add_many((number, each, number % 7) for number, each in enumerate(workload.filters(size)))
    return per_notification(index.destinations, in_batches(quotes))


def _subscription_us(workload: StockWorkload) -> float:
    """Return the microseconds to store a subscription, with a batch matched after every 64."""
    scot = from_catalogue("paper").scot
    broker = Broker(routing.WHO, scot, Algorithm.SNR)
    filters = workload.filters(2_000)
    quotes = [Notification(each) for each in workload.notifications(BATCH)]
    start = time.perf_counter()
    for number, filter_ in enumerate(filters):
        host = scot.brokers[number % len(scot.brokers)]
        routing.tell(broker, scot, Subscription(f"s{number}", filter_), host)
        if number % BATCH == 0:
            routing.drain(broker, broker.client_publishes(quotes))
    return 1e6 * (time.perf_counter() - start) / len(filters)


def _identification_ns() -> float:
    """Return the nanoseconds that one more identification costs a broker on the way."""
    scot = from_catalogue("paper").scot
    broker = routing.identifying_broker(scot)
    others = [host for host in scot.brokers if host != broker.id]
    few, many = (_split_us(broker, sum(map(scot.bit, others[:count]))) for count in (4, 64))
    return max(0.0, 1000 * (many - few) / 60)


def _split_us(broker: Broker, bids: int) -> float:
    sender = next(iter(broker.link_status))
    routed = NotificationMessage(Notification({"price": 1}), targets=bids)
    seconds = []
    for _ in range(200):
        start = time.perf_counter()
        effects = broker.messages_arrived(sender, [routed])
        seconds.append(time.perf_counter() - start)
        routing.drain(broker, effects)
    return median(seconds) * 1e6


def _send_us(quotes: list[dict[str, Value]]) -> float:
    """Return the microseconds to encode a notification and write it to a loopback connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(listener.getsockname())
    receiver, _ = listener.accept()
    reading = threading.Thread(target=_read_all, args=(receiver,))
    reading.start()
    seconds = []
    try:
        for start_at in range(0, len(quotes), BATCH):
            batch = quotes[start_at : start_at + BATCH]
            start = time.perf_counter()
            sender.sendall(b"".join(msgspec.msgpack.encode(quote) for quote in batch))
            seconds.append((time.perf_counter() - start) / len(batch))
    finally:
        sender.close()
        reading.join()
        receiver.close()
        listener.close()
    return median(seconds) * 1e6


def _read_all(receiver: socket.socket) -> None:
    while receiver.recv(1 << 16):
        pass


def _rounded(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.3g}")
