"""Publishes ten times what the links to one broker carry, and looks at everybody else.

All links into the last broker of the overlay are shaped, so that there is no way around them. Those
who publish for others sit where the flood comes from, and elsewhere; and so do their subscribers,
one of them at the broker before the slow link.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from octopis.benchmarks.channels.clients import Publisher, Subscriber
from octopis.benchmarks.channels.logs import Verdict, Wants, rate
from octopis.benchmarks.channels.stage import Memory, stage
from octopis.benchmarks.live.roles import overlay_named
from octopis.errors import InvalidConfiguration

TIMES = 10
SHARE_MIN = 0.9
GROWTH_MB_MAX = 32.0
"""So much more, at most, the largest process has in the second half than in the first: level."""

_PAYLOAD = 800
_BYTES = 900
"""About what a notification of the flood takes on a link, with its header."""

_WARM_UP_S = 2.0
_BROKERS_MIN = 4


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How the trial is run."""

    overlay: str = "figure-3"
    before_s: float = 10.0
    seconds: float = 60.0
    drained: float = 200.0
    """What the slow links carry in a second, in all."""

    rate: float = 500.0
    """What is published for others in a second, in all."""


class OverloadFound(msgspec.Struct):
    """What came of it; rates are of notifications that were accepted, in a second."""

    verdict: Verdict
    offered: float
    flood_rate: float
    """Of the flood, what was accepted in a second while it lasted."""

    arrived_rate: float
    """Of the flood, what came over the slow links in a second, to the end."""

    rates_before: dict[str, float]
    rates_while: dict[str, float]
    figures: dict[str, int]
    memory_early: Memory
    memory_late: Memory

    @property
    def shares(self) -> dict[str, float]:
        """What publishers and subscribers elsewhere kept of their rates."""
        return {name: self.rates_while[name] / was for name, was in self.rates_before.items()}

    @property
    def breaches(self) -> list[str]:
        """What should not have been."""
        found = self.verdict.breaches
        for name, share in self.shares.items():
            if share < SHARE_MIN:
                found.append(f"{name} at {share:.0%} of the rate")
        growth_mb = self.memory_late.largest_mb - self.memory_early.largest_mb
        if growth_mb > GROWTH_MB_MAX:
            found.append(f"memory grew by {growth_mb:.0f} MB")
        if self.flood_rate > self.offered / 2:
            found.append("the flood was not held back: there was no overload")
        return found


async def run(plan: Plan, folder: Path, tell: Callable[[str], None]) -> OverloadFound:
    """Run the trial; logs are left in `folder`."""
    scot = overlay_named(plan.overlay)
    brokers = scot.brokers
    if len(brokers) < _BROKERS_MIN:
        raise InvalidConfiguration(f"overload needs an overlay of {_BROKERS_MIN} brokers or more")
    corner = brokers[-1]
    before_it = scot.neighbours(corner)
    away = brokers[len(brokers) // 2]
    shape = {"bandwidth_bytes_per_s": plan.drained * _BYTES / len(before_it)}
    flood = Publisher("flood", brokers[0].short, plan.drained * TIMES, _PAYLOAD)
    others = [
        Publisher("same-host", brokers[0].short, plan.rate / 2),
        Publisher("elsewhere", away.short, plan.rate / 2),
    ]
    wants = Wants(("same-host", "elsewhere"))
    readers = [
        Subscriber("before-the-link", before_it[0].short, wants),
        Subscriber("at-the-source", brokers[1].short, wants),
    ]
    corner_reads = Subscriber("corner", corner.short, Wants(("flood",)))
    settings = {"shapes": [(each.short, corner.short, shape) for each in before_it]}
    reading = [*readers, corner_reads]
    async with stage(plan.overlay, folder, [*others, flood], reading, settings) as found:
        await found.publishing.tell("go same-host elsewhere")
        await asyncio.sleep(_WARM_UP_S)
        start = time.monotonic()
        await asyncio.sleep(plan.before_s)
        begun = time.monotonic()
        tell(f"at peace for {begun - start:.0f} s; now {flood.rate:,.0f}/s for {corner}")
        await found.publishing.tell("go flood")
        await asyncio.sleep(plan.seconds)
        end = time.monotonic()
        tell(f"{end - begun:.0f} s of overload are over; what was accepted is waited for")
        await found.finish()
        figures = await found.figures()
    accepted, got = found.accepted(), found.got()
    times = {each.name: accepted[each.name].times for each in others}
    for each in readers:
        times[each.name] = [at for some in got[each.name].times.values() for at in some]
    arrived = got["corner"].times.get("flood", [begun])
    return OverloadFound(
        verdict=found.verdict(),
        offered=flood.rate,
        flood_rate=rate(accepted["flood"].times, begun, end),
        arrived_rate=len(arrived) / max(1e-9, arrived[-1] - begun),
        rates_before={name: rate(some, start, begun) for name, some in times.items()},
        rates_while={name: rate(some, begun, end) for name, some in times.items()},
        figures=figures,
        memory_early=found.memory(begun, (begun + end) / 2),
        memory_late=found.memory((begun + end) / 2, end),
    )
