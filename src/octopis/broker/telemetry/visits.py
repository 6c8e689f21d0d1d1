"""What becomes of traced notifications at one broker: a span for each visit, and each delivery.

A visit begins when a notification comes to a broker: it is published there, a neighbour has sent a
copy, or the broker itself sends one again. It ends when the last copy has left its queue. The first
visit at a broker is called so that others can name it (identity.py), and what comes from there
hangs on it; later ones, and deliveries, have any name: nobody else needs it.
"""

import secrets
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from octopis.broker.telemetry.identity import Identity, identity_of
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm, NotificationMessage, Reason
from octopis.core.wire.published import Published

SEEN_MAX = 10_000
"""So many traced notifications a broker remembers, to tell first visits from later ones."""

_AROUND = {Reason.AROUND_OVERLOAD: "overload", Reason.AROUND_FAULT: "fault"}


class Kind(Enum):
    """What a span is about; the name stands in its own name."""

    PUBLISH = "publish"
    HOP = "hop"
    RESEND = "resend"
    REROUTE = "reroute"
    DELIVER = "deliver"


class Event(NamedTuple):
    """Something that happened during a span."""

    name: str
    at_ns: int
    attributes: dict[str, Any]


class Finished(NamedTuple):
    """A span that is over. `failure`: why what it is about has come to nothing."""

    kind: Kind
    trace_id: int
    span_id: int
    parent_id: int
    begun_ns: int
    ended_ns: int
    attributes: dict[str, Any]
    events: list[Event]
    failure: str = ""


class Visit:
    """A traced notification at a broker, from when it comes until its copies have left."""

    __slots__ = (
        "_around",
        "_attributes",
        "_begun_ns",
        "_events",
        "_kind",
        "_parent_id",
        "_routed_ns",
        "_tracer",
        "_waiting",
        "identity",
        "span_id",
    )

    def __init__(
        self,
        tracer: "Tracer",
        identity: Identity,
        kind: Kind,
        ids: tuple[int, int],
        attributes: dict[str, Any],
    ) -> None:
        """`ids` are the span's own and its parent's."""
        self.identity = identity
        self.span_id, self._parent_id = ids
        self._tracer = tracer
        self._kind = kind
        self._attributes = attributes
        self._begun_ns = time.time_ns()
        self._events: list[Event] = []
        self._around: dict[str, None] = {}
        self._waiting = 0
        self._routed_ns = 0

    def will_send(self) -> None:
        """Know that a copy is about to go on a link's queue."""
        self._waiting += 1

    def copy_is_out(self, fate: str, to: str, reason: Reason, targets: int, now_ns: int) -> None:
        """Know that a copy is off its queue: sent, or what else has become of it."""
        attributes: dict[str, Any] = {"octopis.to": to, "octopis.reason": reason.value}
        if targets:
            attributes["octopis.targets"] = targets
        self._events.append(Event(fate, now_ns, attributes))
        if reason in _AROUND:
            self._around[_AROUND[reason]] = None
        self._waiting -= 1
        self._look()

    def routed(self) -> None:
        """Know that nothing more goes on a queue."""
        self._routed_ns = time.time_ns()
        self._look()

    def _look(self) -> None:
        if self._routed_ns and not self._waiting:
            self.end()

    def end(self) -> None:
        """Let the span be over."""
        attributes = self._attributes
        if self._around:
            attributes["octopis.around"] = ",".join(self._around)
        ended_ns = max(self._begun_ns, self._routed_ns, *(each.at_ns for each in self._events))
        ids = self.identity.parent.trace_id, self.span_id, self._parent_id
        times = self._begun_ns, ended_ns
        self._tracer.visit_ends(self, Finished(self._kind, *ids, *times, attributes, self._events))


class Traced(Published, frozen=True, gc=False):
    """A notification that is traced, in the broker's own hands: the bytes that go on are as ever.

    No visit leads back to it: it is no part of a cycle, and the collector need not know it.
    """

    visit: Visit | None = None


