"""Runs what a seed says, checks the laws, and says how it went."""

import gc

import msgspec

from octopis.core.delivery.channels import Channels
from octopis.core.delivery.lasting.channels import LastingChannels
from octopis.simulator.soak.checks import Afterwards, OnTheWay
from octopis.simulator.soak.disk_checks import DiskLaws
from octopis.simulator.soak.disk_plan import disk_plan_of
from octopis.simulator.soak.disk_world import DiskWorld
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


def run_seed(
    seed: int, make: MakeChannels | None = None, *, disk: bool = False, tells: bool = False
) -> Outcome:
    """Run what a seed says, and check it; `tells`: with its story in words.

    `disk`: all brokers have a disk; a seed means something else then.

    `make` makes the channels of a broker: in tests, such as have a fault.
    """
    is_collecting = gc.isenabled()
    gc.disable()  # a run is short, and makes much that stays until its end
    try:
        return _run(seed, make, disk=disk, tells=tells)
    finally:
        if is_collecting:
            gc.enable()


def _run(seed: int, make: MakeChannels | None, *, disk: bool, tells: bool) -> Outcome:
    plan = disk_plan_of(seed) if disk else plan_of(seed)
    log = Log(tells=tells)
    laws = OnTheWay(plan, log)
    make = make or (LastingChannels if disk else Channels)
    world = DiskWorld(plan, log, laws, make) if disk else World(plan, log, laws, make)
    agenda = world.agenda
    laws.now = lambda: agenda.now
    last_burst_ns = max(publisher.bursts[-1][0] for publisher in plan.publishers)
    calm_ns = max(plan.end_ns, last_burst_ns)
    agenda.run_until(calm_ns)
    while (unrest := world.unrest()) and not log.violations:
        if agenda.now > calm_ns + _REST_MAX_NS:
            log.violated(agenda.now, "rest", unrest)
            break
        agenda.run_until(agenda.now + _STEP_NS)
    Afterwards(plan, log, world.nodes, agenda.now).check(world.publishers, world.subscribers)
    if isinstance(world, DiskWorld):
        DiskLaws(log, agenda.now, world.settled).check(world.subscribers, world.readers)
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
