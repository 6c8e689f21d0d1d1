"""What a run writes down: rows for the trace, and counts for its summary.

Rows of a trace that come one by one, with numbers in place of names until they are written.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octopis.core.model import ClusterBitVector
from octopis.core.routing import Algorithm, Reason
from octopis.scenario.folder import Scenario
from octopis.simulator.audience import Audience, Broadcast, Copy, Flight, Integers
from octopis.simulator.laws import Laws
from octopis.simulator.network import Network, Output, Station
from octopis.trace.schemas import NAME, SCHEMAS
from octopis.trace.writer import TraceWriter

ROWS = 20_000
"""Rows that are collected before they are handed to the writer."""

LINK_KINDS = ("aCOL", "iCOL")
MESSAGES = ("notification", "subscription", "sync")
FATES = ("left", "dropped", "cut")

_VOCABULARY = {"source": "broker", "target": "broker"}
"""Columns that take their names from another column's list."""


def _reasons(algorithm: Algorithm) -> list[Reason]:
    """Return the reasons that a trace has names for; those of target routing are the last."""
    found = list(Reason)
    return found if algorithm is Algorithm.TNR else found[: found.index(Reason.TARGET)]


class Rows:
    """Collects rows, and hands them to the writer a few thousand at a time."""

    def __init__(self, scenario: Scenario, network: Network, writer: TraceWriter) -> None:
        subscribers = scenario.subscribers
        names: dict[str, Sequence[str]] = {
            "broker": [station.broker.short for station in network.stations],
            "publisher": [publisher.name for publisher in scenario.publishers],
            "subscription": [subscriber.subscription for subscriber in subscribers],
            "client": [subscriber.client for subscriber in subscribers],
            "link_kind": LINK_KINDS,
            "message": MESSAGES,
            "fate": FATES,
            "reason": [reason.value for reason in _reasons(scenario.document.routing.algorithm)],
        }
        self._names = {kind: pa.array(each, pa.string()) for kind, each in names.items()}
        self._writer = writer
        self._waiting: dict[str, list[tuple[Any, ...]]] = {name: [] for name in SCHEMAS}

    def wanted(self, table: str) -> bool:
        """Tell whether the trace has this table."""
        return self._writer.wants(table)

    def add(self, table: str, row: tuple[Any, ...]) -> None:
        """Add a row in the order of the table's schema; names are numbers, None is null."""
        waiting = self._waiting[table]
        waiting.append(row)
        if len(waiting) >= ROWS:
            self._flush(table)

    def write(self, table: str, columns: dict[str, npt.NDArray[Any]]) -> None:
        """Add many rows, given as columns; names are numbers."""
        schema = SCHEMAS[table]
        self._writer.write(
            table,
            {name: self._column(schema.field(name), values) for name, values in columns.items()},
        )

    def flush(self) -> None:
        """Hand everything to the writer."""
        for table in self._waiting:
            self._flush(table)

    def _flush(self, table: str) -> None:
        waiting, self._waiting[table] = self._waiting[table], []
        if waiting:
            columns = zip(SCHEMAS[table], zip(*waiting, strict=True), strict=True)
            self._writer.write(
                table, {field.name: self._column(field, values) for field, values in columns}
            )

    def _column(self, field: pa.Field, values: Any) -> pa.Array:
        if field.type != NAME:
            return pa.array(values, field.type)
        names = self._names[_VOCABULARY.get(field.name, field.name)]
        numbers = values.astype(np.int32) if isinstance(values, np.ndarray) else values
        return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), names)


Progress = Callable[[str, int, int, int], None]
"""Told the phase, how many of how many are done, and the virtual time in nanoseconds."""

_REASON_NUMBERS = {reason: number for number, reason in enumerate(Reason)}
_FATE_NUMBERS = {fate: number for number, fate in enumerate(FATES)}


