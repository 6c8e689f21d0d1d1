"""Hurts every broker that hosts nobody, in turn, while notifications flow between the others.

Each is killed and started again, a link of each is cut, and some stand still for a while and go on.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import msgspec
import numpy as np

from octopis.benchmarks.channels.clients import Publisher, Subscriber
from octopis.benchmarks.channels.logs import KINDS, Verdict, Wants, longest_silences
from octopis.benchmarks.channels.stage import Memory, Stage, stage
from octopis.benchmarks.live.roles import overlay_named
from octopis.core.model import BrokerId
from octopis.core.topology import SCOT
from octopis.errors import InvalidConfiguration

HOSTS = 5
PUBLISHERS_AT = (0, 3)
"""Which of the hosts have publishers; the others have subscribers."""

_EACH = 2
_DEAD_S = 1.0
_AFTER_S = 0.7
_BACK_S = 60.0
_WARM_UP_S = 2.0
_NOTICED_S = 6.0
"""So long a broker stands still until all neighbours have noticed."""

KILLED, CUT, STILL = "killed", "link cut", "stands still"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How the trial is run; faults go on in turn until it is over, each at least once."""

    overlay: str = "figure-3"
    seconds: float = 120.0
    rate: float = 2_000.0
    """Notifications that are published in a second, in all."""

    still_s: float = 30.0
    """How long one broker stands still, once; others for so long that it is noticed."""

    kills_max: int | None = None
    """Kill so many at least, and not all."""

    limits: dict[str, float] = {}


class Fault(msgspec.Struct, frozen=True):
    """What happens to whom, and for how long."""

    what: str
    brokers: tuple[BrokerId, ...]
    seconds: float

    def __str__(self) -> str:
        named = " - ".join(broker.short for broker in self.brokers)
        return f"{self.what}: {named}" + (f", {self.seconds:g} s" if self.what == STILL else "")


class Silence(msgspec.Struct):
    """How long at most subscribers heard nothing of a publisher around faults of a kind.

    Of each fault, each subscriber and each publisher the longest counts.
    """

    what: str
    times: int
    p50_s: float
    p99_s: float
    max_s: float


class FaultsFound(msgspec.Struct):
    """What came of it."""

    verdict: Verdict
    seconds: float
    rate: float
    silences: list[Silence]
    figures: dict[str, int]
    """What channels counted, at the brokers that live at the end."""

    memory_early: Memory
    memory_late: Memory

    @property
    def breaches(self) -> list[str]:
        """What should not have been."""
        return self.verdict.breaches


