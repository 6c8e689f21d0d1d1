"""What travels through the simulated overlay, and who wants it: asked once, for all brokers.

Which subscriptions match is the same question at every broker, so the simulator asks its matching
index once per notification, in batches, and keeps the answer while the notification is under way.
"""

from array import array
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from octopis.core.filters.operands import Attributes
from octopis.core.matching import BitsetIndex
from octopis.core.routing import Reason
from octopis.scenario.tables import Subscriber
from octopis.simulator.network import Station

Integers = npt.NDArray[np.int64]


class Flight(msgspec.Struct, gc=False):
    """A notification under way, from its publisher until its last copy has arrived.

    Sets of brokers are integers with one bit for each broker, as `Station.bit` says.
    """

    publisher: int
    sequence: int
    host: Station
    intended_ns: int
    audience: "Audience"
    row: int
    """Its place in the audience."""
    targets: int
    """Brokers with a subscriber that wants it."""
    high_rate: bool = False
    """Whether a high-rate publisher sent it: its links are counted apart."""
    accepted_ns: int = -1
    completed_ns: int = -1
    """When the last of its copies so far was taken in: not always the last that was worked on."""
    outstanding: int = 1
    """Copies that are queued, under way or waiting to be taken in."""
    copies: int = 0
    matching_ns: int = 0
    excused: int = 0
    """Targets that it cannot reach, because a copy was dropped or a link was cut."""
    visited: int = 0
    visits: dict[int, int] | None = None
    """Where it was, and with which identifications: for the checkers alone."""
    detoured: int = 0
    """Targets to which it went around something (TNR): for the checkers alone."""


class Audience:
    """A batch of notifications, their matches, and where they have been delivered so far.

    A *place* is `row * brokers + broker`: one notification at one broker.
    """

    def __init__(
        self,
        number: int,
        attributes: Sequence[Attributes],
        brokers: int,
        places: Integers,
        subscriptions: Integers,
    ) -> None:
        self.number = number
        self.attributes = attributes
        self.brokers = brokers
        self.places = places
        """One for every match, ascending."""
        self.subscriptions = subscriptions
        """The matching subscription of each of `places`."""
        self.flights: list[Flight] = []
        self.under_way = len(attributes)
        """Notifications of the batch of which copies have still to arrive."""
        self.reached = array("q")
        self.reached_ns = array("q")
        self.reached_hops = array("h")

    def targets(self) -> list[int]:
        """Return for each row the brokers with a match, as an integer of bits."""
        wanted = np.zeros((len(self.attributes), self.brokers), np.bool_)
        wanted.ravel()[self.places] = True
        packed = np.packbits(wanted, axis=1, bitorder="little")
        return [int.from_bytes(row.tobytes(), "little") for row in packed]

    def reach(self, row: int, broker: int, now: int, hops: int) -> None:
        """Note that a notification has reached a broker that has subscribers for it."""
        self.reached.append(row * self.brokers + broker)
        self.reached_ns.append(now)
        self.reached_hops.append(hops)

    def wanted_places(self) -> Integers:
        """Return every place with a match once, ascending."""
        is_new = np.ones(len(self.places), np.bool_)
        is_new[1:] = self.places[1:] != self.places[:-1]
        return self.places[is_new]

    def matching(self, row: int) -> list[int]:
        """Return all subscriptions that match a notification, broker by broker."""
        first, last = np.searchsorted(self.places, [row * self.brokers, (row + 1) * self.brokers])
        found: list[int] = self.subscriptions[first:last].tolist()
        return found

    def wanting(self, row: int, broker: int) -> list[int]:
        """Return the subscriptions at a broker that match a notification."""
        place = row * self.brokers + broker
        first, last = np.searchsorted(self.places, [place, place + 1])
        found: list[int] = self.subscriptions[first:last].tolist()
        return found

    def wants(self, row: int, subscription: int) -> bool:
        """Tell whether the index says that a subscription matches."""
        return subscription in self.matching(row)

    def deliveries(self) -> tuple[Integers, Integers]:
        """Return all deliveries made: which of `reached` each belongs to, and its subscription."""
        self._sort()
        reached = np.frombuffer(self.reached, np.int64)
        first = np.searchsorted(self.places, reached, "left")
        counts = np.searchsorted(self.places, reached, "right") - first
        visits = np.repeat(np.arange(len(reached)), counts)
        within = np.arange(len(visits)) - np.repeat(np.cumsum(counts) - counts, counts)
        return visits, self.subscriptions[np.repeat(first, counts) + within]

    def _sort(self) -> None:
        """Bring what was reached into the order of time; it was noted in the order of work."""
        order = np.lexsort((self.reached, self.reached_ns))
        for name, kind in (("reached", "q"), ("reached_ns", "q"), ("reached_hops", "h")):
            values = np.frombuffer(getattr(self, name), kind)[order]
            setattr(self, name, array(kind, values.tobytes()))


