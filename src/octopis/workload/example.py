"""A small scenario without Spark: stock quotes, subscribers of 2%, maybe a high-rate publisher.

The same plan gives the same scenario, to the byte.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from octopis.errors import InvalidConfiguration
from octopis.filters import print_filter
from octopis.model import BrokerId, Value
from octopis.topology import NamedTopology, from_catalogue
from octopis.workload.costs import Profile, profile_named
from octopis.workload.folder import write_scenario
from octopis.workload.high_rate import FEED, ticks, wants_feed
from octopis.workload.scenario import (
    CutLink,
    Heading,
    QueueOptions,
    RoutingOptions,
    SlowLink,
)
from octopis.workload.stock import StockWorkload
from octopis.workload.tables import PUBLISHERS, SUBSCRIPTIONS
from octopis.workload.text import format_scenario

START_WITHIN_NS = 5_000_000_000
SUBSCRIBE_EVERY_NS = 10_000_000
MINUTE_NS = 60_000_000_000
HIGH_RATE_SHARE = 0.002
"""The paper: all publishers start within 5 s; 0.2% of the subscribers want the high-rate one."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How large the scenario is and how it is run. Rates are per minute, as in the paper."""

    routing: RoutingOptions
    name: str = "example"
    topology: NamedTopology = field(default_factory=lambda: from_catalogue("figure-3"))
    profile: Profile = field(default_factory=lambda: profile_named("paper"))
    queues: QueueOptions = field(default_factory=QueueOptions)
    faults: tuple[SlowLink | CutLink, ...] = ()
    subscribers: int = 100
    publishers: int = 10
    notifications_each: int = 100
    per_minute: float = 60
    high_rate_notifications: int = 0
    high_rate_per_minute: float = 100_000
    selectivity: float = 0.02
    seed: int = 1

    def check(self) -> None:
        """Raise InvalidConfiguration where a number makes no sense."""
        for name in ("subscribers", "publishers", "notifications_each", "seed"):
            if getattr(self, name) < 0:
                raise InvalidConfiguration(f"{name} must be 0 or more, not {getattr(self, name)}")
        for name in ("per_minute", "high_rate_per_minute"):
            if not 0 < getattr(self, name) <= 1e9:
                raise InvalidConfiguration(f"{name} must be above 0, not {getattr(self, name)}")
        if not 0.001 <= self.selectivity <= 0.5:
            raise InvalidConfiguration("selectivity must be between 0.001 and 0.5")


def write_example(plan: Plan, folder: Path) -> None:
    """Write the scenario of `plan` into a folder that is new or empty."""
    plan.check()
    random = np.random.default_rng([plan.seed, 1])
    stock = StockWorkload(plan.seed, plan.selectivity)
    brokers = plan.topology.scot.brokers
    hosts = random.integers(0, len(brokers), plan.publishers).tolist()
    high_rate_host = brokers[int(random.integers(0, len(brokers)))]
    document = format_scenario(
        Heading(plan.name, plan.seed),
        plan.topology,
        plan.routing,
        profile=plan.profile,
        queues=plan.queues,
        faults=plan.faults,
    )
    publishers = [(f"p{number:04d}", brokers[host], False) for number, host in enumerate(hosts)]
    if plan.high_rate_notifications:
        publishers.append(("hrp", high_rate_host, True))
    write_scenario(
        folder,
        document,
        _subscriptions(plan, stock, random, high_rate_host),
        pa.Table.from_pylist(
            [
                {"publisher": name, "broker": broker.short, "high_rate": high_rate}
                for name, broker, high_rate in publishers
            ],
            PUBLISHERS,
        ),
        _notifications(plan, stock, random),
    )


def _subscriptions(
    plan: Plan, stock: StockWorkload, random: np.random.Generator, high_rate_host: BrokerId
) -> pa.Table:
    scot = plan.topology.scot
    texts = [print_filter(wanted) for wanted in stock.filters(plan.subscribers)]
    hosts = [scot.brokers[place] for place in random.integers(0, len(scot.brokers), len(texts))]
    if plan.high_rate_notifications:
        # Every cluster is a target of the high-rate publisher; all sit on other brokers than it.
        interested = max(len(scot.clusters), round(plan.subscribers * HIGH_RATE_SHARE))
        for number in range(min(interested, plan.subscribers)):
            cluster = scot.cluster(number % len(scot.clusters))
            others = [broker for broker in cluster if broker != high_rate_host]
            hosts[number] = others[int(random.integers(0, len(others)))] if others else cluster[0]
            texts[number] = wants_feed()
    rows = [
        {
            "subscription": f"s{number:05d}",
            "client": f"c{number:05d}",
            "broker": host.short,
            "filter": text,
            "subscribe_ns": number * SUBSCRIBE_EVERY_NS,
        }
        for number, (text, host) in enumerate(zip(texts, hosts, strict=True))
    ]
    return pa.Table.from_pylist(rows, SUBSCRIPTIONS)


def _notifications(plan: Plan, stock: StockWorkload, random: np.random.Generator) -> pa.Table:
    each, count = plan.notifications_each, plan.publishers * plan.notifications_each
    starts = random.integers(0, START_WITHIN_NS, plan.publishers)
    steps = np.arange(each) * round(MINUTE_NS / plan.per_minute)
    times = (starts[:, None] + steps[None, :]).ravel()
    numbers = np.repeat(np.arange(plan.publishers), each)
    sequences = np.tile(np.arange(each), plan.publishers)
    attributes: list[dict[str, Value]] = stock.notifications(count) if count else []
    if plan.high_rate_notifications:
        extra = np.arange(plan.high_rate_notifications)
        step_ns = MINUTE_NS / plan.high_rate_per_minute
        times = np.concatenate([times, START_WITHIN_NS + np.round(extra * step_ns)])
        numbers = np.concatenate([numbers, np.full(len(extra), plan.publishers)])
        sequences = np.concatenate([sequences, extra])
        attributes = attributes + ticks(len(extra), random)
    order = np.lexsort((numbers, times))
    names = [f"p{number:04d}" for number in range(plan.publishers)] + ["hrp"]
    publisher = pa.DictionaryArray.from_arrays(pa.array(numbers[order].astype(np.int32)), names)
    return pa.table(
        {
            "publisher": publisher,
            "sequence": pa.array(sequences[order].astype(np.int64)),
            "intended_ns": pa.array(times[order].astype(np.int64)),
            "attributes": pa.array([attributes[place] for place in order], _attribute_types(plan)),
        }
    )


def _attribute_types(plan: Plan) -> pa.StructType:
    text, whole = ("symbol", "date"), ("volume",)
    prices = ("open", "high", "low", "close", "change_percent", "range_percent", "traded_value")
    fields = [(name, pa.string()) for name in text] + [(name, pa.float64()) for name in prices]
    fields += [(name, pa.int64()) for name in whole]
    if plan.high_rate_notifications:
        fields += list(FEED.items())
    return pa.struct(fields)
