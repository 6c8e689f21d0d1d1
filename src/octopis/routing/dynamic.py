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
        self._table = table
        self._outbox = outbox
        self._clients = clients
        self._link_status = link_status

    def route(self, batch: Sequence[Routed], sender: BrokerId | None) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        attributes = [routed.notification.attributes for routed in batch]
        self._clients.deliver(batch, self._table.local_matches(attributes))
        cluster = self._broker.cluster
        for routed, links in zip(batch, self._table.destinations(attributes), strict=True):
            acols = [link for link in links if link.cluster == cluster and link != sender]
            if sender is None:
                icols = [link for link in links if link.cluster != cluster]
            else:
                icols = [BrokerId(self._broker.region, pending) for pending in routed.cbv_p]
            self._send_copies(routed, acols, icols, at_host=sender is None)

    def _send_copies(
        self, routed: Routed, acols: list[BrokerId], icols: list[BrokerId], *, at_host: bool
    ) -> None:
        plain = Routed(routed.notification) if routed.cbv_p else routed
        why_icol = Reason.MATCH if at_host else Reason.PENDING
        overloaded = [link for link in icols if self._link_status.is_overloaded(link)]
        copies = [(link, plain, Reason.MATCH) for link in acols]
        copies += [(link, plain, why_icol) for link in icols if link not in overloaded]
        if overloaded:
            free = [link for link in icols if link not in overloaded]
            case, carrier = self._choose(acols, free, overloaded)
            pending = ClusterBitVector.of(link.cluster for link in overloaded if link != carrier)
            carrying = Routed(routed.notification, pending) if pending else plain
            copies = [copy for copy in copies if copy[0] != carrier]
            copies.append((carrier, carrying, case.reason))
            counts = self._outbox.counters.cases
            counts[case.name] = counts.get(case.name, 0) + 1
        for link, copy, reason in copies:
            self._outbox.send(link, copy, reason)

    def _choose(
        self, acols: list[BrokerId], free: list[BrokerId], overloaded: list[BrokerId]
    ) -> tuple[Case, BrokerId]:
        """Return the case, and the link whose copy carries the pending clusters."""
        least_loaded = min(acols, key=self._load, default=None)
        free_acol = least_loaded is not None and not self._link_status.is_overloaded(least_loaded)
        case = case_for(overloaded_icol=True, free_icol=bool(free), free_acol=free_acol)
        candidates = {
            Carrier.FREE_ICOL: free,
            Carrier.FREE_ACOL: acols,
            Carrier.OVERLOADED_ICOL: overloaded,
        }[case.carrier]
        return case, min(candidates, key=self._load)

    def _load(self, link: BrokerId) -> tuple[int, int, str]:
        """Order links by queue length, and equals by cluster or region, so that runs repeat."""
        return self._link_status[link].queue_length, link.cluster, link.region
