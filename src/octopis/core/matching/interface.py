"""The questions that every matching index answers."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol, TypeVar

from octopis.core.filters import Filter
from octopis.core.filters.operands import Attributes

Id = TypeVar("Id", bound=Hashable)
Destination = TypeVar("Destination", bound=Hashable)
Batch = Sequence[Attributes]
"""The attributes of several notifications that are matched together."""


class MatchingIndex(Protocol[Id, Destination]):
    """Subscriptions with their filters, each behind a destination (a link, or local clients)."""

    def add(self, subscription: Id, filter_: Filter, destination: Destination) -> None:
        """Add a subscription; its id must not be there yet."""

    def add_many(self, entries: Iterable[tuple[Id, Filter, Destination]]) -> None:
        """Add many subscriptions at once."""

    def hear_of(self, destinations: Iterable[Destination]) -> None:
        """Take these in as the next destinations, before any subscription is behind them."""

    def remove(self, subscription: Id) -> None:
        """Remove a subscription, which must be there."""

    def tidy(self) -> None:
        """Put what was added where it is found fast, before anybody waits for an answer."""

    def __len__(self) -> int:
        """Return how many subscriptions there are."""

    def __contains__(self, subscription: Id) -> bool:
        """Tell whether the subscription is there."""

    def destinations(self, batch: Batch) -> list[tuple[Destination, ...]]:
        """Return for each notification the destinations with any match behind them.

        They come in the order in which the index first heard of them.
        """

    def reached(self, batch: Batch) -> list[int]:
        """Return the same as bits: bit i is the destination that it has heard of as the i-th.

        That is quicker where there are many.
        """

    def matches(self, batch: Batch) -> list[list[Id]]:
        """Return for each notification the subscriptions that match, in an order that repeats.

        The order depends only on what was asked of the index before, and in which order.
        """

    def reached_and_matches(
        self, batch: Batch, destination: Destination
    ) -> tuple[list[int], list[list[Id]]]:
        """Return what `reached` does, and the matches behind one destination, in one go."""
