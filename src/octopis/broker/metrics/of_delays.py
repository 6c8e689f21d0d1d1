"""What a broker tells of how long things take."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from octopis.broker.metrics.declared import Family, Kind, Metric
from octopis.broker.metrics.delays import EVERY, Delays

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker

_HISTOGRAM = Kind.HISTOGRAM


def _delays(broker: "LiveBroker") -> Iterator[tuple[tuple[str, ...], Delays]]:
    if broker.delays is not None:
        yield (broker.id.short,), broker.delays


def _sync_delays(broker: "LiveBroker") -> Iterator[tuple[tuple[str, ...], Delays]]:
    if broker.delays is not None and broker.keeping is not None:
        yield (broker.id.short,), broker.delays


DELAYS: Family[Delays] = Family(
    ["broker"],
    _delays,
    [
        Metric(
            "octopis_matching_seconds",
            "What matching one notification takes: its share of its batch. Sampled: one batch of "
            f"{EVERY} is measured.",
            lambda d: d.matching,
            _HISTOGRAM,
        ),
        Metric(
            "octopis_delivery_delay_seconds",
            "From when a notification was meant to be published, by the publisher's clock, until "
            f"it goes to a client. Sampled: the last of one batch of {EVERY}; none that was meant "
            "for more than an hour ago, and none of durable subscriptions.",
            lambda d: d.delivery,
            _HISTOGRAM,
        ),
    ],
)

SYNCS: Family[Delays] = Family(
    ["broker"],
    _sync_delays,
    [
        Metric(
            "octopis_store_sync_seconds",
            "How long syncs of the disk take; all are measured.",
            lambda d: d.syncs,
            _HISTOGRAM,
        )
    ],
)