class Tracer:
    """Makes the spans of one broker, on its event loop. `export` takes those that are over."""

    def __init__(
        self, broker: BrokerId, algorithm: Algorithm, export: Callable[[Finished], None]
    ) -> None:
        self._here = broker.short
        self._algorithm = algorithm.value
        self._export = export
        self._seen: dict[int, None] = {}
        self.open: dict[Visit, None] = {}
        """Visits that are not over."""

    def traced(
        self,
        notification: Published,
        kind: Kind,
        copy: NotificationMessage | None = None,
        sender: str = "",
    ) -> Traced | None:
        """Begin a visit of a notification that is traced, and return it with that; else None.

        `copy` is what has come, and `sender` the neighbour that it came from.
        """
        identity = identity_of(notification)
        if identity is None:
            return None
        own_id = identity.span_id(self._here)
        if own_id not in self._seen:
            self._remember(own_id)
            ids = own_id, identity.parent.span_id
        else:
            is_here = kind in {Kind.RESEND, Kind.REROUTE}
            ids = secrets.randbits(64) or 1, own_id if is_here else identity.parent.span_id
        attributes = self._about(identity)
        if sender:
            ids = ids[0], identity.span_id(sender)
            attributes["octopis.from"] = sender
        if copy is not None:
            attributes |= _of_copy(copy)
        visit = Visit(self, identity, kind, ids, attributes)
        self.open[visit] = None
        each = notification
        return Traced(
            *(each.attributes, each.payload, each.publisher, each.sequence, each.intended_ns),
            *(each.encoded, each.source, visit),
        )

    def visit_ends(self, visit: Visit, span: Finished) -> None:
        """Let go of a visit that is over."""
        if visit in self.open:  # a broker that stops has ended it before its copies were out
            del self.open[visit]
            self._export(span)

    def delivered(
        self, notification: Traced, begun_ns: int, about: dict[str, Any], failure: str = ""
    ) -> None:
        """Tell of a delivery to a client: it has left for it, or not, as `failure` says."""
        visit = notification.visit
        assert visit is not None, "a traced notification has a visit"
        self._deliver(visit.identity, visit.span_id, begun_ns, about, failure)

    def read(self, notification: Published, about: dict[str, Any]) -> None:
        """Tell that a notification was read which a durable subscription has kept.

        It hangs on this broker's own span as long as that is remembered, then on the publisher's.
        """
        identity = identity_of(notification)
        if identity is not None:
            own_id = identity.span_id(self._here)
            parent_id = own_id if own_id in self._seen else identity.parent.span_id
            self._deliver(identity, parent_id, time.time_ns(), about)

    def _deliver(
        self,
        identity: Identity,
        parent_id: int,
        begun_ns: int,
        about: dict[str, Any],
        failure: str = "",
    ) -> None:
        ids = identity.parent.trace_id, secrets.randbits(64) or 1, parent_id
        times = begun_ns, max(begun_ns, time.time_ns())
        attributes = self._about(identity) | about
        self._export(Finished(Kind.DELIVER, *ids, *times, attributes, [], failure))

    def _about(self, identity: Identity) -> dict[str, Any]:
        return {
            "octopis.broker": self._here,
            "octopis.algorithm": self._algorithm,
            "octopis.publisher": identity.publisher,
            # A client chooses it, and spans have no number above that.
            "octopis.sequence": identity.sequence,
        }

    def _remember(self, own_id: int) -> None:
        if len(self._seen) >= SEEN_MAX:
            del self._seen[next(iter(self._seen))]
        self._seen[own_id] = None


def _of_copy(message: NotificationMessage) -> dict[str, Any]:
    """Return what a copy says of its way, under the algorithms that say so."""
    found: dict[str, Any] = {}
    if message.targets:
        found["octopis.targets"] = message.targets.bit_count()
    if message.tried:
        found["octopis.sent_around"] = True
    return found
