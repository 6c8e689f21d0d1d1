"""The obvious index: evaluate every filter on every notification. The oracle for the fast one."""

from collections.abc import Iterable
from typing import Generic

from octopis.core.filters import Filter
from octopis.core.matching.interface import Batch, Destination, Id


class LinearIndex(Generic[Id, Destination]):
    """A MatchingIndex that is slow, and right at a glance."""

    def __init__(self) -> None:
        self._entries: dict[Id, tuple[Filter, Destination]] = {}
        self._destinations: dict[Destination, None] = {}

    def add(self, subscription: Id, filter_: Filter, destination: Destination) -> None:
        """Add a subscription; its id must not be there yet."""
        assert subscription not in self._entries, f"{subscription!r} is there already"
        self._entries[subscription] = filter_, destination
        self._destinations.setdefault(destination)

    def add_many(self, entries: Iterable[tuple[Id, Filter, Destination]]) -> None:
        """Add many subscriptions at once."""
        for entry in entries:
            self.add(*entry)

    def hear_of(self, destinations: Iterable[Destination]) -> None:
        """Take these in as the next destinations."""
        for destination in destinations:
            self._destinations.setdefault(destination)

    def remove(self, subscription: Id) -> None:
        """Remove a subscription, which must be there."""
        del self._entries[subscription]

    def tidy(self) -> None:
        """All is where it belongs."""

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, subscription: Id) -> bool:
        return subscription in self._entries

    def destinations(self, batch: Batch) -> list[tuple[Destination, ...]]:
        """Return for each notification the destinations with any match behind them."""
        answers = []
        for attributes in batch:
            found = {
                destination
                for filter_, destination in self._entries.values()
                if filter_.matches(attributes)
            }
            answers.append(tuple(place for place in self._destinations if place in found))
        return answers

    def reached(self, batch: Batch) -> list[int]:
        """Return the same as bits, in the order in which destinations were heard of."""
        bits = {place: 1 << number for number, place in enumerate(self._destinations)}
        return [sum(bits[place] for place in found) for found in self.destinations(batch)]

    def matches(self, batch: Batch) -> list[list[Id]]:
        """Return for each notification the subscriptions that match."""
        return [
            [
                subscription
                for subscription, (filter_, _) in self._entries.items()
                if filter_.matches(attributes)
            ]
            for attributes in batch
        ]

    def reached_and_matches(
        self, batch: Batch, destination: Destination
    ) -> tuple[list[int], list[list[Id]]]:
        """Return what `reached` does, and the matches behind one destination."""
        behind = [
            [each for each in found if self._entries[each][1] == destination]
            for found in self.matches(batch)
        ]
        return self.reached(batch), behind
