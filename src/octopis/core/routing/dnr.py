"""Dynamic notification routing (DNR, Algorithm 4): around overloaded links between clusters.

Paper deviation: Algorithm 4 as printed never reads the CBV_p that a notification brings, and takes
iCOLs as targets at every broker, which loops. Here the iCOLs of the matching entries are targets at
the publisher's host only; everywhere else just those of the clusters that CBV_p names, whether or
not the table knows a match there yet.

Every pending cluster is held by exactly one copy. A copy that crosses an iCOL loses at least the
bit of the cluster that it enters; one that stays in its cluster moves away from where it entered
the tree. So (pending clusters, depth left) falls with every hop: no loops and no duplicates.

The cases of dynamic routing, as one table that the code and the documentation read.

A notification has target iCOLs (some may be overloaded) and target aCOLs. Each row says when it
applies and which copy carries CBV_p, the clusters that were left out because of overload. Rows are
tried from the top; None means that it does not matter.

The choice that dynamic routing makes for one notification: which copy carries CBV_p.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from math import inf

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.link_status import LinkStatusTable, PlannedQueue, least_loaded
from octopis.core.routing.messages import NotificationMessage, Reason
from octopis.core.routing.outbox import LocalClients, Outbox
from octopis.core.routing.snr import StaticRouting
from octopis.core.routing.table import RoutingTable


class Carrier(Enum):
    """Which copy carries CBV_p."""

    NONE = "no copy"
    FREE_ICOL = "the copy on the free target iCOL with the shortest queue"
    FREE_ACOL = "the copy on the least loaded target aCOL"
    OVERLOADED_ICOL = "one more copy, on the least loaded target iCOL"


@dataclass(frozen=True, slots=True)
class Case:
    """One row: when it applies, which copy carries CBV_p, and the reason that it is given."""

    name: str
    overloaded_icol: bool | None
    free_icol: bool | None
    free_acol: bool | None
    carrier: Carrier
    reason: Reason

    def applies(self, overloaded_icol: bool, free_icol: bool, free_acol: bool) -> bool:
        """Tell whether the row is for this state of the target links."""
        return (
            self.overloaded_icol in (None, overloaded_icol)
            and self.free_icol in (None, free_icol)
            and self.free_acol in (None, free_acol)
        )


CASES = (
    Case("static", False, None, None, Carrier.NONE, Reason.MATCH),
    Case("I", True, True, None, Carrier.FREE_ICOL, Reason.CASE_I),
    Case("II", True, False, True, Carrier.FREE_ACOL, Reason.CASE_II),
    Case("III", True, False, False, Carrier.OVERLOADED_ICOL, Reason.CASE_III),
)


_CASE_FOR = {
    state: next(case for case in CASES if case.applies(*state))
    for state in product((False, True), repeat=3)
}


def case_for(*, overloaded_icol: bool, free_icol: bool, free_acol: bool) -> Case:
    """Return the row for this state of the target links."""
    return _CASE_FOR[overloaded_icol, free_icol, free_acol]


Queues = list[PlannedQueue]


def split(icols: Queues) -> tuple[Queues, Queues]:
    """Return the queues of the free target iCOLs, and those of the overloaded ones."""
    free: Queues = []
    overloaded: Queues = []
    for queue in icols:
        (overloaded if queue.length > queue.longest_uncongested else free).append(queue)
    return free, overloaded


def choose(
    acols: Queues, free: Queues, overloaded: Queues, up: Container[BrokerId]
) -> tuple[Case, PlannedQueue]:
    """Return the case, and the queue whose copy carries the pending clusters.

    `acols` are the target aCOLs, `free` and `overloaded` (one or more) the target iCOLs, `up` the
    links that are up.
    """
    # A link that is down has an empty queue, but would lose the other clusters, too.
    free = [queue for queue in free if queue.link in up]
    # Which aCOL is the least loaded matters only where no iCOL is free.
    acols = [] if free else [queue for queue in acols if queue.link in up]
    acol = least_loaded(acols) if acols else None
    free_acol = acol is not None and not acol.is_congested()
    case = case_for(overloaded_icol=True, free_icol=bool(free), free_acol=free_acol)
    if case.carrier is Carrier.FREE_ACOL:
        assert acol is not None
        return case, acol
    return case, least_loaded(free if case.carrier is Carrier.FREE_ICOL else overloaded)


def left_out(overloaded: Queues, carrier: PlannedQueue) -> ClusterBitVector:
    """Return CBV_p: the clusters behind the overloaded iCOLs, but for that of the carrier."""
    pending = 0
    for queue in overloaded:
        if queue is not carrier:
            pending |= 1 << queue.link.cluster
    return ClusterBitVector(pending)


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

    def route(self, batch: Sequence[NotificationMessage], sender: BrokerId | None) -> None:
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

    def _plan(
        self, routed: NotificationMessage, acols: Queues, icols: Queues, why_icol: Reason
    ) -> None:
        """Put the copies of one notification on their queues; one of them may carry CBV_p."""
        plain = NotificationMessage(routed.notification) if routed.cbv_p else routed
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
            carrier.add(
                NotificationMessage(routed.notification, pending) if pending else plain, case.reason
            )
