"""Connections that came to nothing, by address: a bucket for each, which fills all the time.

A handshake of TLS costs a broker some milliseconds, whoever asks for it. Who goes through with a
login pays nothing here; who only knocks, again and again, finds the door closed for a while.
"""

from octopis.security.bounds.buckets import Buckets
from octopis.security.bounds.failures import ADDRESSES_MAX, place_of


class Strangers:
    """How many from each address may come to nothing. Times are of any steady clock."""

    def __init__(self, per_s: float, burst: int, addresses_max: int = ADDRESSES_MAX) -> None:
        self._left: Buckets[str] = Buckets(per_s, burst, addresses_max)

    def __len__(self) -> int:
        return len(self._left)

    def may_come(self, address: str, now: float) -> bool:
        """Tell whether one more from there may try."""
        return self._left.has(place_of(address), now)

    def came_to_nothing(self, address: str, now: float) -> None:
        """Count one that has tried, and was not let in."""
        self._left.take(place_of(address), now)
