"""Runs what a seed says, checks the laws, and says how it went."""

import gc

import msgspec

from octopis.core.delivery.channels import Channels
from octopis.simulator.soak.checks import Afterwards, OnTheWay
from octopis.simulator.soak.log import Log
from octopis.simulator.soak.node import MakeChannels
from octopis.simulator.soak.plan import MS, plan_of
from octopis.simulator.soak.world import World

_STEP_NS = 50 * MS
_REST_MAX_NS = 60_000 * MS
"""So long after the last fault and the last publication everything is at rest: some timeouts, where
queues of two or three messages drop most of what is sent again."""


class Outcome(msgspec.Struct, frozen=True):
    """How a run went. Two runs of a seed have the same digest."""

    seed: int
    kind: str
    brokers: int
    notifications: int
    deliveries: int
    counts: dict[str, int]
    virtual_s: float
    actions: int
    digest: str
    violations: list[str]
    story: list[tuple[int, str]] = []


def run_seed(seed: int, make: MakeChannels = Channels, *, tells: bool = False) -> Outcome:
    """Run what a seed says, and check it; `tells`: with its story in words.

    `make` makes the channels of a broker: in tests, such as have a fault.
    """
    is_collecting = gc.isenabled()
    gc.disable()  # a run is short, and makes much that stays until its end
    try:
        return _run(seed, make, tells=tells)
    finally:
        if is_collecting:
            gc.enable()


def _run(seed: int, make: MakeChannels, *, tells: bool) -> Outcome:
    plan = plan_of(seed)
    log = Log(tells=tells)
    laws = OnTheWay(plan, log)
    world = World(plan, log, laws, make)
    agenda = world.agenda
    laws.now = lambda: agenda.now
    last_burst_ns = max(publisher.bursts[-1][0] for publisher in plan.publishers)
    calm_ns = max(plan.end_ns, last_burst_ns)
    agenda.run_until(calm_ns)
    while not _is_at_rest(world) and not log.violations:
        if agenda.now > calm_ns + _REST_MAX_NS:
            log.violated(agenda.now, "rest", _unrest(world))
            break
        agenda.run_until(agenda.now + _STEP_NS)
    Afterwards(plan, log, world.nodes, agenda.now).check(world.publishers, world.subscribers)
    log.note(agenda.now, sorted(log.counts.items()))
    return Outcome(
        seed,
        plan.kind.value,
        len(plan.scot.brokers),
        len(log.accepted),
        len(log.delivered),
        dict(sorted(log.counts.items())),
        agenda.now / 1e9,
        agenda.actions,
        log.digest,
        log.violations,
        log.story,
    )


def _is_at_rest(world: World) -> bool:
    return not _unrest(world)


def _unrest(world: World) -> str:
    """Say what is not at rest; nothing, if all is."""
    if not world.links.are_at_rest:
        return "links are not"
    for publisher in world.publishers:
        if not publisher.is_done:
            return f"a publisher at {publisher.host} is not"
    for node in world.nodes.values():
        sender, receiver = node.channels.sender, node.channels.receiver
        if sender.kept or receiver.held:
            return f"{node.id} keeps {sender.kept}, and {receiver.held} wait there"
        if not receiver.is_quiet:
            return f"{node.id} has something to say"
        for channel in sender.channels:
            target = world.plan.scot.brokers[channel.place]
            if target in world.nodes and not channel.is_quiet:
                return f"the channel from {node.id} to {target} is not"
    return ""
