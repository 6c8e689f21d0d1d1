"""What is told of brokers, links, channels and disks: name, meaning and where it is read.

A metric is declared once, in a neighbour of this file called `of_...`. Labels name brokers,
neighbours, kinds and reasons, of which there is a fixed number: never a client or a subscription.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from octopis.broker.metrics.delays import Histogram

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

_Of = TypeVar("_Of")


class Kind(Enum):
    """What Prometheus calls a metric."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Metric(NamedTuple, Generic[_Of]):
    """One metric of something. With `by`, `read` returns a value for each value of that label."""

    name: str
    """Without `_total`, which a counter gets where it is shown."""

    meaning: str
    read: Callable[[_Of], Any]
    kind: Kind = Kind.GAUGE
    by: str = ""


class Family(NamedTuple, Generic[_Of]):
    """Metrics of the same things: `members` finds those of a broker, each with its labels."""

    labels: Sequence[str]
    members: "Callable[[LiveBroker], Iterator[tuple[tuple[str, ...], _Of]]]"
    metrics: Sequence[Metric[_Of]]


class HistogramCopy(NamedTuple):
    """A histogram as it was."""

    bounds: Sequence[float]
    counts: list[int]
    sum_s: float


Value = float | HistogramCopy
Samples = list[tuple[tuple[str, ...], Value]]


class Told(NamedTuple):
    """All values of a metric at one moment, with their labels."""

    metric: Metric[Any]
    labels: tuple[str, ...]
    samples: Samples


def read_into(told: dict[str, Told], family: Family[Any], broker: "LiveBroker") -> None:
    """Add what a family tells of a broker. On the event loop: it reads, and nothing else."""
    for labels, member in family.members(broker):
        for metric in family.metrics:
            found = told.get(metric.name)
            if found is None:
                names = (*family.labels, metric.by) if metric.by else tuple(family.labels)
                found = told[metric.name] = Told(metric, names, [])
            value = metric.read(member)
            if isinstance(value, Mapping):
                found.samples.extend(((*labels, name), each) for name, each in value.items())
            elif isinstance(value, Histogram):
                copy = HistogramCopy(value.bounds, list(value.counts), value.sum_s)
                found.samples.append((labels, copy))
            else:
                found.samples.append((labels, value))
