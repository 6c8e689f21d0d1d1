"""The choice that dynamic routing makes for one notification: which copy carries CBV_p."""

from collections.abc import Container

from octopis.model import BrokerId, ClusterBitVector
from octopis.routing.cases import Carrier, Case, case_for
from octopis.routing.planned_queue import PlannedQueue, least_loaded

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
