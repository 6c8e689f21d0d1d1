"""Which brokers share a process: as many in each, and neighbours apart where that can be.

Neighbours work on the same notifications one after the other. In different processes they do so
at the same time, on different cores.
"""

import os

from octopis.model import BrokerId
from octopis.topology import SCOT


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(scot: SCOT, processes: int) -> list[list[BrokerId]]:
    """Return the brokers of each process; there are never more processes than brokers."""
    assert processes >= 1, "brokers need at least one process"
    count = min(processes, len(scot.brokers))
    room = -(-len(scot.brokers) // count)
    shares: list[list[BrokerId]] = [[] for _ in range(count)]
    process_of: dict[BrokerId, int] = {}
    for broker in scot.brokers:
        near = [process_of[other] for other in scot.neighbours(broker) if other in process_of]
        chosen = min(
            (number for number in range(count) if len(shares[number]) < room),
            key=lambda number: (near.count(number), len(shares[number]), number),
        )
        shares[chosen].append(broker)
        process_of[broker] = chosen
    return [share for share in shares if share]
