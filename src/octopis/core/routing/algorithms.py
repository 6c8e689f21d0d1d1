"""The routing algorithms by name: how subscriptions spread, and how notifications are routed.

An algorithm is chosen once, when a broker is made.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from octopis.core.model import BrokerId
from octopis.core.routing.bid import Flooding, IdentifiedRouting
from octopis.core.routing.dnr import DynamicRouting
from octopis.core.routing.link_status import LinkStatusTable
from octopis.core.routing.messages import Message, NotificationMessage, Subscription
from octopis.core.routing.outbox import LocalClients, Outbox
from octopis.core.routing.sbp import TwoStepBroadcast
from octopis.core.routing.snr import StaticRouting
from octopis.core.routing.table import Entry, IndexFactory, RoutingTable
from octopis.core.topology import SCOT


class Algorithm(Enum):
    """The names on the command line and in traces."""

    SNR = "snr"
    DNR = "dnr"
    BID = "bid"


class Spreading(Protocol):
    """How subscriptions spread over the overlay."""

    def subscribe(self, subscription: Subscription) -> None:
        """Take in a subscription of a local client."""

    def unsubscribe(self, subscription: str) -> None:
        """Take back a subscription of a local client."""

    def receive(self, sender: BrokerId, message: Message) -> None:
        """Take in what a neighbour says about subscriptions."""

    def link_up(self, neighbour: BrokerId) -> None:
        """Bring a neighbour up to date."""


class Routing(Protocol):
    """How notifications are routed."""

    def route(self, batch: Sequence[NotificationMessage], sender: BrokerId | None) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""


class Parts(NamedTuple):
    """What an algorithm is made of."""

    table: RoutingTable
    spreading: Spreading
    routing: Routing


def build(  # noqa: PLR0913, PLR0917 - one call, in broker.py
    algorithm: Algorithm,
    broker: BrokerId,
    scot: SCOT,
    link_status: LinkStatusTable,
    outbox: Outbox,
    clients: LocalClients,
    index: IndexFactory,
) -> Parts:
    """Return the parts of `algorithm` for one broker."""
    if algorithm is Algorithm.BID:
        table = RoutingTable(_host, index)
        flooding = Flooding(broker, scot.neighbours(broker), table, outbox, clients.release)
        identified = IdentifiedRouting(broker, table, outbox, clients, flooding)
        return Parts(table, flooding, identified)
    table = RoutingTable(_last_hop, index)
    broadcast = TwoStepBroadcast(broker, scot, table, outbox, clients.release)
    if algorithm is Algorithm.SNR:
        return Parts(table, broadcast, StaticRouting(broker, table, outbox, clients))
    return Parts(table, broadcast, DynamicRouting(broker, table, outbox, clients, link_status))


def _last_hop(entry: Entry) -> BrokerId:
    assert entry.last_hop is not None, "entries of local clients have no last hop"
    return entry.last_hop


def _host(entry: Entry) -> BrokerId:
    return entry.host
