"""A simulated overlay whose brokers have disks, and lose their power."""

from collections.abc import Callable
from random import Random
from typing import cast

from octopis.core.delivery.lasting.channels import LastingChannels
from octopis.core.model import BrokerId
from octopis.simulator.soak.disk import Disk
from octopis.simulator.soak.disk_checks import Settled
from octopis.simulator.soak.disk_clients import LastingPublisher, Reader
from octopis.simulator.soak.disk_node import DiskNode
from octopis.simulator.soak.log import Log
from octopis.simulator.soak.node import MakeChannels, Node, Watcher
from octopis.simulator.soak.plan import MS, Fault, FaultKind, Plan
from octopis.simulator.soak.world import World

_LOOK_NS = 20 * MS


class DiskWorld(World):
    """Everything in a run where brokers have disks."""

    def __init__(
        self, plan: Plan, log: Log, watcher: Watcher, make: MakeChannels = LastingChannels
    ) -> None:
        self._disk_random = random = Random(plan.seed + 3)  # noqa: S311 - runs must repeat
        self.disks = {broker: Disk(random.getrandbits(32)) for broker in plan.scot.brokers}
        super().__init__(plan, log, watcher, make)
        nodes = cast("dict[BrokerId, DiskNode]", self.nodes)
        self.readers = [
            Reader(each, self.agenda, log, nodes, Random(plan.seed + 4 + place))  # noqa: S311
            for place, each in enumerate(plan.durables)
        ]
        self.settled = Settled(self.disks, self.readers)
        self.agenda.after(_LOOK_NS, self._look)

    def _make_publishers(self) -> list[LastingPublisher]:  # type: ignore[override]
        nodes = cast("dict[BrokerId, DiskNode]", self.nodes)
        shared = self.plan.scot, self.agenda, self.log, nodes
        return [LastingPublisher(each, *shared) for each in self.plan.publishers]

    def _node(self, broker: BrokerId, life: int, *, is_first: bool) -> Node:
        about = broker, life, self.agenda, self.links, self.log, self._watcher
        return DiskNode(
            *about,
            plan=self.plan,
            make=cast("Callable[..., LastingChannels]", self._make),
            disk=self.disks[broker],
            random=self._disk_random,
            is_first=is_first,
        )

    def _begin(self, fault: Fault) -> None:
        if fault.end_ns is not None and fault.kind is FaultKind.SLOW_DISK:
            self.disks[fault.broker].slow_until_ns = fault.end_ns
        elif fault.end_ns is not None and fault.kind is FaultKind.FULL_DISK:
            self.disks[fault.broker].full_until_ns = fault.end_ns
        else:
            super()._begin(fault)
            return
        self._note(fault)

    def _die(self, fault: Fault) -> None:
        node = self.nodes.get(fault.broker)
        if node is not None:
            lost = cast("DiskNode", node).store.lose_power()
            self.log.count("lost with the power", lost)
        super()._die(fault)

    def _look(self) -> None:
        self.settled.look(self.agenda.now)
        self.agenda.after(_LOOK_NS, self._look)

    def _calm(self) -> None:
        super()._calm()
        for reader in self.readers:
            reader.hurry()

    def unrest(self) -> str:
        """Say what is not at rest; nothing, if all is."""
        found = super().unrest()
        if found:
            return found
        for reader in self.readers:
            if not reader.is_done:
                return f"the reader of {reader.planned.name} is not"
        for broker in self.plan.scot.brokers:
            if broker not in self.nodes:
                return f"{broker} is not there"
            store = cast("DiskNode", self.nodes[broker]).store
            if store.live_bytes or store.reclaimable or not store.is_synced:
                return f"the disk of {broker} is not: {store.live_bytes} bytes are needed"
        return ""
