"""What a broker tells of the spans that it makes, where notifications are traced."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopis.broker.metrics.declared import Family, Kind, Metric

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker
    from octopis.broker.telemetry.export import SpanCounts  # an extra brings what it needs


def _spans(broker: "LiveBroker") -> "Iterator[tuple[tuple[str, ...], SpanCounts]]":
    counts = broker.recorder.spans
    if counts is not None:
        yield (broker.id.short,), counts


SPANS: "Family[SpanCounts]" = Family(
    ["broker"],
    _spans,
    [
        Metric(
            "octopis_spans_exported",
            "Spans of traced notifications that the collector has taken.",
            lambda s: s.exported,
            Kind.COUNTER,
        ),
        Metric(
            "octopis_spans_dropped",
            "Spans that it has not, as too many waited for it or it was not there, by reason.",
            lambda s: {"queue_full": s.queue_full, "collector": s.refused},
            Kind.COUNTER,
            "reason",
        ),
    ],
)
