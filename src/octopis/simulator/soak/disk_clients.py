"""Clients of brokers with disks: publishers that send again, and readers that acknowledge late."""

from collections import deque
from collections.abc import Mapping
from random import Random

from octopis.core.delivery.lasting.durables import Durable, Excerpt, id_of
from octopis.core.delivery.lasting.records import DurableState, Policy
from octopis.core.model import BrokerId, Notification
from octopis.core.topology import SCOT
from octopis.simulator.soak.agenda import Agenda
from octopis.simulator.soak.disk_node import CODEC, DiskNode
from octopis.simulator.soak.log import Accepted, Log, Name
from octopis.simulator.soak.plan import MS, PlannedDurable, PlannedPublisher

_TRY_AGAIN_NS = 10 * MS


class LastingPublisher:
    """Publishes its bursts in order, and again what it has no answer for when its host is back."""

    def __init__(
        self,
        planned: PlannedPublisher,
        scot: SCOT,
        agenda: Agenda,
        log: Log,
        nodes: Mapping[BrokerId, DiskNode],
    ) -> None:
        self.host = planned.host
        self._planned = planned
        self._scot, self._agenda, self._log, self._nodes = scot, agenda, log, nodes
        self._bursts = deque(planned.bursts)
        self._number = 0
        self._unanswered: deque[list[tuple[int, Notification]]] = deque()
        self._unsent = 0
        """How many of these, from the end on, the host has not got."""

        self._node: DiskNode | None = None
        self._is_waiting = False
        for at_ns, _ in planned.bursts:
            agenda.at(at_ns, self._burst)

    @property
    def is_done(self) -> bool:
        """Whether all was published and answered."""
        return not self._bursts and not self._unanswered

    def end(self) -> None:
        """Be told that the host is gone for good: hosts with a disk come back."""
        raise AssertionError(f"{self.host} comes back")

    def _burst(self) -> None:
        _, topics = self._bursts.popleft()
        name, payload = self._planned.name, b"." * self._planned.payload
        burst = []
        for topic in topics:
            attributes: dict[str, str | int | float | bool]
            attributes = {"p": name, "n": self._number, "topic": topic}
            burst.append((topic, Notification(attributes, payload)))
            self._number += 1
        self._unanswered.append(burst)
        self._unsent += 1
        self._go_on()

    def _go_on(self) -> None:
        """Send what was not sent; after a restart, all that has no answer."""
        node = self._nodes.get(self.host)
        if node is None or node is not self._node:
            self._node, self._unsent = node, len(self._unanswered)
        while node is not None and self._unsent and node.has_settled:
            burst = self._unanswered[-self._unsent]
            if not self._send(node, burst):
                break
            self._unsent -= 1
        if self._unanswered and not self._is_waiting:
            self._is_waiting = True
            self._agenda.after(_TRY_AGAIN_NS, self._again)

    def _again(self) -> None:
        self._is_waiting = False
        self._go_on()

    def _send(self, node: DiskNode, burst: list[tuple[int, Notification]]) -> bool:
        """Publish a burst, unless one of its targets lags behind, or there is no room."""
        now, name = self._agenda.now, self._planned.name
        batch = [notification for _, notification in burst]
        targets = node.core.hosts_of(batch)
        wanted = 0
        for host in set().union(*targets):
            wanted |= self._scot.bit(host)
        if wanted & node.channels.held or node.channels.is_blocked:
            self._log.count("publishers wait")
            return False
        matching = node.core.matching(batch)
        for (topic, each), hosts, entries in zip(burst, targets, matching, strict=True):
            if not node.channels.has(each):
                known = frozenset(entry.subscription.id for entry in entries)
                number = int(each.attributes["n"])
                about = (name, number), topic, node.id, node.life, frozenset(hosts), now, known
                self._log.accepted.append(Accepted(*about))
            else:
                self._log.count("taken once, sent again")
        self._log.note(now, f"{name} publishes {len(batch)} before {self._number}")
        node.accept(batch, lambda: self._answered(node, burst))
        return True

    def _answered(self, node: DiskNode, burst: list[tuple[int, Notification]]) -> None:
        if node is self._node and self._unanswered and self._unanswered[0] is burst:
            self._unanswered.popleft()
            self._log.answered.update(
                (self._planned.name, int(each.attributes["n"])) for _, each in burst
            )
            self._log.note(self._agenda.now, f"{self._planned.name} is answered")


