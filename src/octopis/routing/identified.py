"""Identification-based routing (BID, Algorithm 2), the baseline.

The publisher's host matches once and writes the identifications (BIDs) of the matching hosts into
the notification. Each broker on the way only splits them by next hop; the broker whose own BID is
among them matches for its local clients and strips it.
"""

from collections.abc import Sequence

from octopis.model import BrokerId
from octopis.routing.flooding import Flooding
from octopis.routing.local import LocalClients
from octopis.routing.messages import Routed
from octopis.routing.outbox import Outbox
from octopis.routing.reasons import Reason
from octopis.routing.table import RoutingTable


class IdentifiedRouting:
    """BID."""

    def __init__(
        self,
        broker: BrokerId,
        table: RoutingTable,
        outbox: Outbox,
        clients: LocalClients,
        flooding: Flooding,
    ) -> None:
        self._broker = broker
        self._table = table
        self._outbox = outbox
        self._clients = clients
        self._flooding = flooding

    def route(self, batch: Sequence[Routed], sender: BrokerId | None) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        if sender is None:
            attributes = [routed.notification.attributes for routed in batch]
            targets = self._table.destinations(attributes)
            batch = [
                Routed(routed.notification, bids=bids)
                for routed, bids in zip(batch, targets, strict=True)
            ]
            arrived: Sequence[Routed] = batch
        else:
            arrived = [routed for routed in batch if self._broker in routed.bids]
        if arrived:
            attributes = [routed.notification.attributes for routed in arrived]
            self._clients.deliver(arrived, self._table.local_matches(attributes))
        for routed in batch:
            self._split(routed)

    def _split(self, routed: Routed) -> None:
        by_next_hop: dict[BrokerId, list[BrokerId]] = {}
        for bid in routed.bids:
            if bid == self._broker:
                continue
            next_hop = self._flooding.next_hop(bid)
            if next_hop is None:
                self._outbox.counters.lost_without_route += 1
            else:
                by_next_hop.setdefault(next_hop, []).append(bid)
        for next_hop, bids in by_next_hop.items():
            copy = Routed(routed.notification, bids=tuple(bids))
            self._outbox.send(next_hop, copy, Reason.MATCH)
