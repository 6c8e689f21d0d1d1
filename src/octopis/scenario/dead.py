"""Brokers that are dead during a whole run: which, and who is left to talk to whom."""

import numpy as np

from octopis.core.model import BrokerId
from octopis.core.topology import SCOT
from octopis.errors import InvalidConfiguration

_STREAM = 4
"""Beside those from which clients are drawn (clients.py)."""


def draw_dead(scot: SCOT, share: float, seed: int) -> tuple[BrokerId, ...]:
    """Return a share of an overlay's brokers, drawn at random; raise InvalidConfiguration."""
    if not 0 <= share < 1:
        raise InvalidConfiguration(f"the share of dead brokers is from 0 to below 1, not {share}")
    random = np.random.default_rng([seed, _STREAM])
    places = random.choice(len(scot.brokers), round(share * len(scot.brokers)), replace=False)
    return tuple(scot.brokers[at] for at in sorted(places.tolist()))


def parts(scot: SCOT, dead: frozenset[BrokerId]) -> dict[BrokerId, int]:
    """Return for each living broker the number of its part: in one part all are connected."""
    found: dict[BrokerId, int] = {}
    for number, broker in enumerate(scot.brokers):
        waiting = [broker]
        while waiting:
            each = waiting.pop()
            if each not in dead and each not in found:
                found[each] = number
                waiting += scot.neighbours(each)
    return found
