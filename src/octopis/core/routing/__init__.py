"""Where a message goes next, without IO: the broker, its table and its algorithms."""

from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.broker import CONGESTION_THRESHOLD, WINDOW_MS, Broker
from octopis.core.routing.link_status import LinkStatus, LinkStatusTable
from octopis.core.routing.messages import (
    Answer,
    Deliver,
    Effect,
    Enqueue,
    Message,
    NotificationMessage,
    Reason,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from octopis.core.routing.table import Entry, RoutingTable

__all__ = [
    "CONGESTION_THRESHOLD",
    "WINDOW_MS",
    "Algorithm",
    "Answer",
    "Broker",
    "Deliver",
    "Effect",
    "Enqueue",
    "Entry",
    "LinkStatus",
    "LinkStatusTable",
    "Message",
    "NotificationMessage",
    "Reason",
    "RoutingTable",
    "Subscribe",
    "Subscription",
    "Unsubscribe",
]
