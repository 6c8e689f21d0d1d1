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
    """The clients of a plan.

    What has to do with the high-rate publisher is drawn from a stream of its own: with and without
    it, all others do the same.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        brokers = plan.topology.scot.brokers
        random, self.burst = (np.random.default_rng([plan.seed, stream]) for stream in (1, 2))
        self._hosts = [brokers[at] for at in random.integers(0, len(brokers), plan.publishers)]
        self._high_rate_host = brokers[int(self.burst.integers(0, len(brokers)))]
        places = random.integers(0, len(brokers), plan.subscribers)
        self._subscriber_hosts = [brokers[at] for at in places]
        self._subscriber_hosts[: self._interested] = self._interested_hosts()
        self.starts: Times = random.integers(0, START_WITHIN_NS, plan.publishers)
        """When each publisher but the high-rate one sends its first notification."""

    @property
    def _interested(self) -> int:
        """How many subscribers, the first ones, want the high-rate publisher."""
        plan = self._plan
        if not plan.high_rate_notifications:
            return 0
        clusters = len(plan.topology.scot.clusters)
        return min(plan.subscribers, max(clusters, round(plan.subscribers * HIGH_RATE_SHARE)))

    def _interested_hosts(self) -> list[BrokerId]:
        """Every cluster is a target of the high-rate publisher; all sit on other brokers."""
        scot = self._plan.topology.scot
        hosts = []
        for number in range(self._interested):
            cluster = scot.cluster(number % len(scot.clusters))
            others = [broker for broker in cluster if broker != self._high_rate_host]
            chosen = int(self.burst.integers(0, len(others))) if others else 0
            hosts.append((others or cluster)[chosen])
        return hosts

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
        texts = [wants_feed()] * self._interested + texts[self._interested :]
        rows = [
            _subscription(number, text, host)
            for number, (text, host) in enumerate(zip(texts, self._subscriber_hosts, strict=True))
        ]
        return pa.Table.from_pylist(rows, SUBSCRIPTIONS)

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
