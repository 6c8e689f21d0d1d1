"""Buckets that fill all the time, one for each key: who takes too often finds his own empty.

There are at most so many of them. Where there are more keys, the one that has had longest to fill
is forgotten, which is as if it were full.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


class Buckets(Generic[_Key]):
    """Each takes in `burst` at once, and `per_s` a second for ever. Times are of any clock.

    A clock that goes back fills nothing, and stops nothing.
    """

    def __init__(self, per_s: float, burst: float, keys_max: int) -> None:
        self._per_s = per_s
        self._burst = float(burst)
        self._keys_max = keys_max
        self._left: OrderedDict[_Key, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def has(self, key: _Key, now: float) -> bool:
        """Tell whether there is one left for a key."""
        return self._now(key, now) >= 1

    def take(self, key: _Key, now: float) -> None:
        """Take one of a key's, if there is any."""
        self._left[key] = max(0.0, self._now(key, now) - 1), now
        self._left.move_to_end(key)
        if len(self._left) > self._keys_max:  # that which has had longest to fill
            self._left.popitem(last=False)

    def _now(self, key: _Key, now: float) -> float:
        left, since = self._left.get(key, (self._burst, now))
        if (
            now < since
        ):  # a clock that was put back: else nothing would fill until it is there again
            self._left[key], since = (left, now), now
        return min(self._burst, left + (now - since) * self._per_s)