class Ledger:
    """Collects what happened, has it checked, and hands it to the trace."""

    def __init__(
        self,
        scenario: Scenario,
        network: Network,
        laws: Laws,
        writer: TraceWriter,
        progress: Progress,
    ) -> None:
        self._subscriber_count = len(scenario.subscribers)
        self._notification_count = scenario.notification_count
        algorithm = scenario.document.routing.algorithm
        self._carries_brokers = algorithm in {Algorithm.BID, Algorithm.TNR}
        self._clusters = len(network.scot.clusters)
        self._network = network
        self._laws = laws
        self._progress = progress
        self._rows = Rows(scenario, network, writer)
        self._writes_stored = writer.wants("stored")
        self._open: dict[int, Audience] = {}
        self._cases: dict[str, int] = {}
        self.fans: dict[tuple[Reason, ...], int] = {}
        """How often target routing has sent copies on for just these reasons."""
        self.subscriptions = self.duplicates = self.notifications = 0
        self.deliveries = self.deliveries_lost = self.sync_ims = 0
        self.last_ns = 0
        """When the last message was taken in."""

    def count_case(self, name: str) -> None:
        """Dynamic routing has met one of its cases."""
        self._cases[name] = self._cases.get(name, 0) + 1

    @property
    def cases(self) -> dict[str, int]:
        """How often dynamic routing has met each of its cases; under TNR, copies by reason."""
        found = Counter(self._cases)
        for reasons, times in self.fans.items():
            for reason in reasons:
                found[reason.value] += times
        return dict(found)

    def stored(self, broadcast: Broadcast, station: Station, now: int, hops: int) -> None:
        """A broker has stored a subscription."""
        self._laws.stored(broadcast, station, hops, now)
        broadcast.hops_sum += hops
        # Millions of times: comparing costs a third of a call of max.
        if hops > broadcast.hops_max:  # noqa: PLR1730
            broadcast.hops_max = hops
        if now > broadcast.settled_ns:  # noqa: PLR1730
            broadcast.settled_ns = now
        if self._writes_stored:
            self._rows.add("stored", (broadcast.number, station.index, now, hops))

    def settled(self, broadcast: Broadcast, now: int) -> None:
        """The last copy of a subscription has arrived."""
        self._laws.settled(broadcast)
        self.last_ns = max(self.last_ns, broadcast.completed_ns, now)
        self.subscriptions += 1
        self.duplicates += broadcast.duplicates
        if self._rows.wanted("subscriptions"):
            number, others = broadcast.number, max(1, len(self._network.stations) - 1)
            times = broadcast.subscribed_ns, broadcast.settled_ns
            counts = (
                broadcast.copies,
                broadcast.duplicates,
                broadcast.hops_max,
                broadcast.hops_sum / others,
            )
            row = (number, number, broadcast.host.index, *times, *counts)
            self._rows.add("subscriptions", row)
        if self.subscriptions % 500 == 0:
            total, now = self._subscriber_count, broadcast.settled_ns
            self._progress("subscriptions", self.subscriptions, total, now)

    def opened(self, audience: Audience) -> None:
        """A batch of notifications is about to be published."""
        self._open[audience.number] = audience

    def completed(self, flight: Flight, now: int) -> None:
        """The last copy of a notification has arrived."""
        flight.completed_ns = max(flight.completed_ns, now)
        self.last_ns = max(self.last_ns, flight.completed_ns)
        self.notifications += 1
        flight.visits = None
        audience = flight.audience
        audience.under_way -= 1
        if not audience.under_way:
            self._laws.delivered(audience)
            self._laws.ask_filters(audience)
            self._close(audience)
            self._progress("notifications", self.notifications, self._notification_count, now)

    def message(  # noqa: PLR0913, PLR0917 - one fact each
        self, output: Output, copy: Copy, enqueued: int, left: int | None, ahead: int, fate: str
    ) -> None:
        """A message has left its queue, or has been lost from it."""
        subject = copy.subject
        is_flight = isinstance(subject, Flight)
        carries = is_flight and copy.mask
        cbv_p = ClusterBitVector(copy.mask).bits(self._clusters) if carries else None
        row = (
            output.source.index,
            output.target.index,
            int(output.is_icol),
            0 if is_flight else 2 if subject is None else 1,
            subject.publisher if is_flight else None,
            subject.sequence if is_flight else None,
            subject.number if isinstance(subject, Broadcast) else None,
            enqueued,
            left,
            ahead,
            None if self._carries_brokers else cbv_p,
            copy.mask.bit_count() if self._carries_brokers and is_flight else None,
            _REASON_NUMBERS[copy.reason],
            copy.hops,
            _FATE_NUMBERS[fate],
        )
        self._rows.add("ims", row)

    def sample(
        self, output: Output, seen: tuple[int, int, int], longest: float, window_end_ns: int
    ) -> None:
        """A window has ended: a queue's length, Q_in and Q_out."""
        ends = output.source.index, output.target.index
        self._rows.add("queues", (window_end_ns, *ends, *seen, seen[0] > longest))

    @property
    def under_way(self) -> list[Flight]:
        """The notifications of which copies have still to arrive."""
        return [
            flight
            for audience in self._open.values()
            for flight in audience.flights
            if flight.outstanding
        ]

    def finish(self) -> None:
        """Write what a run that was broken off has done so far, and the counts of all links."""
        for audience in list(self._open.values()):
            self._close(audience)
        for output in self._network.outputs:
            counts = output.subscription_messages, output.messages - output.subscription_messages
            ends = output.source.index, output.target.index, int(output.is_icol)
            lost = output.dropped, output.cut
            waited = output.longest, output.waited_ns
            row = (*ends, *counts, *waited, *lost, output.high_rate_messages)
            self._rows.add("links", row)
        self._rows.flush()

    def _close(self, audience: Audience) -> None:
        """Write the rows of a batch, and forget it."""
        del self._open[audience.number]
        visits, subscriptions = audience.deliveries()
        reached = np.frombuffer(audience.reached, np.int64)
        rows, brokers = np.divmod(reached, audience.brokers)
        flights = audience.flights
        made = np.bincount(rows[visits], minlength=len(flights))
        wanted = np.bincount(audience.places // audience.brokers, minlength=len(flights))
        self.deliveries += len(visits)
        for flight, missing in zip(flights, (wanted[: len(flights)] - made).tolist(), strict=True):
            if missing > 0 and not flight.outstanding:
                self.deliveries_lost += missing
        if self._rows.wanted("deliveries"):
            publishers = np.array([flight.publisher for flight in flights], np.int32)
            sequences = np.array([flight.sequence for flight in flights], np.int64)
            intended_ns = np.array([flight.intended_ns for flight in flights], np.int64)
            reached_ns = np.frombuffer(audience.reached_ns, np.int64)
            self._rows.write(
                "deliveries",
                {
                    "publisher": publishers[rows][visits],
                    "sequence": sequences[rows][visits],
                    "subscription": subscriptions,
                    "broker": brokers[visits],
                    "delivered_ns": reached_ns[visits],
                    "delay_ns": (reached_ns - intended_ns[rows])[visits],
                    "hops": np.frombuffer(audience.reached_hops, np.int16)[visits],
                },
            )
            self._publications(audience, made)
        audience.flights.clear()  # they and the audience hold each other, and nobody collects them

    def _publications(self, audience: Audience, deliveries: Integers) -> None:
        for flight, count in zip(audience.flights, deliveries.tolist(), strict=True):
            if not flight.outstanding:
                who = flight.publisher, flight.sequence, flight.host.index
                times = flight.intended_ns, flight.accepted_ns, flight.completed_ns
                row = (*who, *times, flight.copies, count, flight.matching_ns)
                self._rows.add("publications", row)
