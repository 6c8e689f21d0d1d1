"""A simulated overlay with its brokers, links and clients, and the faults that happen to it."""

from random import Random

from octopis.core.delivery.channels import Channels
from octopis.core.model import BrokerId
from octopis.simulator.soak.agenda import Agenda
from octopis.simulator.soak.clients import Publisher, Subscriber
from octopis.simulator.soak.links import End, Links
from octopis.simulator.soak.log import Log
from octopis.simulator.soak.node import MakeChannels, Node, Watcher
from octopis.simulator.soak.plan import Fault, FaultKind, Plan


class World:
    """Everything in a run. `make` makes the channels of a broker."""

    def __init__(
        self, plan: Plan, log: Log, watcher: Watcher, make: MakeChannels = Channels
    ) -> None:
        self.plan, self.log, self._watcher, self._make = plan, log, watcher, make
        self.agenda = Agenda()
        self.nodes: dict[BrokerId, Node] = {}
        ends: dict[BrokerId, End] = self.nodes  # type: ignore[assignment]
        self._random = Random(plan.seed + 2)  # noqa: S311 - runs must repeat
        self.links = Links(plan, self.agenda, log, ends)
        for broker in plan.scot.brokers:
            self._start(broker, is_first=True)
        self.publishers = self._make_publishers()
        self.subscribers = [Subscriber(each, self.agenda, self.nodes) for each in plan.subscribers]
        for fault in plan.faults:
            self.agenda.at(fault.begin_ns, self._begin, fault)
        self.agenda.at(plan.end_ns, self._calm)

    def _make_publishers(self) -> list[Publisher]:
        shared = self.plan.scot, self.agenda, self.log, self.nodes
        return [Publisher(each, *shared) for each in self.plan.publishers]

    def _start(self, broker: BrokerId, *, is_first: bool = False) -> None:
        life = self._random.getrandbits(32)  # of two lives, either may be the greater
        self.nodes[broker] = self._node(broker, life, is_first=is_first)

    def _node(self, broker: BrokerId, life: int, *, is_first: bool) -> Node:
        return Node(
            broker,
            life,
            self.plan,
            self.agenda,
            self.links,
            self.log,
            self._watcher,
            self._make,
            is_first=is_first,
        )

    def _note(self, fault: Fault) -> None:
        self.log.count(f"fault: {fault.kind.value}")
        self.log.tell(self.agenda.now, str(fault))

    def _begin(self, fault: Fault) -> None:
        self._note(fault)
        match fault:
            case Fault(FaultKind.DEATH):
                self._die(fault)
            case Fault(FaultKind.STILL):
                self._stand_still(fault)
            case Fault(FaultKind.CUT, broker, BrokerId() as other, _, int(end_ns)):
                self.links.cut(broker, other)
                self.agenda.at(end_ns, self.links.mend, broker, other)
            case Fault(FaultKind.ONE_WAY, broker, BrokerId() as other, _, int(end_ns)):
                self.links.silence(broker, other, end_ns)
            case Fault(kind, broker, BrokerId() as other, _, int(end_ns), strength):
                what = "slowness" if kind is FaultKind.SLOW else "loss"
                wire = self.links.wires[broker, other]
                self.agenda.at(end_ns, setattr, wire, what, getattr(wire, what))
                setattr(wire, what, strength)

    def _die(self, fault: Fault) -> None:
        node = self.nodes.pop(fault.broker, None)
        if node is None:  # it is dead already
            return
        node.is_dead = True
        for neighbour in self.plan.scot.neighbours(fault.broker):
            self.links.wires[fault.broker, neighbour].take_away()
            self.links.part(fault.broker, neighbour)
        for subscriber in self.subscribers:
            if subscriber.planned.host == fault.broker:
                subscriber.lost()
        if fault.end_ns is not None:
            self.agenda.at(fault.end_ns, self._start, fault.broker)
            return
        for publisher in self.publishers:
            if publisher.host == fault.broker:
                publisher.end()

    def _stand_still(self, fault: Fault) -> None:
        node = self.nodes.get(fault.broker)
        if node is None or node.is_still or fault.end_ns is None:
            return
        node.is_still = True
        self.agenda.at(fault.end_ns, self._go_on, node)
        if fault.length_ns > self.plan.silence_ns:
            for neighbour in self.plan.scot.neighbours(fault.broker):
                self.agenda.after(self.plan.silence_ns, self.links.part, fault.broker, neighbour)

    def _go_on(self, node: Node) -> None:
        if not node.is_dead:
            node.go_on(looks_first=self._random.random() < 0.5)

    def _calm(self) -> None:
        """Let no link lose anything more."""
        self.log.tell(self.agenda.now, "all faults are over")
        for wire in self.links.wires.values():
            wire.loss = wire.doubling = 0
            wire.slowness = 1

    def unrest(self) -> str:
        """Say what is not at rest; nothing, if all is."""
        if not self.links.are_at_rest:
            return "links are not"
        for publisher in self.publishers:
            if not publisher.is_done:
                return f"a publisher at {publisher.host} is not"
        for node in self.nodes.values():
            sender, receiver = node.channels.sender, node.channels.receiver
            if sender.kept or receiver.held:
                return f"{node.id} keeps {sender.kept}, and {receiver.held} wait there"
            if not receiver.is_quiet:
                return f"{node.id} has something to say"
            for channel in sender.channels:
                target = self.plan.scot.brokers[channel.place]
                if target in self.nodes and not channel.is_quiet:
                    return f"the channel from {node.id} to {target} is not"
        return ""
