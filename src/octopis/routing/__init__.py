"""Where a message goes next, without IO: the broker, its table and its algorithms."""

from octopis.routing.algorithms import Algorithm
from octopis.routing.broker import CONGESTION_THRESHOLD, WINDOW_MS, Broker
from octopis.routing.effects import Answer, Deliver, Effect, Enqueue
from octopis.routing.link_status import LinkStatus, LinkStatusTable
from octopis.routing.messages import Message, Routed, Subscribe, Subscription, Unsubscribe
from octopis.routing.reasons import Reason
from octopis.routing.table import Entry, RoutingTable

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
    "Reason",
    "Routed",
    "RoutingTable",
    "Subscribe",
    "Subscription",
    "Unsubscribe",
]