class Matcher:
    """Matches batches of notifications against all subscriptions of a scenario."""

    def __init__(
        self,
        subscribers: Sequence[Subscriber],
        hosts: Sequence[int],
        brokers: int,
        parts: Sequence[int] = (),
    ) -> None:
        """Take who is hosted where; `parts` has equal numbers for brokers that are connected."""
        self._brokers = brokers
        self._parts = np.array(parts, np.int64)
        self._is_split = len({part for part in parts if part >= 0}) > 1
        self._hosts = np.array(hosts, np.int64)
        self._index: BitsetIndex[int, int] = BitsetIndex()
        self._index.add_many(
            (number, subscriber.filter, host)
            for number, (subscriber, host) in enumerate(zip(subscribers, hosts, strict=True))
        )
        self._batches = 0

    def audience(self, batch: Sequence[Attributes], homes: Sequence[Station] = ()) -> Audience:
        """Return who wants each notification of a batch; not who is cut off from its home."""
        # Numbers of the index are those of the subscribers: they were added in order.
        rows, numbers = self._index.match_numbers(batch)
        if self._is_split:
            of_rows = self._parts[[home.index for home in homes]]
            connected = of_rows[rows] == self._parts[self._hosts[numbers]]
            rows, numbers = rows[connected], numbers[connected]
        # Place and subscription as one number sort several times as fast as in two columns.
        matches = (rows * self._brokers + self._hosts[numbers]) * len(self._hosts) + numbers
        matches.sort()
        places, subscriptions = np.divmod(matches, max(1, len(self._hosts)))
        self._batches += 1
        return Audience(self._batches, batch, self._brokers, places, subscriptions)


class Broadcast(msgspec.Struct, gc=False):
    """A subscription that spreads over the overlay, until its last copy has arrived."""

    number: int
    host: Station
    subscribed_ns: int
    settled_ns: int = 0
    """When the last broker so far has stored it."""
    completed_ns: int = 0
    """When the last of its copies so far was taken in, also one that came too late to be stored."""
    outstanding: int = 1
    """Copies that are queued, under way or waiting to be taken in."""
    copies: int = 0
    duplicates: int = 0
    stored: int = 0
    """Brokers that have stored it, by their bits."""
    hops_sum: int = 0
    hops_max: int = 0
    sequence: int = 0
    """Which change of its host's subscriptions it is (TNR)."""
    detoured: int = 0
    """Brokers to which it went around something (TNR): for the checkers alone."""


class Copy(msgspec.Struct, frozen=True, gc=False):
    """A copy for one link, or for several where they are the same.

    `mask` is what it carries: pending clusters (DNR) or brokers by their bits (BID, TNR); `tried`
    are the clusters from which it was sent around in this region (TNR). `attempt` tells the copies
    apart that channels have sent again, for the checkers alone.
    """

    subject: Any
    """The Flight or the Broadcast that it is a copy of; None where brokers compare tables."""
    hops: int
    send_ns: int
    reason: Reason
    mask: int = 0
    message: Any = None
    """The routing core's own message, where real brokers run."""
    tried: int = 0
    attempt: int = 0
