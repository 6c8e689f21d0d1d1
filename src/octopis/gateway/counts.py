"""What a gateway counts, and how Prometheus gets it: read when somebody asks, never before.

Labels are doors, kinds and statuses: they never grow with clients, filters or subscriptions.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from octopis.broker.metrics.delays import Histogram, buckets

_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass
class Counts:
    """What has happened since the gateway started."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By door and status."""

    published: Counter[str] = field(default_factory=Counter)
    """Notifications that were accepted, by door."""

    delivered: Counter[str] = field(default_factory=Counter)
    """Notifications that were sent, by door."""

    dropped: Counter[str] = field(default_factory=Counter)
    """Notifications that slow readers have lost, by door."""

    streams: Counter[str] = field(default_factory=Counter)
    """Readers at the moment, by door."""

    ended: Counter[str] = field(default_factory=Counter)
    """What a limit has ended, refused or slowed down, by that limit."""

    publishing: Histogram = field(default_factory=partial(Histogram, _BOUNDS_S))
    """From a request that is whole to the overlay's answer."""


class GatewayCollector(Collector):
    """What Prometheus gets."""

    def __init__(self, counts: Counts, connections: Callable[[], int]) -> None:
        self._counts = counts
        self._connections = connections

    def collect(self) -> Iterator[Metric]:
        """Yield everything as it is now."""
        counts = self._counts
        requests = CounterMetricFamily(
            "octopis_gateway_requests", "Requests, by door and status", labels=["door", "status"]
        )
        for (door, status), count in counts.requests.items():
            requests.add_metric([door, str(status)], count)
        yield requests
        for name, what, found in (
            ("published", "Notifications accepted", counts.published),
            ("delivered", "Notifications sent to readers", counts.delivered),
            ("dropped", "Notifications that slow readers have lost", counts.dropped),
        ):
            family = CounterMetricFamily(
                f"octopis_gateway_{name}", f"{what}, by door", labels=["door"]
            )
            for door, count in found.items():
                family.add_metric([door], count)
            yield family
        ended = CounterMetricFamily(
            "octopis_gateway_limited",
            "What limits have ended, refused or slowed down",
            labels=["limit"],
        )
        for limit, count in counts.ended.items():
            ended.add_metric([limit], count)
        yield ended
        streams = GaugeMetricFamily("octopis_gateway_streams", "Readers now", labels=["door"])
        for door, count in counts.streams.items():
            streams.add_metric([door], count)
        yield streams
        yield GaugeMetricFamily(
            "octopis_gateway_connections", "Connections now", value=self._connections()
        )
        yield HistogramMetricFamily(
            "octopis_gateway_publish_seconds",
            "From a whole request to the overlay's answer",
            buckets=buckets(_BOUNDS_S, counts.publishing.counts),
            sum_value=counts.publishing.sum_s,
        )


def registry_of(counts: Counts, connections: Callable[[], int]) -> CollectorRegistry:
    """Return a registry of the gateway's own."""
    registry = CollectorRegistry()
    registry.register(GatewayCollector(counts, connections))
    ProcessCollector(registry=registry)
    return registry