class Reader:
    """Reads a durable subscription, acknowledges late, forgets what it did not acknowledge."""

    def __init__(
        self,
        planned: PlannedDurable,
        agenda: Agenda,
        log: Log,
        nodes: Mapping[BrokerId, DiskNode],
        random: Random,
    ) -> None:
        self.planned = planned
        self.positions: dict[int, Name] = {}
        """What it has read, by position."""

        self.topics: dict[Name, int] = {}
        self.is_made = False
        """Whether it was told that its subscription is on disk."""

        self.missing: set[int] = set()
        """Positions that it was told are not there."""

        self._agenda, self._log, self._nodes, self._random = agenda, log, nodes, random
        self._node: DiskNode | None = None
        self._maker: DiskNode | None = None
        self._at = self._acked = 0
        self._hurries = False
        agenda.at(planned.begin_ns, self._go_on)

    @property
    def is_away(self) -> bool:
        """Whether it reads nothing now."""
        now = self._agenda.now
        return not self._hurries and any(begin <= now < end for begin, end in self.planned.away_ns)

    @property
    def is_done(self) -> bool:
        """Whether it has acknowledged all that there is."""
        node = self._nodes.get(self.planned.host)
        durable = None if node is None else node.channels.durables.get(self.planned.name)
        return durable is not None and self.is_made and durable.next - 1 == durable.state.acked

    def hurry(self) -> None:
        """Read all that there is from now on."""
        self._hurries = True

    def _go_on(self) -> None:
        pause_ms = 20 if self._hurries else self.planned.pause_ms_max
        self._agenda.after(self._random.randint(1, pause_ms) * MS, self._go_on)
        node = self._nodes.get(self.planned.host)
        if node is None or not node.has_settled or self.is_away:
            self._node = None
            return
        durable = node.channels.durables.get(self.planned.name)
        if durable is None:
            if self.is_made:
                self._violated("nothing forgotten", f"{self.planned.name} is not there")
            else:
                self._node = self._maker = node
                node.make_durable(self._state(), self._made)
            return
        if node is not self._node:
            self._connect(node, durable)
        if not self.is_made:
            return
        self._read(node, durable)

    def _state(self) -> DurableState:
        about = self.planned.filter, self.planned.policy, 0, self._agenda.now, self._agenda.now
        return DurableState(self.planned.name, 0, 1, "", *about)

    def _made(self) -> None:
        self.is_made = True
        self._log.tell(self._agenda.now, f"{self.planned.name} is made")

    def _connect(self, node: DiskNode, durable: Durable) -> None:
        """Begin behind the last acknowledged, as the host knows it."""
        if node is not self._maker:  # it has outlived that, perhaps without an answer
            self.is_made = True
        self._node = node
        self._go_back(durable)
        if durable.state.acked < self._acked:
            detail = f"{self.planned.name} has acknowledged {self._acked}, and not {self._at}"
            self._violated("what is acknowledged stays", detail)

    def _go_back(self, durable: Durable) -> None:
        self._at = durable.state.acked
        if self.planned.policy is not Policy.REFUSE:  # it may have been dropped meanwhile
            self.missing |= set(range(1, self._at + 1)) - self.positions.keys()

    def _read(self, node: DiskNode, durable: Durable) -> None:
        random, before = self._random, durable.state.acked
        if not self._hurries and random.random() < 0.1:  # it dies, or reads a range again
            self._go_back(durable)
        found = node.channels.durables.read(
            durable, self._at, random.randint(1, 12), random.choice((100, 10_000))
        )
        self._take(found)
        if found.positions and (self._hurries or random.random() < 0.3):
            upto = random.choice((self._at, random.randint(min(before, self._at), self._at)))
            upto = self._at if self._hurries else upto
            self._acknowledge(node, durable, upto)
        elif self._hurries and self._at > before:
            self._acknowledge(node, durable, self._at)

    def _acknowledge(self, node: DiskNode, durable: Durable, upto: int) -> None:
        def known() -> None:
            self._acked = max(self._acked, upto)

        node.acknowledge(durable, upto, known)

    def _take(self, found: Excerpt) -> None:
        """Take in what was read: what was read before is the same."""
        now, name = self._agenda.now, self.planned.name
        first = found.positions[0] if found.positions else self._at + found.missing + 1
        there = set(found.positions)
        last = found.positions[-1] if found.positions else first - 1
        gaps = set(range(self._at + 1, last + 1)) - there
        if gaps and self.planned.policy is Policy.REFUSE:
            self._violated("nothing lost", f"{name} has nothing at {sorted(gaps)}")
        self.missing |= gaps
        for position, body in zip(found.positions, found.bodies, strict=True):
            attributes = CODEC.decode(body).attributes
            which = str(attributes["p"]), int(attributes["n"])
            before = self.positions.setdefault(position, which)
            if before != which:
                self._violated("the same again", f"{name} has {which} at {position}, not {before}")
            self.topics[which] = int(attributes["topic"])
            self._log.note(now, f"{name} reads {which} at {position}")
        self._at = max(self._at, last)
        if found.positions:
            self._log.count("read by durable subscriptions", len(found.positions))

    def _violated(self, law: str, detail: str) -> None:
        self._log.violated(self._agenda.now, law, detail)

    @property
    def id(self) -> str:
        """What the overlay calls it."""
        return id_of(self.planned.name)
