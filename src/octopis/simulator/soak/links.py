"""Links between simulated brokers: connections that break and come back, queues, loss, copies.

A link is joined by a connection, as over TCP: in order and once, as long as it lasts. It ends when
a broker dies, the link is cut, or one end hears nothing for too long; each end notices at a time of
its own. What is under way then is gone, but what has reached a broker that stands still is read
when it goes on. On purpose links are worse than TCP: they lose notifications and posts, and let
copies of them come again, much later.
"""

from collections import deque
from random import Random
from typing import Protocol

from octopis.core.delivery.posts import Post
from octopis.core.model import BrokerId
from octopis.core.routing.messages import Message, NotificationMessage
from octopis.simulator.soak.agenda import Agenda
from octopis.simulator.soak.log import Log
from octopis.simulator.soak.plan import MS, Plan, PlannedLink

_TOGETHER_MAX = 4
"""So many messages of a queue go over a link at once."""

_JOIN_AGAIN_NS = 40 * MS
_COPY_LATE_MAX_NS = 1500 * MS
_POSTS_MORE_OFTEN = 4
"""Late posts of lives that are over are rare otherwise, and the most dangerous of all."""


class End(Protocol):
    """A broker, as its links see it."""

    id: BrokerId
    is_still: bool

    def sees(self, neighbour: BrokerId) -> bool:
        """Tell whether it takes the link to a neighbour to be up."""

    def went(self, neighbour: BrokerId, count: int, dropped: int = 0) -> None:
        """Count messages that have left a queue, or were dropped at its end."""

    def arrives(self, neighbour: BrokerId, messages: list[Message]) -> None:
        """Take in messages."""

    def post_arrives(self, post: Post) -> None:
        """Take in a post."""

    def link_up(self, neighbour: BrokerId) -> None:
        """Know that the link is there."""

    def link_down(self, neighbour: BrokerId) -> None:
        """Know that the link is not there any more."""


class Wire:
    """One direction of a link, with the queue at its beginning."""

    def __init__(self, source: BrokerId, target: BrokerId, planned: PlannedLink) -> None:
        self.source, self.target = source, target
        self.latency_ns, self.service_ns = planned.latency_ns, planned.service_ns
        self.capacity = planned.capacity
        self.loss, self.doubling = planned.loss, planned.doubling
        self.slowness = 1.0
        self.is_silent = False
        """Whether nothing that goes in comes out."""

        self.queue: deque[Message] = deque()
        self.turn = 0
        """Rises when the queue is taken away: whatever was being sent is not sent on."""

        self.is_sending = False
        self.session = 0

    def take_away(self) -> list[Message]:
        """Return what waits, and begin anew."""
        waiting = list(self.queue)
        self.queue.clear()
        self.turn += 1
        self.is_sending = False
        return waiting


