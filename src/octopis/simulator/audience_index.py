"""A matching index for real brokers that asks the audience, which has matched for all of them."""

from collections.abc import Iterable
from typing import Any

from octopis.core.filters import Filter
from octopis.core.matching.interface import Batch
from octopis.core.model import Notification
from octopis.core.model.notification import Value
from octopis.simulator.audience import Flight


class FlightAttributes(dict[str, Value]):
    """The attributes of a notification that know its flight, and what subscriptions match it.

    Brokers pass them on untouched.
    """

    __slots__ = ("flight", "matching")

    def __init__(self, flight: Flight) -> None:
        super().__init__(flight.audience.attributes[flight.row])
        self.flight = flight
        self.matching = flight.audience.matching(flight.row)


def flight_of(notification: Notification) -> Flight:
    """Return the flight of a notification that brokers have passed on."""
    attributes = notification.attributes
    assert isinstance(attributes, FlightAttributes), "brokers pass attributes on untouched"
    return attributes.flight


class AudienceIndex:
    """A matching index that knows what it holds, and asks the audience what of it matches."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._held: dict[int, tuple[str, Any]] = {}
        self._bits: dict[Any, int] = {}

    def add(self, subscription: str, filter_: Filter, destination: Any) -> None:  # noqa: ARG002
        """Add a subscription; what it asks for is known to the audience."""
        self.hear_of([destination])
        self._held[self._numbers[subscription]] = subscription, destination

    def hear_of(self, destinations: Iterable[Any]) -> None:
        """Take these in as the next destinations."""
        for destination in destinations:
            self._bits.setdefault(destination, 1 << len(self._bits))

    def tidy(self) -> None:
        """All is where it belongs."""

    def add_many(self, entries: Iterable[tuple[str, Filter, Any]]) -> None:
        """Add many subscriptions at once."""
        for entry in entries:
            self.add(*entry)

    def remove(self, subscription: str) -> None:
        """Remove a subscription, which must be there."""
        del self._held[self._numbers[subscription]]

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, subscription: str) -> bool:
        return self._numbers.get(subscription) in self._held

    def destinations(self, batch: Batch) -> list[tuple[Any, ...]]:
        """Return for each notification the destinations with any match behind them."""
        return [
            tuple(dict.fromkeys(destination for _, destination in self._found(each)))
            for each in batch
        ]

    def reached(self, batch: Batch) -> list[int]:
        """Return the same as bits, in the order in which destinations were heard of."""
        return [sum(map(self._bits.__getitem__, found)) for found in self.destinations(batch)]

    def matches(self, batch: Batch) -> list[list[str]]:
        """Return for each notification the subscriptions that match, in the order of numbers."""
        return [[subscription for subscription, _ in self._found(each)] for each in batch]

    def reached_and_matches(
        self, batch: Batch, destination: Any
    ) -> tuple[list[int], list[list[str]]]:
        """Return what `reached` does, and the matches behind one destination."""
        behind = [
            [subscription for subscription, place in self._found(each) if place == destination]
            for each in batch
        ]
        return self.reached(batch), behind

    def _found(self, attributes: object) -> list[tuple[str, Any]]:
        assert isinstance(attributes, FlightAttributes), "brokers pass notifications on untouched"
        held = self._held
        return [held[number] for number in attributes.matching if number in held]
