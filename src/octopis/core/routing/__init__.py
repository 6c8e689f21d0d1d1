"""Where a message goes next, without IO: the broker, its table and its algorithms."""

from octopis.core.routing.algorithms import Algorithm
from octopis.core.routing.broker import Broker
from octopis.core.routing.link_status import (
    CONGESTION_THRESHOLD,
    WINDOW_MS,
    LinkStatus,
    LinkStatusTable,
)
from octopis.core.routing.messages import (
    Deliver,
    Effect,
    Enqueue,
    Lost,
    Mark,
    Marked,
    Message,
    NotificationMessage,
    Reason,
    Stored,
    Subscribe,
    Subscription,
    Unsubscribe,
)
from octopis.core.routing.table import Entry, RoutingTable

__all__ = [
    "CONGESTION_THRESHOLD",
    "WINDOW_MS",
    "Algorithm",
    "Broker",
    "Deliver",
    "Effect",
    "Enqueue",
    "Entry",
    "LinkStatus",
    "LinkStatusTable",
    "Lost",
    "Mark",
    "Marked",
    "Message",
    "NotificationMessage",
    "Reason",
    "RoutingTable",
    "Stored",
    "Subscribe",
    "Subscription",
    "Unsubscribe",
]
