"""Static notification routing (SNR, Algorithm 3): along the shortest subscription trees.

At the publisher's host: one copy onto every link with a match behind it. Anywhere else: onto the
matching aCOLs but the one it came from, and never onto an iCOL. So a notification crosses at most
one iCOL, and then stays in that cluster, which is a tree: no loops, no duplicates, no ids.
"""

from collections.abc import Sequence

from octopis.core.model import BrokerId
from octopis.core.routing.link_status import LinkStatusTable
from octopis.core.routing.messages import NotificationMessage, Reason
from octopis.core.routing.outbox import LocalClients, Outbox
from octopis.core.routing.table import RoutingTable


def forwards(*, from_client: bool, is_icol: bool, is_way_back: bool) -> bool:
    """Tell whether a notification may go onto a link, where a match lies behind it.

    `from_client`: it is here at its publisher's host; `is_way_back`: it came over this link.
    """
    return from_client or not (is_icol or is_way_back)


class StaticRouting:
    """Asks the table where matches lie, and SNR's rule which of these links a copy may take."""

    def __init__(
        self, links: LinkStatusTable, table: RoutingTable, outbox: Outbox, clients: LocalClients
    ) -> None:
        self._table = table
        self._outbox = outbox
        self._clients = clients
        # The rule knows only where a copy came from, so it is asked once for each neighbour.
        self.ways: dict[BrokerId | None, frozenset[BrokerId]] = {
            sender: frozenset(
                link
                for link, status in links.items()
                if forwards(
                    from_client=sender is None,
                    is_icol=status.is_icol,
                    is_way_back=link == sender,
                )
            )
            for sender in (None, *links)
        }

    def route(
        self, batch: Sequence[NotificationMessage], sender: BrokerId | None, now_ns: int
    ) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        attributes = [message.notification.attributes for message in batch]
        self._clients.deliver(batch, self._table.local_matches(attributes))
        copies: dict[BrokerId, list[NotificationMessage]] = {}
        for message, links in zip(batch, self._table.destinations(attributes), strict=True):
            for link in links:
                if link in copies:
                    copies[link].append(message)
                else:
                    copies[link] = [message]
        ways = self.ways[sender]
        for link, messages in copies.items():
            if link in ways:
                self._outbox.send_all(link, messages, [Reason.MATCH] * len(messages), now_ns)
