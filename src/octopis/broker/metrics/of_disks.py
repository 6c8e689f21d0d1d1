"""What a broker tells of its disk, and of the durable subscriptions there."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from octopis.broker.disk.keeping import Keeping
from octopis.broker.metrics.declared import Family, Metric

if TYPE_CHECKING:
    from octopis.broker.broker import LiveBroker


def _disk(broker: "LiveBroker") -> Iterator[tuple[tuple[str, ...], Keeping]]:
    if broker.keeping is not None:
        yield (broker.id.short,), broker.keeping


def _durables(keeping: Keeping) -> Any:
    return list(keeping.channels.durables)


STORE: Family[Keeping] = Family(
    ["broker"],
    _disk,
    [
        Metric(
            "octopis_store_failed",
            "Whether the disk has failed: nothing is accepted any more.",
            lambda k: k.failure is not None,
        ),
        Metric(
            "octopis_store_full",
            "Whether there is no room for publications.",
            lambda k: k.channels.is_blocked,
        ),
        Metric("octopis_store_bytes", "Bytes in use on disk.", lambda k: k.store.used_bytes),
        Metric(
            "octopis_store_live_bytes",
            "Bytes of records that are still needed.",
            lambda k: k.store.live_bytes,
        ),
        Metric("octopis_store_quota_bytes", "Bytes that may be in use.", lambda k: k.quota_bytes),
        Metric(
            "octopis_store_unsynced_bytes",
            "Bytes of publications that wait for the disk.",
            lambda k: k.unsynced,
        ),
        Metric(
            "octopis_store_records", "Records that are still needed.", lambda k: k.store.records
        ),
        Metric(
            "octopis_store_damages",
            "Places where records were lost.",
            lambda k: len(k.store.damages) + k.channels.damaged,
        ),
        Metric(
            "octopis_durable_subscriptions",
            "Durable subscriptions kept here.",
            lambda k: len(_durables(k)),
        ),
        Metric(
            "octopis_durable_suspended",
            "Those of them that have run out of room.",
            lambda k: sum(each.state.is_suspended for each in _durables(k)),
        ),
        Metric(
            "octopis_durable_lag_messages",
            "Notifications that their readers have not acknowledged.",
            lambda k: sum(each.lag for each in _durables(k)),
        ),
        Metric(
            "octopis_durable_lag_max_messages",
            "The same of the one that is furthest behind.",
            lambda k: max((each.lag for each in _durables(k)), default=0),
        ),
    ],
)
