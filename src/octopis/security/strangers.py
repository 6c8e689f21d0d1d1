"""Connections that came to nothing, by address: a bucket for each, which fills all the time.

A handshake of TLS costs a broker some milliseconds, whoever asks for it. Who goes through with a
login pays nothing here; who only knocks, again and again, finds the door closed for a while.
"""

from collections import OrderedDict

from octopis.security.failures import ADDRESSES_MAX, place_of


class Strangers:
    """How many from each address may come to nothing. Times are of any steady clock."""

    def __init__(self, per_s: float, burst: int, addresses_max: int = ADDRESSES_MAX) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._addresses_max = addresses_max
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def may_come(self, address: str, now: float) -> bool:
        """Tell whether one more from there may try."""
        return self._now(place_of(address), now) >= 1

    def came_to_nothing(self, address: str, now: float) -> None:
        """Count one that has tried, and was not let in."""
        place = place_of(address)
        self._left[place] = max(0.0, self._now(place, now) - 1), now
        self._left.move_to_end(place)
        if len(self._left) > self._addresses_max:  # that which has had longest to fill
            self._left.popitem(last=False)

    def _now(self, place: str, now: float) -> float:
        left, since = self._left.get(place, (self._burst, now))
        return min(self._burst, left + (now - since) * self._per_s)
