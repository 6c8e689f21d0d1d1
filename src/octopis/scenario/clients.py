"""Who subscribes and who publishes where, and when: drawn from the plan's seed alone.

High-rate publishers send a feed of trades, of which quotes have no attribute: so subscriptions to
quotes never match it, and only those who want the feed get it.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octopis.core.model import BrokerId, Value
from octopis.errors import InvalidConfiguration
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.tables import PUBLISHERS, SUBSCRIPTIONS
from octopis.scenario.wanted import WantedSubscription

START_WITHIN_NS = 5_000_000_000
MINUTE_NS = 60_000_000_000
MS_NS = 1_000_000
HIGH_RATE_SHARE = 0.002
"""The paper: all publishers start within 5 s; 0.2% of the subscribers want the high-rate one."""

HIGH_RATE_PUBLISHER = "hrp"
"""The first of them; further ones are hrp2, hrp3 and so on."""

FEED = {
    "feed": pa.string(),
    "tick": pa.int64(),
    "bid": pa.float64(),
    "ask": pa.float64(),
    "bid_size": pa.int64(),
    "ask_size": pa.int64(),
    "last": pa.float64(),
    "last_size": pa.int64(),
    "venue": pa.string(),
    "session": pa.string(),
}
"""Its 10 attributes, as many as a quote has."""
_FEED_NAME = "hrp"
_VENUES = ("XA", "XB", "XC", "XD")

Times = npt.NDArray[np.int64]


class Clients:
    """The clients of a plan.

    What has to do with the high-rate publisher is drawn from a stream of its own: with and without
    it, all others do the same.
    """

    def __init__(self, plan: ScenarioPlan, names: Sequence[str] | None = None) -> None:
        """Draw the clients; publishers have the `names` that are given, or numbers."""
        self._plan = plan
        assert names is None or len(names) == plan.publishers
        self._given_names = names
        brokers = plan.topology.scot.brokers
        random, self.burst = (np.random.default_rng([plan.seed, stream]) for stream in (1, 2))
        self._hosts = [brokers[at] for at in random.integers(0, len(brokers), plan.publishers)]
        self._high_rate_hosts = self._draw_high_rate_hosts()
        places = random.integers(0, len(brokers), plan.subscribers)
        self._subscriber_hosts = [brokers[at] for at in places]
        self._subscriber_hosts[: self._interested] = self._interested_hosts()
        self.starts: Times = random.integers(0, START_WITHIN_NS, plan.publishers)
        """When each publisher but the high-rate one sends its first notification."""

    def _draw_high_rate_hosts(self) -> list[BrokerId]:
        """The first sits anywhere, each further one somewhere in the next cluster."""
        scot = self._plan.topology.scot
        first = scot.brokers[int(self.burst.integers(0, len(scot.brokers)))]
        others = np.random.default_rng([self._plan.seed, 3])  # the first's burst stays the same
        hosts = [first]
        for number in range(1, self._plan.high_rate_publishers):
            cluster = scot.cluster((first.cluster + number) % len(scot.clusters))
            hosts.append(cluster[int(others.integers(0, len(cluster)))])
        return hosts

    @property
    def _interested(self) -> int:
        """How many subscribers, the first ones, want the high-rate publishers."""
        plan = self._plan
        if not plan.high_rate_notifications:
            return 0
        clusters = len(plan.topology.scot.clusters)
        return min(plan.subscribers, max(clusters, round(plan.subscribers * HIGH_RATE_SHARE)))

    def _interested_hosts(self) -> list[BrokerId]:
        """Every cluster is a target of the high-rate publishers; all sit on other brokers."""
        scot = self._plan.topology.scot
        hosts = []
        for number in range(self._interested):
            cluster = scot.cluster(number % len(scot.clusters))
            others = [broker for broker in cluster if broker not in self._high_rate_hosts]
            chosen = int(self.burst.integers(0, len(others))) if others else 0
            hosts.append((others or cluster)[chosen])
        return hosts

    @cached_property
    def names(self) -> list[str]:
        """The names of the publishers, without the high-rate one."""
        if self._given_names is not None:
            return list(self._given_names)
        return [f"p{number:04d}" for number in range(self._plan.publishers)]

    @property
    def high_rate_names(self) -> list[str]:
        """The names of the high-rate publishers, if there are any."""
        if not self._plan.high_rate_notifications:
            return []
        more = range(2, self._plan.high_rate_publishers + 1)
        return [HIGH_RATE_PUBLISHER, *(f"{HIGH_RATE_PUBLISHER}{number}" for number in more)]

    def publishers(self) -> pa.Table:
        """Return the table of publishers."""
        places = [(name, host, False) for name, host in zip(self.names, self._hosts, strict=True)]
        high_rate = zip(self.high_rate_names, self._high_rate_hosts, strict=False)
        places += [(name, host, True) for name, host in high_rate]
        rows = [
            {"publisher": name, "broker": broker.short, "high_rate": high_rate}
            for name, broker, high_rate in places
        ]
        return pa.Table.from_pylist(rows, PUBLISHERS)

    def subscriptions(self, texts: list[str]) -> pa.Table:
        """Return the table of subscriptions: one for each filter, placed at random."""
        texts = [wants_feed()] * self._interested + texts[self._interested :]
        rows = [
            _subscription(number, text, host, round(number * self._plan.subscribe_every_ms * MS_NS))
            for number, (text, host) in enumerate(zip(texts, self._subscriber_hosts, strict=True))
        ]
        return pa.Table.from_pylist(rows, SUBSCRIPTIONS)

    def own_subscriptions(self, wanted: Sequence[WantedSubscription]) -> pa.Table:
        """Return the table of subscriptions that somebody has written down.

        A subscriber without a broker sits at random, with all subscriptions at the same one.
        """
        drawn = iter(self._subscriber_hosts)
        hosts = {each.subscriber: each.broker for each in wanted if each.subscriber and each.broker}
        rows = []
        for number, each in enumerate(wanted):
            client, host = each.subscriber or f"c{number:05d}", next(drawn)
            host = each.broker or hosts.setdefault(client, host)
            time_ns = round(number * self._plan.subscribe_every_ms * MS_NS)
            rows.append({**_subscription(number, each.filter, host, time_ns), "client": client})
        return pa.Table.from_pylist(rows, SUBSCRIPTIONS)

    @property
    def step_ns(self) -> int:
        """The time between two notifications of a publisher."""
        return round(MINUTE_NS / self._plan.per_minute)

    def high_rate_times(self) -> Times:
        """Return when a high-rate publisher sends; all of them do so at once."""
        step_ns = MINUTE_NS / self._plan.high_rate_per_minute
        sent = np.arange(self._plan.high_rate_notifications)
        return START_WITHIN_NS + np.round(sent * step_ns).astype(np.int64)


def _subscription(number: int, text: str, host: BrokerId, time_ns: int) -> dict[str, object]:
    return {
        "subscription": f"s{number:05d}",
        "client": f"c{number:05d}",
        "broker": host.short,
        "filter": text,
        "subscribe_ns": time_ns,
    }


QUOTE = {
    **dict.fromkeys(("symbol", "date"), pa.string()),
    **dict.fromkeys(("open", "high", "low", "close"), pa.float64()),
    **dict.fromkeys(("change_percent", "range_percent", "traded_value"), pa.float64()),
    "volume": pa.int64(),
}
"""The attributes of a stock quote."""

_TYPES = (pa.string(), pa.float64(), pa.int64(), pa.bool_())


def attribute_types(
    plan: ScenarioPlan, attributes: Mapping[str, pa.DataType] = QUOTE
) -> pa.StructType:
    """Return the attributes of the plan's notifications: texts, numbers, integers, booleans.

    Raises InvalidConfiguration where they cannot be told from those of the high-rate feed.
    """
    fields = sorted(attributes.items(), key=lambda field: _TYPES.index(field[1]))
    if plan.high_rate_notifications:
        both = [name for name in attributes if name in FEED]
        if both:
            raise InvalidConfiguration(
                f"the data has an attribute {both[0]!r}, as the high-rate feed does: rename it, or "
                "leave out the high-rate publisher"
            )
        fields += list(FEED.items())
    return pa.struct(fields)


def wants_feed() -> str:
    """Return the filter of a subscriber who wants the whole feed."""
    return f"feed = '{_FEED_NAME}'"


def ticks(count: int, random: np.random.Generator) -> list[dict[str, Value]]:
    """Return the notifications of the feed, in order."""
    columns = tick_columns(count, random)
    return [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]


def tick_columns(count: int, random: np.random.Generator) -> dict[str, list[Value]]:
    """Return the same in columns."""
    prices = np.round(100 * np.exp(np.cumsum(random.normal(0, 1e-4, count))), 2)
    bid_sizes, ask_sizes, last_sizes = random.integers(1, 1000, (3, count)).tolist()
    venues = random.integers(0, len(_VENUES), count).tolist()
    return {
        "feed": [_FEED_NAME] * count,
        "tick": list(range(count)),
        "bid": (prices - 0.01).tolist(),
        "ask": (prices + 0.01).tolist(),
        "bid_size": bid_sizes,
        "ask_size": ask_sizes,
        "last": prices.tolist(),
        "last_size": last_sizes,
        "venue": [_VENUES[venue] for venue in venues],
        "session": ["regular"] * count,
    }