def hosts_in(scot: SCOT) -> list[BrokerId]:
    """Return the brokers that have clients: in all clusters, from one end to the other."""
    count = len(scot.brokers)
    if count <= HOSTS:
        raise InvalidConfiguration(
            f"an overlay of {count} brokers is too small: {HOSTS} have clients, others are hurt"
        )
    return [scot.brokers[number * (count + 1) // HOSTS] for number in range(HOSTS)]


def faults_for(scot: SCOT, hosts: Sequence[BrokerId], plan: Plan) -> list[Fault]:
    """Return each fault once: kills, each with a cut, then those that stand still."""
    free = [broker for broker in scot.brokers if broker not in hosts]
    found: list[Fault] = []
    for number, broker in enumerate(free[: plan.kills_max]):
        neighbours = scot.neighbours(broker)
        found.append(Fault(KILLED, (broker,), _DEAD_S))
        found.append(Fault(CUT, (broker, neighbours[number % len(neighbours)]), 0.0))
    found.append(Fault(STILL, (free[len(free) // 2],), plan.still_s))
    if plan.still_s > _NOTICED_S:
        found.append(Fault(STILL, (free[0],), _NOTICED_S))
    return found


async def run(plan: Plan, folder: Path, tell: Callable[[str], None]) -> FaultsFound:
    """Run the trial; logs are left in `folder`, and `tell` is called with what happens."""
    scot = overlay_named(plan.overlay)
    hosts = hosts_in(scot)
    faults = faults_for(scot, hosts, plan)
    publishers = [
        Publisher(f"p{at}-{each}", hosts[at].short, plan.rate / len(PUBLISHERS_AT) / _EACH)
        for at in PUBLISHERS_AT
        for each in range(_EACH)
    ]
    names = tuple(each.name for each in publishers)
    subscribers = [
        Subscriber(f"s{at}-{each}", hosts[at].short, wants)
        for at in range(HOSTS)
        if at not in PUBLISHERS_AT
        for each, wants in enumerate(_wants(at, names))
    ]
    async with stage(
        plan.overlay, folder, publishers, subscribers, {"limits": plan.limits}
    ) as found:
        await found.publishing.tell("go")
        start = time.monotonic()
        await asyncio.sleep(_WARM_UP_S)
        done = await _hurt(found, faults, start + plan.seconds, tell)
        end = time.monotonic()
        await found.finish()
        finished = time.monotonic()
        tell(f"{end - start:.0f} s of faults are over; all has come that comes")
        figures = await found.figures()
    verdict = found.verdict()
    middle = (start + end) / 2
    return FaultsFound(
        verdict=verdict,
        seconds=end - start,
        rate=verdict.accepted / (end - start),
        silences=_silences(found, done, finished),
        figures=figures,
        memory_early=found.memory(start, middle),
        memory_late=found.memory(middle, end),
    )


def _wants(at: int, names: tuple[str, ...]) -> tuple[Wants, ...]:
    """Return what subscribers of a host want: half of everything, and all of two publishers."""
    low = at % (KINDS // 2)
    some = (names[at % len(names)], names[(at + 2) % len(names)])
    return Wants(names, (low, low + KINDS // 2)), Wants(some)


async def _hurt(
    found: Stage, faults: Sequence[Fault], until: float, tell: Callable[[str], None]
) -> list[tuple[Fault, float]]:
    """Do every fault in turn, again until the time is over; return when each began."""
    done: list[tuple[Fault, float]] = []
    for number, fault in enumerate(cycle(faults)):
        if number >= len(faults) and time.monotonic() + fault.seconds >= until:
            break
        done.append((fault, time.monotonic()))
        await _hurt_once(found, fault)
        await asyncio.sleep(_AFTER_S)
        got = sum((await found.reading.tell("look")).values())
        accepted = sum((await found.publishing.tell("look")).values())
        tell(f"{fault}; {accepted:,} accepted, {got:,} deliveries so far")
    while (left := until - time.monotonic()) > 0:
        await asyncio.sleep(min(left, 1.0))
    return done


async def _hurt_once(found: Stage, fault: Fault) -> None:
    brokers, broker = found.brokers, fault.brokers[0]
    if fault.what == CUT:
        await brokers.cut(*fault.brokers)
    elif fault.what == KILLED:
        await brokers.kill(broker)
        await asyncio.sleep(fault.seconds)
        await brokers.start(broker)
    else:
        await brokers.stop(broker)
        await asyncio.sleep(fault.seconds)
        await brokers.go_on(broker)
    await found.brokers.is_back(broker, _BACK_S)


def _silences(found: Stage, done: Sequence[tuple[Fault, float]], finished: float) -> list[Silence]:
    got = list(found.got().values())
    ends = [start for _, start in done[1:]] + [finished]
    longest: dict[str, list[list[float]]] = {}
    for (fault, start), end in zip(done, ends, strict=True):
        longest.setdefault(fault.what, []).append(longest_silences(got, start, end))
    sums = []
    for what, each in longest.items():
        of_all = [seconds for one in each for seconds in one]
        p50_s, p99_s = np.percentile(of_all, (50, 99))
        sums.append(Silence(what, len(each), float(p50_s), float(p99_s), max(of_all)))
    return sums
