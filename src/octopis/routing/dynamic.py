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

from octopis.model import BrokerId, ClusterBitVector
from octopis.routing.cases import Carrier, Case, case_for
from octopis.routing.link_status import LinkStatusTable
from octopis.routing.local import LocalClients
from octopis.routing.messages import Routed
from octopis.routing.outbox import Outbox
from octopis.routing.reasons import Reason
from octopis.routing.static import StaticRouting
from octopis.routing.table import RoutingTable


class DynamicRouting:
    """DNR."""

    def __init__(  # noqa: PLR0913, PLR0917 - one call, in algorithms.py
        self,
        broker: BrokerId,
        icols: tuple[BrokerId, ...],
        table: RoutingTable,
        outbox: Outbox,
        clients: LocalClients,
        link_status: LinkStatusTable,
    ) -> None:
        self._broker = broker
        self._icols = icols
        self._static = StaticRouting(broker, table, outbox, clients)
        self._table = table
        self._outbox = outbox
        self._clients = clients
        self._link_status = link_status

    def route(self, batch: Sequence[Routed], sender: BrokerId | None) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        if not any(routed.cbv_p for routed in batch) and (
            sender is not None or self._have_room(len(batch))
        ):
            self._static.route(batch, sender)  # no iCOL is or can become overloaded meanwhile
            return
        attributes = [routed.notification.attributes for routed in batch]
        self._clients.deliver(batch, self._table.local_matches(attributes))
        cluster, region = self._broker.cluster, self._broker.region
        for routed, links in zip(batch, self._table.destinations(attributes), strict=True):
            acols = [link for link in links if link.cluster == cluster and link != sender]
            if sender is None:
                icols = [link for link in links if link.cluster != cluster]
                self._send_copies(routed, acols, icols, Reason.MATCH)
            else:
                icols = [BrokerId(region, pending) for pending in routed.cbv_p]
                self._send_copies(routed, acols, icols, Reason.PENDING)

    def _have_room(self, count: int) -> bool:
        return all(self._link_status.has_room(link, count) for link in self._icols)

    def _send_copies(
        self, routed: Routed, acols: list[BrokerId], icols: list[BrokerId], why_icol: Reason
    ) -> None:
        """Send the copies of one notification: plain ones, and one that carries CBV_p."""
        plain = Routed(routed.notification) if routed.cbv_p else routed
        is_overloaded, send = self._link_status.is_overloaded, self._outbox.send
        overloaded = [link for link in icols if is_overloaded(link)]
        free = [link for link in icols if link not in overloaded] if overloaded else icols
        carrier = None
        if overloaded:
            case, carrier = self._choose(acols, free, overloaded)
            self._count(case)
        for link in acols:
            if link != carrier:
                send(link, plain, Reason.MATCH)
        for link in free:
            if link != carrier:
                send(link, plain, why_icol)
        if carrier is not None:
            pending = ClusterBitVector.of([link.cluster for link in overloaded if link != carrier])
            send(carrier, Routed(routed.notification, pending) if pending else plain, case.reason)

    def _choose(
        self, acols: list[BrokerId], free: list[BrokerId], overloaded: list[BrokerId]
    ) -> tuple[Case, BrokerId]:
        """Return the case, and the link whose copy carries the pending clusters."""
        # Which aCOL is the least loaded matters only where no iCOL is free.
        acol = min(acols, key=self._load) if acols and not free else None
        free_acol = acol is not None and not self._link_status.is_overloaded(acol)
        case = case_for(overloaded_icol=True, free_icol=bool(free), free_acol=free_acol)
        if case.carrier is Carrier.FREE_ACOL:
            assert acol is not None
            return case, acol
        return case, min(free if case.carrier is Carrier.FREE_ICOL else overloaded, key=self._load)

    def _count(self, case: Case) -> None:
        counts = self._outbox.counters.cases
        counts[case.name] = counts.get(case.name, 0) + 1

    def _load(self, link: BrokerId) -> tuple[int, int, str]:
        """Order links by queue length, and equals by cluster or region, so that runs repeat."""
        return self._link_status[link].queue_length, link.cluster, link.region
