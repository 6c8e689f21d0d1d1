"""Shares of what there is only so much of: a bound for each who holds some, and one for all."""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


class Shares(Generic[_Key]):
    """How much each holds now. Whoever takes looks first whether there is room."""

    def __init__(self, each: int, total: int) -> None:
        self._each, self._total = each, total
        self._held: Counter[_Key] = Counter()

    def __len__(self) -> int:
        """How many hold any."""
        return len(self._held)

    @property
    def total(self) -> int:
        """What all hold together."""
        return self._held.total()

    def of(self, key: _Key) -> int:
        """Return how much somebody holds."""
        return self._held[key]

    def is_full(self, key: _Key) -> bool:
        """Tell whether somebody may take no more: its share is used up, or all there is."""
        return self._held[key] >= self._each or self.total >= self._total

    def take(self, key: _Key) -> None:
        """Take one."""
        self._held[key] += 1

    def give_back(self, key: _Key) -> None:
        """Give one back."""
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]

    @contextmanager
    def held(self, key: _Key) -> Iterator[None]:
        """Hold one meanwhile."""
        self.take(key)
        try:
            yield
        finally:
            self.give_back(key)
