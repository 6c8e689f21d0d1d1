"""Answers a scrape: counters are read on the event loop, and rendered in the scraper's thread."""

import asyncio
import platform
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import TimeoutError as LateError
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from octopis.broker.metrics.declared import HistogramCopy, Kind, Told, read_into
from octopis.broker.metrics.delays import buckets
from octopis.broker.metrics.families import FAMILIES
from octopis.broker.settings import OverlayConfiguration
from octopis.core.delivery.options import Level
from octopis.errors import OperationFailed
from octopis.version import __version__

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker
    from octopis.core.model import BrokerId

ANSWER_S = 5.0
"""Brokers that have not answered a scrape by then are stuck, and that is what the scraper hears."""


class Snapshot(NamedTuple):
    """All that brokers tell at about one moment, and how long the loop let us wait for it."""

    told: list[Told]
    waited_s: float


async def snapshot(brokers: "Mapping[BrokerId, LiveBroker]", asked_at: float) -> Snapshot:
    """Read all metrics of brokers, one broker in each turn of the event loop."""
    waited_s = time.monotonic() - asked_at
    told: dict[str, Told] = {}
    for broker in list(brokers.values()):
        for family in FAMILIES:
            read_into(told, family, broker)
        await asyncio.sleep(0)
    return Snapshot(list(told.values()), waited_s)


class BrokerCollector(Collector):
    """Collects the metrics of the brokers of this process, for Prometheus' client library."""

    def __init__(
        self,
        overlay: OverlayConfiguration,
        brokers: "Mapping[BrokerId, LiveBroker]",
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._overlay = overlay
        self._brokers = brokers
        self._loop = loop

    def collect(self) -> Iterator[Metric]:
        """Return the metrics as they are now. Raises OperationFailed where brokers are stuck."""
        asked = snapshot(self._brokers, time.monotonic())
        try:
            asking = asyncio.run_coroutine_threadsafe(asked, self._loop)
        except RuntimeError as failure:  # the loop is closed
            asked.close()
            raise OperationFailed("the brokers of this process have stopped") from failure
        try:
            found = asking.result(ANSWER_S)
        except LateError as failure:
            asking.cancel()
            raise OperationFailed(
                f"the brokers of this process have not answered within {ANSWER_S:g} s"
            ) from failure
        yield InfoMetricFamily("octopis_build", "What runs here.", value=self._build())
        yield GaugeMetricFamily(
            "octopis_scrape_wait_seconds",
            "How long this scrape waited for the event loop: what messages wait, too.",
            value=found.waited_s,
        )
        yield from map(_rendered, found.told)

    def _build(self) -> dict[str, str]:
        return {
            "version": __version__,
            "python": platform.python_version(),
            "algorithm": self._overlay.routing.algorithm.value,
            "level": self._overlay.level if self._overlay.has_channels else Level.NONE.value,
        }


def _rendered(told: Told) -> Metric:
    """Return a metric as the library wants it."""
    metric = told.metric
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.meaning, labels=told.labels)
        for labels, value in told.samples:
            assert isinstance(value, HistogramCopy), f"{metric.name} is a histogram"
            histogram.add_metric(labels, buckets(value.bounds, value.counts), value.sum_s)
        return histogram
    kind = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = kind(metric.name, metric.meaning, labels=told.labels)
    for labels, value in told.samples:
        assert not isinstance(value, HistogramCopy), f"{metric.name} is a number"
        family.add_metric(labels, float(value))
    return family
