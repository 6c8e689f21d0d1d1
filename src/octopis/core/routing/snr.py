"""Static notification routing (SNR, Algorithm 3): along the shortest subscription trees.

At the publisher's host: one copy onto every link with a match behind it. Anywhere else: onto the
matching aCOLs but the one it came from, and never onto an iCOL. So a notification crosses at most
one iCOL, and then stays in that cluster, which is a tree: no loops, no duplicates, no ids.
"""

from collections.abc import Sequence

from octopis.core.model import BrokerId
from octopis.core.routing.messages import NotificationMessage, Reason
from octopis.core.routing.outbox import LocalClients, Outbox
from octopis.core.routing.table import RoutingTable


class StaticRouting:
    """SNR."""

    def __init__(
        self, broker: BrokerId, table: RoutingTable, outbox: Outbox, clients: LocalClients
    ) -> None:
        self._cluster = broker.cluster
        self._table = table
        self._outbox = outbox
        self._clients = clients

    def route(self, batch: Sequence[NotificationMessage], sender: BrokerId | None) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        attributes = [routed.notification.attributes for routed in batch]
        self._clients.deliver(batch, self._table.local_matches(attributes))
        copies: dict[BrokerId, list[NotificationMessage]] = {}
        for routed, links in zip(batch, self._table.destinations(attributes), strict=True):
            for link in links:
                if link in copies:
                    copies[link].append(routed)
                else:
                    copies[link] = [routed]
        for link, messages in copies.items():
            if sender is None or (link != sender and link.cluster == self._cluster):
                self._outbox.send_all(link, messages, [Reason.MATCH] * len(messages))
