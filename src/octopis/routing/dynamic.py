"""Dynamic notification routing (DNR, Algorithm 4): around overloaded links between clusters.

Paper deviation: Algorithm 4 as printed never reads the CBV_p that a notification brings, and takes
iCOLs as targets at every broker, which loops. Here the iCOLs of the matching entries are targets at
the publisher's host only; everywhere else just those of the clusters that CBV_p names, whether or
not the table knows a match there yet.

Every pending cluster is held by exactly one copy. A copy that crosses an iCOL loses at least the
bit of the cluster that it enters; one that stays in its cluster moves away from where it entered
the tree. So (pending clusters, depth left) falls with every hop: no loops and no duplicates.
"""

from collections.abc import Sequence
from math import inf

from octopis.model import BrokerId
from octopis.routing.choice import Queues, choose, left_out, split
from octopis.routing.link_status import LinkStatusTable
from octopis.routing.local import LocalClients
from octopis.routing.messages import Routed
from octopis.routing.outbox import Outbox
from octopis.routing.planned_queue import PlannedQueue
from octopis.routing.reasons import Reason
from octopis.routing.static import StaticRouting
from octopis.routing.table import RoutingTable


class DynamicRouting:
    """DNR."""

    def __init__(
        self,
        broker: BrokerId,
        table: RoutingTable,
        outbox: Outbox,
        clients: LocalClients,
        link_status: LinkStatusTable,
    ) -> None:
        self._broker = broker
        self._static = StaticRouting(broker, table, outbox, clients)
        self._table = table
        self._outbox = outbox
        self._clients = clients
        self._link_status = link_status

    def route(self, batch: Sequence[Routed], sender: BrokerId | None) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        if not any(routed.cbv_p for routed in batch) and (
            sender is not None or self._icols_have_room(len(batch))
        ):
            self._static.route(batch, sender)  # no iCOL is or can become overloaded meanwhile
            return
        attributes = [routed.notification.attributes for routed in batch]
        self._clients.deliver(batch, self._table.local_matches(attributes))
        queues = {link: self._planned_queue(link) for link in self._link_status.statuses}
        region, cluster = self._broker
        for routed, links in zip(batch, self._table.destinations(attributes), strict=True):
            acols: Queues = []
            icols = [queues[BrokerId(region, pending)] for pending in routed.cbv_p]
            for link in links:
                if link.cluster == cluster:
                    if link != sender:
                        acols.append(queues[link])
                elif sender is None:
                    icols.append(queues[link])
            self._plan(routed, acols, icols, Reason.PENDING if sender else Reason.MATCH)
        for link, queue in queues.items():
            self._outbox.send_all(link, queue.messages, queue.reasons)

    def _planned_queue(self, link: BrokerId) -> PlannedQueue:
        # What goes onto a link that is down is lost at once, so its queue never fills.
        is_up = link in self._outbox.up
        longest = self._link_status.longest_uncongested(link) if is_up else inf
        return PlannedQueue(link, self._link_status[link].queue_length, longest)

    def _icols_have_room(self, count: int) -> bool:
        return all(
            status.queue_length + count <= self._link_status.longest_uncongested(link)
            for link, status in self._link_status.statuses.items()
            if link.cluster != self._broker.cluster
        )

    def _plan(self, routed: Routed, acols: Queues, icols: Queues, why_icol: Reason) -> None:
        """Put the copies of one notification on their queues; one of them may carry CBV_p."""
        plain = Routed(routed.notification) if routed.cbv_p else routed
        free, overloaded = split(icols)
        carrier = None
        if overloaded:
            case, carrier = choose(acols, free, overloaded, self._outbox.up)
            counts = self._outbox.counters.cases
            counts[case.name] = counts.get(case.name, 0) + 1
        for queue in acols:
            if queue is not carrier:
                queue.add(plain, Reason.MATCH)
        for queue in free:
            if queue is not carrier:
                queue.add(plain, why_icol)
        if carrier is not None:
            pending = left_out(overloaded, carrier)
            carrier.add(Routed(routed.notification, pending) if pending else plain, case.reason)
