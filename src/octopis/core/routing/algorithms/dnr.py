"""Dynamic notification routing (DNR, Algorithm 4): around overloaded links between clusters.

Paper deviation: Algorithm 4 as printed never reads the CBV_p that a notification brings, and takes
iCOLs as targets at every broker, which loops. Here the iCOLs of the matching entries are targets at
the publisher's host only; everywhere else just those of the clusters that CBV_p names, whether or
not the table knows a match there yet.

Every pending cluster is held by exactly one copy. A copy that crosses an iCOL loses at least the
bit of the cluster that it enters; one that stays in its cluster moves away from where it entered
the tree. So (pending clusters, depth left) falls with every hop: no loops and no duplicates.

The rule is `targets` and then `plan`, over bit vectors and the states of links. Its cases stand in
one table, CASES, that `plan`, the command `octopis route cases` and the documentation read.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from math import inf
from typing import NamedTuple

from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.algorithms.snr import StaticRouting
from octopis.core.routing.link_status import LinkStatus, LinkStatusTable, least_loaded
from octopis.core.routing.messages import NotificationMessage, Reason
from octopis.core.routing.outbox import LocalClients, Outbox
from octopis.core.routing.table import RoutingTable


class Carrier(Enum):
    """Which copy carries CBV_p."""

    NONE = "no copy"
    FREE_ICOL = "the copy on the free target iCOL with the shortest queue"
    FREE_ACOL = "the copy on the least loaded target aCOL"
    OVERLOADED_ICOL = "one more copy, on the least loaded target iCOL"


@dataclass(frozen=True, slots=True)
class Case:
    """When it applies, which copy carries CBV_p, and the reason that it is given.

    Rows of the table are tried from the top; None means that it does not matter.
    """

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


class Plan(NamedTuple):
    """What becomes of one notification: the links that get a copy, and what one copy carries."""

    case: Case
    plain: list[LinkStatus]
    """Links whose copies carry nothing."""
    carrier: LinkStatus | None
    """The link whose copy carries `cbv_p`; none where no target iCOL is overloaded."""
    cbv_p: int


def targets(
    matching: Iterable[LinkStatus], cbv_p: int, icols: Iterable[LinkStatus]
) -> tuple[list[LinkStatus], list[LinkStatus]]:
    """Return the target aCOLs and the target iCOLs of a notification.

    `matching` are the links that SNR would take, `icols` all iCOLs of the broker: away from the
    publisher's host SNR takes none of these, and exactly those that CBV_p names are targets.
    """
    within: list[LinkStatus] = []
    across: list[LinkStatus] = []
    for status in matching:
        (across if status.is_icol else within).append(status)
    if cbv_p:
        across += [status for status in icols if cbv_p >> status.link.cluster & 1]
    return within, across


def plan(acols: list[LinkStatus], icols: list[LinkStatus], now_ns: int) -> Plan:
    """Decide which links get a copy, and which copy carries the clusters that were left out."""
    free: list[LinkStatus] = []
    overloaded: list[LinkStatus] = []
    for status in icols:
        status.roll(now_ns)
        (overloaded if status.is_overloaded else free).append(status)
    if not overloaded:
        return Plan(CASES[0], acols + free, None, 0)
    # A link that is down has an empty queue, but would lose the other clusters, too.
    free_up = [status for status in free if status.is_up]
    acol = None
    if not free_up:  # only then the aCOLs matter
        acols_up = [status for status in acols if status.is_up]
        for status in acols_up:
            status.roll(now_ns)
        acol = least_loaded(acols_up) if acols_up else None
    free_acol = acol is not None and not acol.is_overloaded
    case = case_for(overloaded_icol=True, free_icol=bool(free_up), free_acol=free_acol)
    if case.carrier is Carrier.FREE_ACOL and acol is not None:
        carrier = acol
    else:
        carrier = least_loaded(free_up if case.carrier is Carrier.FREE_ICOL else overloaded)
    cbv_p = 0
    for status in overloaded:
        if status is not carrier:
            cbv_p |= 1 << status.link.cluster
    plain = [status for status in (*acols, *free) if status is not carrier]
    return Plan(case, plain, carrier, cbv_p)


class DynamicRouting:
    """Plans every notification by the state of the links; where all have room, it is SNR."""

    def __init__(
        self, links: LinkStatusTable, table: RoutingTable, outbox: Outbox, clients: LocalClients
    ) -> None:
        self._static = StaticRouting(links, table, outbox, clients)
        self._links = links
        self._icols = [status for status in links.values() if status.is_icol]
        self._table = table
        self._outbox = outbox
        self._clients = clients

    @property
    def batch_max(self) -> int:
        """A batch is on its queues before any of it leaves: a larger one would look congested."""
        room = min((status.congestion_threshold for status in self._icols), default=inf)
        return max(1, int(min(room, sys.maxsize)))

    def route(
        self, batch: Sequence[NotificationMessage], sender: BrokerId | None, now_ns: int
    ) -> None:
        """Route notifications of a local publisher (`sender` None) or from a neighbour."""
        if not any(message.cbv_p for message in batch) and (
            sender is not None or self._icols_have_room(len(batch), now_ns)
        ):
            self._static.route(batch, sender, now_ns)  # no iCOL is or can become overloaded
            return
        attributes = [message.notification.attributes for message in batch]
        self._clients.deliver(batch, self._table.local_matches(attributes))
        ways, statuses = self._static.ways[sender], self._links
        for message, links in zip(batch, self._table.destinations(attributes), strict=True):
            matching = [statuses[link] for link in links if link in ways]
            acols, icols = targets(matching, message.cbv_p, self._icols)
            self._send(message, plan(acols, icols, now_ns), sender is None, now_ns)

    def _icols_have_room(self, count: int, now_ns: int) -> bool:
        for status in self._icols:
            status.roll(now_ns)
            if status.is_up and status.queue_length + count > status.longest_uncongested:
                return False
        return True

    def _send(
        self, message: NotificationMessage, planned: Plan, from_client: bool, now_ns: int
    ) -> None:
        """Put the copies of one notification on their queues, as planned."""
        send = self._outbox.send
        plain = NotificationMessage(message.notification) if message.cbv_p else message
        why_icol = Reason.MATCH if from_client else Reason.PENDING
        for status in planned.plain:
            send(status.link, plain, why_icol if status.is_icol else Reason.MATCH, now_ns)
        if planned.carrier is not None:
            self._outbox.counters.count_case(planned.case.name)
            cbv_p = ClusterBitVector(planned.cbv_p)
            copy = NotificationMessage(message.notification, cbv_p) if cbv_p else plain
            send(planned.carrier.link, copy, planned.case.reason, now_ns)
