"""Who subscribes and who publishes where, and when: drawn from the plan's seed alone."""

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octopis.model import BrokerId
from octopis.workload.high_rate import FEED, wants_feed
from octopis.workload.plan import Plan
from octopis.workload.tables import PUBLISHERS, SUBSCRIPTIONS

START_WITHIN_NS = 5_000_000_000
SUBSCRIBE_EVERY_NS = 10_000_000
MINUTE_NS = 60_000_000_000
HIGH_RATE_SHARE = 0.002
"""The paper: all publishers start within 5 s; 0.2% of the subscribers want the high-rate one."""

HIGH_RATE_PUBLISHER = "hrp"

Times = npt.NDArray[np.int64]


class Clients:
    """The clients of a plan. Ask in the order of the methods: each draws on from the last."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.random = np.random.default_rng([plan.seed, 1])
        brokers = plan.topology.scot.brokers
        hosts = self.random.integers(0, len(brokers), plan.publishers).tolist()
        self._hosts = [brokers[host] for host in hosts]
        self._high_rate_host = brokers[int(self.random.integers(0, len(brokers)))]

    @cached_property
    def names(self) -> list[str]:
        """The names of the publishers, without the high-rate one."""
        return [f"p{number:04d}" for number in range(self._plan.publishers)]

    def publishers(self) -> pa.Table:
        """Return the table of publishers."""
        places = [(name, host, False) for name, host in zip(self.names, self._hosts, strict=True)]
        if self._plan.high_rate_notifications:
            places.append((HIGH_RATE_PUBLISHER, self._high_rate_host, True))
        rows = [
            {"publisher": name, "broker": broker.short, "high_rate": high_rate}
            for name, broker, high_rate in places
        ]
        return pa.Table.from_pylist(rows, PUBLISHERS)

    def subscriptions(self, texts: list[str]) -> pa.Table:
        """Return the table of subscriptions: one for each filter, placed at random."""
        plan, random, scot = self._plan, self.random, self._plan.topology.scot
        hosts = [scot.brokers[place] for place in random.integers(0, len(scot.brokers), len(texts))]
        if plan.high_rate_notifications:
            # Every cluster is a target of the high-rate publisher; all sit on other brokers.
            interested = max(len(scot.clusters), round(plan.subscribers * HIGH_RATE_SHARE))
            for number in range(min(interested, plan.subscribers)):
                cluster = scot.cluster(number % len(scot.clusters))
                others = [broker for broker in cluster if broker != self._high_rate_host]
                chosen = int(random.integers(0, len(others))) if others else 0
                hosts[number] = (others or cluster)[chosen]
                texts[number] = wants_feed()
        rows = [
            _subscription(number, text, host)
            for number, (text, host) in enumerate(zip(texts, hosts, strict=True))
        ]
        return pa.Table.from_pylist(rows, SUBSCRIPTIONS)

    def starts(self) -> Times:
        """Return when each publisher but the high-rate one sends its first notification."""
        return self.random.integers(0, START_WITHIN_NS, self._plan.publishers)

    @property
    def step_ns(self) -> int:
        """The time between two notifications of a publisher."""
        return round(MINUTE_NS / self._plan.per_minute)

    def high_rate_times(self) -> Times:
        """Return when the high-rate publisher sends."""
        step_ns = MINUTE_NS / self._plan.high_rate_per_minute
        sent = np.arange(self._plan.high_rate_notifications)
        return START_WITHIN_NS + np.round(sent * step_ns).astype(np.int64)


def _subscription(number: int, text: str, host: BrokerId) -> dict[str, object]:
    return {
        "subscription": f"s{number:05d}",
        "client": f"c{number:05d}",
        "broker": host.short,
        "filter": text,
        "subscribe_ns": number * SUBSCRIBE_EVERY_NS,
    }


def attribute_types(plan: Plan) -> pa.StructType:
    """Return the attributes of the plan's notifications."""
    text, whole = ("symbol", "date"), ("volume",)
    prices = ("open", "high", "low", "close", "change_percent", "range_percent", "traded_value")
    fields = [(name, pa.string()) for name in text] + [(name, pa.float64()) for name in prices]
    fields += [(name, pa.int64()) for name in whole]
    if plan.high_rate_notifications:
        fields += list(FEED.items())
    return pa.struct(fields)
