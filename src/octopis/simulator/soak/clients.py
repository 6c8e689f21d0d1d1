"""Clients of a simulated overlay: publishers that wait when they have to, and subscribers."""

from collections.abc import Mapping
from functools import lru_cache

from octopis.core.filters import Filter, parse_filter
from octopis.core.model import BrokerId, Notification
from octopis.core.topology import SCOT
from octopis.simulator.soak.agenda import Agenda
from octopis.simulator.soak.log import Accepted, Log
from octopis.simulator.soak.node import Node
from octopis.simulator.soak.plan import MS, PlannedPublisher, PlannedSubscriber

_TRY_AGAIN_NS = 10 * MS


class Publisher:
    """Publishes its bursts in order; none before its host takes it."""

    def __init__(
        self,
        planned: PlannedPublisher,
        scot: SCOT,
        agenda: Agenda,
        log: Log,
        nodes: Mapping[BrokerId, Node],
    ) -> None:
        self.host = planned.host
        self.longest_wait_ns = 0
        """How long targets that lag behind have held it up."""

        self._planned = planned
        self._scot, self._agenda, self._log, self._nodes = scot, agenda, log, nodes
        self._bursts = list(reversed(planned.bursts))
        self._number = 0
        self._held_since: int | None = None
        agenda.at(planned.bursts[0][0], self._go_on)

    @property
    def is_done(self) -> bool:
        """Whether all was published."""
        return not self._bursts

    def end(self) -> None:
        """Publish no more: the host is gone for good."""
        self._bursts.clear()

    def _go_on(self) -> None:
        if not self._bursts:
            return
        node = self._nodes.get(self.host)
        if node is None or not node.has_settled or not self._publish(node):
            self._agenda.after(_TRY_AGAIN_NS, self._go_on)
            return
        self._bursts.pop()
        if self._bursts:
            self._agenda.at(self._bursts[-1][0], self._go_on)

    def _publish(self, node: Node) -> bool:
        """Publish a burst, unless one of its targets lags behind."""
        now, name, topics = self._agenda.now, self._planned.name, self._bursts[-1][1]
        payload = b"." * self._planned.payload
        batch = [
            Notification({"p": name, "n": self._number + place, "topic": topic}, payload)
            for place, topic in enumerate(topics)
        ]
        targets = node.core.hosts_of(batch)
        wanted = 0
        for host in set().union(*targets):
            wanted |= self._scot.bit(host)
        if wanted & node.channels.held:
            if self._held_since is None:
                self._held_since = now
                self._log.tell(now, f"{name} waits at {node.id}")
            return False
        if self._held_since is not None:
            self.longest_wait_ns = max(self.longest_wait_ns, now - self._held_since)
            self._held_since = None
        for topic, hosts in zip(topics, targets, strict=True):
            accepted = (name, self._number), topic, node.id, node.life, frozenset(hosts), now
            self._log.accepted.append(Accepted(*accepted))
            self._number += 1
        self._log.note(now, f"{name} publishes up to {self._number}")
        node.publish(batch)
        return True


class Subscriber:
    """Subscribes, and again when its host was restarted; or comes and goes."""

    def __init__(
        self,
        planned: PlannedSubscriber,
        agenda: Agenda,
        nodes: Mapping[BrokerId, Node],
    ) -> None:
        self.planned = planned
        self.sessions: list[tuple[int, int | None]] = []
        """From when until when it was connected and had subscribed."""

        self._agenda, self._nodes = agenda, nodes
        self._node: Node | None = None
        self._wants = planned.is_stable
        for time_ns in planned.changes_ns:
            agenda.at(time_ns, self._change)
        agenda.at(0, self._see)

    def _change(self) -> None:
        self._wants = not self._wants
        self._see()

    def _see(self) -> None:
        """Subscribe or leave, if that is wanted and possible; else see again later."""
        node = self._nodes.get(self.planned.host)
        if self._node is not None and self._node is not node:
            self.lost()
        if self._wants and self._node is None:
            if node is None or not node.has_settled:
                self._agenda.after(_TRY_AGAIN_NS, self._see)
                return
            self._node = node
            self.sessions.append((self._agenda.now, None))
            subscription = f"{self.planned.name}.{len(self.sessions)}"
            node.subscribe(self.planned.name, subscription, _parsed(self.planned.filter))
        elif not self._wants and self._node is not None:
            self._node.leave(self.planned.name)
            self.lost()

    def lost(self) -> None:
        """Know that the connection is lost."""
        if self._node is not None:
            self._node = None
            self.sessions[-1] = self.sessions[-1][0], self._agenda.now
            self._agenda.after(_TRY_AGAIN_NS, self._see)


@lru_cache
def _parsed(text: str) -> Filter:
    return parse_filter(text)
