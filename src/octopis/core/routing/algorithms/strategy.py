"""The algorithms by name: how subscriptions spread, and how notifications are routed.

An algorithm is chosen once, when a broker is made.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from octopis.core.model import BrokerId
from octopis.core.routing.algorithms.bid import Flooding, IdentifiedRouting
from octopis.core.routing.algorithms.dnr import DynamicRouting
from octopis.core.routing.algorithms.repair import Repair
from octopis.core.routing.algorithms.sbp import TwoStepBroadcast
from octopis.core.routing.algorithms.snr import StaticRouting
from octopis.core.routing.algorithms.spreading import Spreading
from octopis.core.routing.algorithms.target_routing import HostChannels, TargetRouting
from octopis.core.routing.algorithms.tnr import Crossroads
from octopis.core.routing.link_status import LinkStatusTable
from octopis.core.routing.messages import Message, NotificationMessage, Subscription
from octopis.core.routing.outbox import LocalClients, Outbox
from octopis.core.routing.table import Entry, IndexFactory, RoutingTable
from octopis.core.topology import SCOT


class Algorithm(Enum):
    """The names on the command line and in traces."""

    SNR = "snr"
    DNR = "dnr"
    BID = "bid"
    TNR = "tnr"


class SubscriptionProtocol(Protocol):
    """How brokers come to know all subscriptions."""

    speaks: tuple[type, ...]
    """What brokers say to each other about subscriptions."""

    @property
    def unheard(self) -> set[BrokerId]:
        """Neighbours and hosts of which a broker that has just started must still hear."""

    def subscribe(self, subscription: Subscription, now_ns: int) -> None:
        """Take in a subscription of a local client."""

    def unsubscribe(self, subscription: str, now_ns: int) -> None:
        """Take back a subscription of a local client."""

    def receive(self, sender: BrokerId, message: Message, now_ns: int) -> None:
        """Take in what a neighbour says about subscriptions."""

    def link_up(self, neighbour: BrokerId, now_ns: int) -> None:
        """Bring a neighbour up to date."""

    def ways(self, host: BrokerId, sender: BrokerId | None) -> list[BrokerId]:
        """Return the links on which changes of `host` go on from here that came from `sender`."""

    @property
    def version(self) -> tuple[int, int]:
        """How the own changes so far are numbered; (0, 0) where they are not."""

    def knows(self, host: BrokerId, version: tuple[int, int]) -> bool:
        """Tell whether the changes of `host` up to a version have been heard."""


class NotificationRouting(Protocol):
    """How notifications are routed."""

    def route(
        self, batch: Sequence[NotificationMessage], sender: BrokerId | None, now_ns: int
    ) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""


class FaultRepair(Protocol):
    """What an algorithm does about faults."""

    @property
    def reaches_all(self) -> bool:
        """Whether what is published here has a link that is up towards every broker."""

    def heard_of(self, host: BrokerId) -> tuple[int, int]:
        """Return how far the changes of `host` have been heard."""

    def compare(self, now_ns: int) -> None:
        """Compare with neighbours what was heard, so that nothing stays missed."""

    def reroute(self, messages: Sequence[Message], now_ns: int) -> int:
        """Route what was on the queue of a broken link; say how many notifications could be."""

    def deliver(self, arrived: Sequence[NotificationMessage]) -> None:
        """Deliver to local clients what has waited for others before it."""


class NoRepair:
    """The paper's algorithms know nothing of faults."""

    def __init__(self, links: LinkStatusTable) -> None:
        self._links = links

    @property
    def reaches_all(self) -> bool:
        """Whether all links are up."""
        return all(status.is_up for status in self._links.values())

    def heard_of(self, host: BrokerId) -> tuple[int, int]:  # noqa: ARG002
        """Nobody asks."""
        return 0, 0

    def compare(self, now_ns: int) -> None:
        """Compare nothing: neighbours do when their link comes up."""

    def reroute(self, messages: Sequence[Message], now_ns: int) -> int:  # noqa: ARG002
        """Route nothing: what was on the queue is lost."""
        return 0

    def deliver(self, arrived: Sequence[NotificationMessage]) -> None:
        """Deliver nothing: here nothing waits."""


RouteInParts = Callable[[Sequence[NotificationMessage], BrokerId | None, int], Iterator[None]]


class Lasting(NamedTuple):
    """How publications are taken in two steps, and how a broker begins with what it remembers."""

    routing: TargetRouting
    spreading: Spreading


class Strategy(NamedTuple):
    """What an algorithm is made of, for one broker."""

    table: RoutingTable
    subscriptions: SubscriptionProtocol
    notifications: NotificationRouting
    batch_max: int
    """How many notifications may be planned before the first of their copies has left."""
    repair: FaultRepair
    in_parts: RouteInParts | None = None
    """Routes a batch of any length, in parts; None where a batch is not matched at once."""
    lasting: Lasting | None = None
    """What a broker that keeps things on disk needs; target routing has it."""


def strategy(  # noqa: PLR0913, PLR0917 - one call, in broker.py
    algorithm: Algorithm,
    broker: BrokerId,
    scot: SCOT,
    links: LinkStatusTable,
    outbox: Outbox,
    clients: LocalClients,
    index: IndexFactory,
    life: int,
    channels: HostChannels | None = None,
) -> Strategy:
    """Return what `algorithm` is made of, for one broker."""
    unheard = {link for link, status in links.items() if not status.is_up}
    if algorithm is Algorithm.BID:
        table = RoutingTable(_host, index, scot.brokers)
        flooding = Flooding(broker, links, table, outbox, clients.lose, unheard, scot.bit)
        own_bit = scot.bit(broker)
        identified = IdentifiedRouting(own_bit, table, outbox, clients, flooding.trees)
        return Strategy(table, flooding, identified, sys.maxsize, NoRepair(links))
    if algorithm is Algorithm.TNR:
        table = RoutingTable(_host, index, scot.brokers, broker)
        here = Crossroads(broker, scot, links)
        spreading = Spreading(here, broker, links, table, outbox, clients.lose, unheard, life)
        routing = TargetRouting(here, table, outbox, clients, channels)
        if channels is not None:
            spreading.on_life = channels.host_lives
        repair = Repair(here, routing, spreading)
        parts = routing.route_in_parts
        lasting = Lasting(routing, spreading)
        return Strategy(table, spreading, routing, routing.batch_max, repair, parts, lasting)
    table = RoutingTable(_last_hop, index)
    broadcast = TwoStepBroadcast(broker, links, table, outbox, clients.lose, unheard)
    if algorithm is Algorithm.SNR:
        static = StaticRouting(links, table, outbox, clients)
        return Strategy(table, broadcast, static, sys.maxsize, NoRepair(links))
    dynamic = DynamicRouting(links, table, outbox, clients)
    return Strategy(table, broadcast, dynamic, dynamic.batch_max, NoRepair(links))


def _host(entry: Entry) -> BrokerId:
    return entry.host


def _last_hop(entry: Entry) -> BrokerId:
    assert entry.last_hop is not None, "entries of local clients have no last hop"
    return entry.last_hop