class Links:
    """All links of an overlay; `ends` are the brokers that live."""

    def __init__(self, plan: Plan, agenda: Agenda, log: Log, ends: dict[BrokerId, End]) -> None:
        self._agenda, self._log, self._ends = agenda, log, ends
        self._silence_ns = plan.silence_ns
        self._random = Random(plan.seed + 1)  # noqa: S311 - runs must repeat
        self.wires = {pair: Wire(*pair, planned) for pair, planned in plan.links.items()}
        self._sessions = dict.fromkeys(self._pairs(), 1)
        self._cuts = dict.fromkeys(self._sessions, 0)
        self._apart: set[tuple[BrokerId, BrokerId]] = set()
        for wire in self.wires.values():
            wire.session = 1

    def _pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        return [pair for pair in self.wires if pair[0] < pair[1]]

    # Messages

    def enqueue(self, source: BrokerId, target: BrokerId, messages: list[Message]) -> None:
        """Put messages on a queue; notifications for which it has no room are dropped."""
        wire = self.wires[source, target]
        room = wire.capacity - len(wire.queue)
        dropped = 0
        for message in messages:
            if room <= 0 and isinstance(message, NotificationMessage):
                dropped += 1
            else:
                wire.queue.append(message)
                room -= 1
        if dropped:
            self._log.count("dropped by full queues", dropped)
            self._ends[source].went(target, 0, dropped)
        self._send(wire)

    def _send(self, wire: Wire) -> None:
        if wire.is_sending or not wire.queue:
            return
        together = [wire.queue.popleft() for _ in range(min(_TOGETHER_MAX, len(wire.queue)))]
        self._ends[wire.source].went(wire.target, len(together))
        wire.is_sending = True
        busy_ns = round(wire.service_ns * wire.slowness * len(together))
        self._agenda.after(busy_ns, self._sent, wire, wire.turn, together)

    def _sent(self, wire: Wire, turn: int, messages: list[Message]) -> None:
        if turn != wire.turn:
            return
        wire.is_sending = False
        going = []
        for message in messages:
            if isinstance(message, NotificationMessage) and self._is_lost(wire):
                continue
            going.append(message)
            if isinstance(message, NotificationMessage) and self._comes_again(wire):
                late_ns = wire.latency_ns + self._random.randrange(_COPY_LATE_MAX_NS)
                self._agenda.after(late_ns, self._arrive, wire, None, [message])
        if going and not wire.is_silent:
            self._agenda.after(wire.latency_ns, self._arrive, wire, wire.session, going)
        self._send(wire)

    def _arrive(self, wire: Wire, session: int | None, messages: list[Message]) -> None:
        end = self._ends.get(wire.target)
        if end is None or session not in {None, self._session(wire)}:
            self._log.count("lost under way", len(messages))
            return
        end.arrives(wire.source, messages)

    def post(self, source: BrokerId, target: BrokerId, post: Post) -> None:
        """Send a post, past the queue."""
        wire = self.wires[source, target]
        if self._is_lost(wire) or wire.is_silent:
            return
        self._agenda.after(wire.latency_ns, self._post_arrives, wire, wire.session, post)
        if self._comes_again(wire, _POSTS_MORE_OFTEN):
            late_ns = wire.latency_ns + self._random.randrange(_COPY_LATE_MAX_NS)
            self._agenda.after(late_ns, self._post_arrives, wire, None, post)

    def _post_arrives(self, wire: Wire, session: int | None, post: Post) -> None:
        end = self._ends.get(wire.target)
        if end is not None and session in {None, self._session(wire)}:
            end.post_arrives(post)

    def _is_lost(self, wire: Wire) -> bool:
        if wire.loss and self._random.random() < wire.loss:
            self._log.count("lost on the wire")
            return True
        return False

    def _comes_again(self, wire: Wire, times: int = 1) -> bool:
        if wire.doubling and self._random.random() < wire.doubling * times:
            self._log.count("copied on the wire")
            return True
        return False

    def _session(self, wire: Wire) -> int:
        return self._sessions[min(wire.source, wire.target), max(wire.source, wire.target)]

    # Connections

    def part(self, one: BrokerId, other: BrokerId) -> None:
        """End a connection; each end notices at once or after a silence."""
        pair = min(one, other), max(one, other)
        if pair in self._apart:
            return
        self._apart.add(pair)
        self._sessions[pair] += 1
        session = self._sessions[pair]
        for end, neighbour in (pair, pair[::-1]):
            delay_ns = self._random.choice((0, 0, self._silence_ns))
            self._agenda.after(delay_ns, self._notice, end, neighbour, session)
        self._agenda.after(_JOIN_AGAIN_NS // 8, self._join, pair)

    def _notice(self, end: BrokerId, neighbour: BrokerId, session: int) -> None:
        broker = self._ends.get(end)
        pair = min(end, neighbour), max(end, neighbour)
        if broker is not None and session == self._sessions[pair] and broker.sees(neighbour):
            broker.link_down(neighbour)

    def _join(self, pair: tuple[BrokerId, BrokerId]) -> None:
        """Connect again, if both ends are there; else try again later."""
        if pair not in self._apart:
            return
        ends = [self._ends.get(each) for each in pair]
        wires = self.wires[pair], self.wires[pair[::-1]]
        is_cut = self._cuts[pair] or any(wire.is_silent for wire in wires)
        if is_cut or any(end is None or end.is_still for end in ends):
            self._agenda.after(_JOIN_AGAIN_NS, self._join, pair)
            return
        self._apart.discard(pair)
        self._sessions[pair] += 1
        for (source, target), wire in zip((pair, pair[::-1]), wires, strict=True):
            if self._ends[source].sees(target):  # it had not noticed
                self._ends[source].link_down(target)
            wire.session = self._sessions[pair]
        for source, target in (pair, pair[::-1]):
            self._ends[source].link_up(target)

    # Faults

    def cut(self, one: BrokerId, other: BrokerId) -> None:
        """Cut a link in both directions, until it is mended as often as it was cut."""
        self._cuts[min(one, other), max(one, other)] += 1
        self.part(one, other)

    def mend(self, one: BrokerId, other: BrokerId) -> None:
        """Take a cut back."""
        self._cuts[min(one, other), max(one, other)] -= 1

    def silence(self, source: BrokerId, target: BrokerId, until_ns: int) -> None:
        """Let one direction swallow all for a while; who hears nothing for long ends it."""
        wire = self.wires[source, target]
        wire.is_silent = True
        self._agenda.at(until_ns, setattr, wire, "is_silent", False)
        if until_ns - self._agenda.now > self._silence_ns:
            self._agenda.after(self._silence_ns, self.part, source, target)

    @property
    def are_at_rest(self) -> bool:
        """Whether all links between those that live are joined, and nothing waits for one."""
        if any(one in self._ends and other in self._ends for one, other in self._apart):
            return False
        return not any(wire.queue or wire.is_sending for wire in self.wires.values())
