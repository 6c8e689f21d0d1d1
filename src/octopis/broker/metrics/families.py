"""All metrics of brokers: what /metrics tells, in this order."""

from typing import Any

from octopis.broker.metrics.declared import Family
from octopis.broker.metrics.of_brokers import BROKER, CLIENTS
from octopis.broker.metrics.of_delays import DELAYS, SYNCS
from octopis.broker.metrics.of_disks import STORE
from octopis.broker.metrics.of_links import CHANNELS, LINK
from octopis.broker.metrics.of_spans import SPANS

FAMILIES: tuple[Family[Any], ...] = (
    *(BROKER, CLIENTS, LINK, CHANNELS),
    *(STORE, DELAYS, SYNCS, SPANS),
)
