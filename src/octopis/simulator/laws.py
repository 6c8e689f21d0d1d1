"""The laws that every run obeys, checked apart from the code that should obey them.

no loop         no copy of a notification comes to a broker where another has been (BID: no
                identification comes twice; TNR: no target comes twice with the same clusters tried)
path bounds     no path is longer than the algorithm allows; a subscription reaches every broker on
                a shortest path (SBP); what went around nothing has gone a shortest path (TNR)
no duplicate    nothing is delivered twice, and no broker stores a subscription twice
nothing lost    everyone who wants a notification gets it, unless a copy was dropped or cut, which
                is counted; every broker stores every subscription. Where brokers are dead, that
                holds among those who are connected under BID, and under TNR as long as fewer are
                dead than there are clusters; otherwise what is lost is counted
only matches    nothing is delivered to those who do not want it
in order        with channels, a host is handed a publisher's notifications in their order
conservation    every copy that was put on a queue was taken in or counted as lost, exactly once
link status     the counts of the Link Status Table are those of the messages
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from octopis.core.routing import Algorithm
from octopis.errors import LawViolated
from octopis.scenario.tables import Publisher, Subscriber
from octopis.simulator.audience import Audience, Broadcast, Copy, Flight
from octopis.simulator.kernel import Served
from octopis.simulator.network import Network, Output, Station

ORACLE_PAIRS = 300
"""Pairs of each batch that the filter itself is asked about, beside the index."""


class Laws:
    """Checks one run; the first violation raises LawViolated."""

    def __init__(
        self,
        network: Network,
        algorithm: Algorithm,
        seed: int,
        publishers: Sequence[Publisher],
        subscribers: Sequence[Subscriber],
    ) -> None:
        self._network = network
        self._is_bid = algorithm is Algorithm.BID
        self._is_tnr = algorithm is Algorithm.TNR
        self._seed = seed
        self._publishers = publishers
        self._subscribers = subscribers
        self._path_max = path_max(network, algorithm)
        self._tries = 1 << 2 * len(network.scot.clusters)
        self._handed_on: dict[tuple[int, int], int] = {}
        """The last number of each publisher that each station was handed."""
        self._everyone = (1 << len(network.stations)) - 1
        dead = network.parts.count(-1)
        self._has_dead = bool(dead)
        self._survives = (
            not dead or self._is_bid or (self._is_tnr and dead < len(network.scot.clusters))
        )
        """Whether the algorithm reaches all who are connected, in spite of the dead."""
        self._taken_in = [0] * len(network.stations)
        self._from_clients = [0] * len(network.stations)
        self._distances = _Distances(network)

    def served(self, station: Station, copy: Copy, now: int) -> None:
        """Check a message of any kind that a station has served."""
        if isinstance(copy.subject, Flight):
            self.of_notifications(station, copy, now)
        else:
            self.served_subscription(station, copy, now)

    @property
    def of_notifications(self) -> Served:
        """What checks every copy of a notification that a station has served."""
        return self._served_with_targets if self._is_tnr else self.served_notification

    def served_notification(self, station: Station, copy: Copy, now: int) -> None:
        """Check a copy that a station has served."""
        self._taken_in[station.index] += 1
        flight: Flight = copy.subject
        if copy.hops > self._path_max:
            self._break("path bounds", f"a path of {copy.hops} links", now, station, flight)
        if self._is_bid:
            self._check_identifications(flight, copy, station, now)
        elif flight.visited & station.bit:
            self._break("no loop", "a broker got a second copy", now, station, flight)
        flight.visited |= station.bit

    def _check_identifications(
        self, flight: Flight, copy: Copy, station: Station, now: int
    ) -> None:
        visits = flight.visits
        if visits is None:
            visits = flight.visits = {}
        before = visits.get(station.index, 0)
        if before & copy.mask or (flight.visited & station.bit and not copy.hops):
            self._break("no loop", "an identification came again", now, station, flight)
        visits[station.index] = before | copy.mask

    def _served_with_targets(self, station: Station, copy: Copy, now: int) -> None:
        index, carried, flight = station.index, copy.mask, copy.subject
        self._taken_in[index] += 1
        if copy.tried:
            flight.detoured |= carried
        if carried & station.bit & ~flight.detoured:
            distance = self._distances[flight.host.index][index]
            if copy.hops != distance:
                detail = f"{copy.hops} links, the distance is {distance}, around nothing"
                self._break("path bounds", detail, now, station, flight)
        elif copy.hops > self._path_max:
            self._break("path bounds", f"a path of {copy.hops} links", now, station, flight)
        if carried != station.bit:  # else its way ends here: that it does so once is another law
            self._check_targets(flight, copy, station, now)

    def _check_targets(self, flight: Flight, copy: Copy, station: Station, now: int) -> None:
        tried = copy.attempt * self._tries + copy.tried  # what is sent again may come again
        place = tried * len(self._taken_in) + station.index
        visits = flight.visits
        if visits is None:
            flight.visits = {place: copy.mask}
            return
        before = visits.get(place, 0)
        if before & copy.mask or not copy.hops:
            self._break("no loop", "a target came again", now, station, flight)
        visits[place] = before | copy.mask

    def served_subscription(self, station: Station, copy: Copy, now: int) -> None:  # noqa: ARG002
        """Count a message about a subscription that a station has served."""
        self._taken_in[station.index] += 1
        broadcast: Broadcast | None = copy.subject
        if broadcast is not None and (copy.tried or copy.mask & broadcast.detoured):
            # It may also be stored by a station that it only passes.
            broadcast.detoured |= copy.mask | station.bit

    def stored(self, broadcast: Broadcast, station: Station, hops: int, now: int) -> None:
        """Check a subscription that a broker has stored."""
        if broadcast.stored & station.bit:
            self._break("no duplicate", "stored twice", now, station, broadcast)
        distance = self._distances[broadcast.host.index][station.index]
        is_shortest = not self._is_bid and not broadcast.detoured & station.bit
        if hops > self._path_max or (is_shortest and hops != distance):
            detail = f"a subscription came over {hops} links, the distance is {distance}"
            self._break("path bounds", detail, now, station, broadcast)
        broadcast.stored |= station.bit

    def settled(self, broadcast: Broadcast) -> None:
        """Check a subscription whose last copy has arrived."""
        wanted = self._network.part(broadcast.host) if self._has_dead else self._everyone
        missing = wanted & ~broadcast.stored
        if missing and self._survives:
            station = self._first(missing)
            self._break("nothing lost", "not stored here", broadcast.settled_ns, station, broadcast)

    def delivered(self, audience: Audience) -> None:
        """Check all deliveries of a batch of which every notification has completed."""
        wanted = audience.wanted_places()
        reached = np.frombuffer(audience.reached, np.int64)
        if np.array_equal(np.sort(reached), wanted):
            return
        times = np.frombuffer(audience.reached_ns, np.int64)
        places, firsts = np.unique(reached, return_index=True)
        if len(places) < len(reached):
            again = np.ones(len(reached), np.bool_)
            again[firsts] = False
            visit = int(np.flatnonzero(again)[0])
            station, flight = self._at(audience, int(reached[visit]))
            self._break("no duplicate", "delivered twice", int(times[visit]), station, flight)
        for place in np.setdiff1d(wanted, places, assume_unique=True).tolist():
            station, flight = self._at(audience, place)
            if self._survives and not flight.excused & station.bit:
                now = flight.completed_ns
                self._break("nothing lost", "a subscriber got nothing", now, station, flight)
        extra = np.flatnonzero(~np.isin(reached, wanted))
        if len(extra):
            visit = int(extra[0])
            station, flight = self._at(audience, int(reached[visit]))
            self._break("only matches", "nobody wants it here", int(times[visit]), station, flight)

    def matched(self, flight: Flight, station: Station, found: list[int], now: int) -> None:
        """Check the subscriptions that a real broker has delivered a notification to."""
        wanted = flight.audience.wanting(flight.row, station.index)
        if len(set(found)) < len(found):
            self._break("no duplicate", "delivered twice", now, station, flight)
        if set(found) - set(wanted):
            self._break("only matches", "a subscriber does not want it", now, station, flight)
        if set(wanted) - set(found):
            self._break("nothing lost", "a subscriber got nothing", now, station, flight)

    def in_order(self, flight: Flight, station: Station, now: int) -> None:
        """Check that nothing is handed on at a broker after a later one of its publisher."""
        whose, number = (flight.publisher, station.index), flight.sequence
        last = self._handed_on.get(whose, number - 1)
        if number <= last:
            self._break("in order", f"{last} was handed on before", now, station, flight)
        self._handed_on[whose] = number

    def ask_filters(self, audience: Audience) -> None:
        """Ask the filters themselves about some pairs: of all pairs, and of the matching ones."""
        subscribers, matches = len(self._subscribers), len(audience.places)
        pairs = len(audience.flights) * subscribers
        step = max(1, pairs // ORACLE_PAIRS)
        for pair in range(audience.number % step, pairs, step):
            self._ask(audience, *divmod(pair, subscribers))
        for match in range(0, matches, max(1, matches // ORACLE_PAIRS)):
            row = int(audience.places[match]) // audience.brokers
            self._ask(audience, row, int(audience.subscriptions[match]))

    def _ask(self, audience: Audience, row: int, number: int) -> None:
        subscriber = self._subscribers[number]
        flight, station = audience.flights[row], self._network.by_broker[subscriber.broker]
        parts = self._network.parts
        wants = subscriber.filter.matches(audience.attributes[row])
        wants = wants and parts[flight.host.index] == parts[station.index]
        if wants != audience.wants(row, number):
            law = "nothing lost" if wants else "only matches"
            detail = f"the filter of {subscriber.subscription} and the matching index disagree"
            self._break(law, detail, flight.accepted_ns, station, flight)

    def sent_by_client(self, station: Station) -> None:
        """Count a message that a local client gave to its broker."""
        self._from_clients[station.index] += 1

    def all_arrived(self, under_way: Sequence[Flight], now: int) -> None:
        """Check at the end of a run that no notification is under way any more."""
        for flight in under_way:
            detail = f"{flight.outstanding:,} copies never arrived"
            self._break("conservation", detail, now, flight.host, flight)

    def conserved(self, now: int) -> None:
        """Check at the end of a run that no copy has vanished or come from nowhere."""
        expected = list(self._from_clients)
        for output in self._network.outputs:
            if output.waiting:
                detail = f"towards {output.target.broker}, {len(output.waiting):,} still queued"
                self._break("conservation", detail, now, output.source)
            expected[output.target.index] += output.messages - output.dropped - output.cut
        for station, wanted in zip(self._network.stations, expected, strict=True):
            taken_in = self._taken_in[station.index]
            if taken_in != wanted:
                detail = f"{wanted:,} messages were sent here, {taken_in:,} were taken in"
                self._break("conservation", detail, now, station)

    def link_status(self, output: Output, counted: tuple[int, int, int], now: int) -> None:
        """Check the status of a queue: (length, q_in, q_out) as `counted` from the messages."""
        status = output.tracked_status
        found = status.queue_length, status.q_in, status.q_out
        if found != counted:
            detail = f"length, Q_in, Q_out towards {output.target.broker}: {found} != {counted}"
            self._break("link status", detail, now, output.source)

    def _at(self, audience: Audience, place: int) -> tuple[Station, Flight]:
        row, broker = divmod(place, audience.brokers)
        return self._network.stations[broker], audience.flights[row]

    def _first(self, mask: int) -> Station:
        return self._network.stations[(mask & -mask).bit_length() - 1]

    def _break(
        self,
        law: str,
        detail: str,
        now: int,
        station: Station,
        about: Flight | Broadcast | None = None,
    ) -> NoReturn:
        notification = subscription = None
        if isinstance(about, Flight):
            notification = self._publishers[about.publisher].name, about.sequence
        elif isinstance(about, Broadcast):
            subscription = self._subscribers[about.number].subscription
        raise LawViolated(
            law,
            detail,
            seed=self._seed,
            time_ns=now,
            broker=station.broker.short,
            notification=notification,
            subscription=subscription,
        )


class _Distances(dict[int, list[int]]):
    """The distances from a host to all stations, by their numbers, worked out once."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def __missing__(self, host: int) -> list[int]:
        scot, stations = self._network.scot, self._network.stations
        broker = stations[host].broker
        found = self[host] = [scot.distance(broker, other.broker) for other in stations]
        return found


def path_max(network: Network, algorithm: Algorithm) -> int:
    """Return how many links a path may have.

    Under DNR a path crosses into every other cluster at most once, and is no longer than the
    tree's diameter in each. Under TNR it crosses twice into each cluster at most, in every region
    on its way through the tree: to try it, and to wait there.
    """
    scot = network.scot
    if algorithm is Algorithm.BID:
        return len(scot.brokers) - 1
    if algorithm is Algorithm.DNR:
        return len(scot.clusters) * (scot.diameter + 1) - 1
    if algorithm is Algorithm.TNR:
        return scot.diameter + 2 * len(scot.clusters) * (scot.diameter + 1)
    return scot.longest_path
