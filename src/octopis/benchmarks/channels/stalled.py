"""Lets one of twenty subscribers at a broker read nothing, and looks at the nineteen others.

Two publishers elsewhere: what one of them says is for all, what the other says for the nineteen.
By default (`drop_oldest`) nobody waits. Where the policy is `pause`, the first of them has to wait,
and the other must not.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from octopis.benchmarks.channels.clients import Publisher, Subscriber
from octopis.benchmarks.channels.logs import Verdict, Wants, rate
from octopis.benchmarks.channels.stage import Stage, stage
from octopis.benchmarks.live.roles import overlay_named
from octopis.broker.settings import ClientPolicy
from octopis.core.model import BrokerId

OTHERS = 19
SHARE_MIN = 0.95
WAITS_SHARE_MAX = 0.5
"""Who waits for the stalled one has less than that of its rate."""

FOR_ALL, FOR_OTHERS = "for-all", "for-others"
STALLED = "stalled"
_WARM_UP_S = 2.0
_WINDOW = 100
_STALL_S = 600.0
"""Nobody is sent away meanwhile: that would help the others."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How the trial is run."""

    overlay: str = "figure-3"
    policy: ClientPolicy = ClientPolicy.DROP_OLDEST
    before_s: float = 10.0
    seconds: float = 15.0
    rate: float = 400.0
    """What is published in a second, in all."""

    queue: int = 500
    """So much waits for a subscriber before its policy acts: little, so that it soon does."""


class StalledFound(msgspec.Struct):
    """What came of it: rates in a second, of what was accepted, and of what came to the others."""

    policy: ClientPolicy
    verdict: Verdict
    accepted_before: dict[str, float]
    accepted_while: dict[str, float]
    came_before: dict[str, float]
    came_while: dict[str, float]
    behind: int
    """What waited for the stalled one at the end, or was dropped for it."""

    @property
    def shares(self) -> dict[str, float]:
        """What of each publisher's rate came to the others while one was stalled."""
        return {name: self.came_while[name] / was for name, was in self.came_before.items()}

    @property
    def breaches(self) -> list[str]:
        """What should not have been."""
        found = self.verdict.breaches
        waits = self.policy is ClientPolicy.PAUSE
        for name in (FOR_OTHERS,) if waits else (FOR_ALL, FOR_OTHERS):
            if self.shares[name] < SHARE_MIN:
                found.append(f"what is {name} came at {self.shares[name]:.0%} of its rate")
        if waits and self.shares[FOR_ALL] > WAITS_SHARE_MAX:
            found.append("nobody waited for the stalled one")
        if not self.behind:
            found.append("the stalled one was not behind: nothing was tried")
        return found


async def run(plan: Plan, folder: Path, tell: Callable[[str], None]) -> StalledFound:
    """Run the trial; logs are left in `folder`."""
    brokers = overlay_named(plan.overlay).brokers
    host, away = brokers[-1].short, brokers[0].short
    publishers = [Publisher(name, away, plan.rate / 2) for name in (FOR_ALL, FOR_OTHERS)]
    others = [
        Subscriber(f"reader-{number}", host, Wants((FOR_ALL, FOR_OTHERS)))
        for number in range(OTHERS)
    ]
    stalled = Subscriber(STALLED, host, Wants((FOR_ALL,)), reads=False, window=_WINDOW)
    is_pause = plan.policy is ClientPolicy.PAUSE
    queues = {
        "policy": plan.policy.value,
        "high_water": plan.queue,
        "capacity": 100 * plan.queue if is_pause else plan.queue,
    }
    settings = {"client_queues": queues, "limits": {"stall_s": _STALL_S}}
    async with stage(plan.overlay, folder, publishers, others, settings) as found:
        await found.publishing.tell("go")
        await asyncio.sleep(_WARM_UP_S)
        start = time.monotonic()
        await asyncio.sleep(plan.before_s)
        end = time.monotonic()
        async with found.clients(subscribers=[stalled]):
            await found.brokers.settled()
            # From when its queue is full on, who has to wait does.
            await asyncio.sleep((_WINDOW + plan.queue) / (plan.rate / 2) + 1.0)
            tell(
                f"{plan.policy.value}: one of {OTHERS + 1} has read nothing, and its queue is full"
            )
            begun = time.monotonic()
            await asyncio.sleep(plan.seconds)
            over = time.monotonic()
            behind = await _behind(found, brokers[-1])
        await found.finish()
    accepted, got = found.accepted(), found.got()
    came = {
        name: sorted(at for each in got.values() for at in each.times.get(name, []))
        for name in (FOR_ALL, FOR_OTHERS)
    }
    said = {name: accepted[name].times for name in (FOR_ALL, FOR_OTHERS)}
    return StalledFound(
        policy=plan.policy,
        verdict=found.verdict(),
        accepted_before={name: rate(some, start, end) for name, some in said.items()},
        accepted_while={name: rate(some, begun, over) for name, some in said.items()},
        came_before={name: rate(some, start, end) for name, some in came.items()},
        came_while={name: rate(some, begun, over) for name, some in came.items()},
        behind=behind,
    )


async def _behind(found: Stage, host: BrokerId) -> int:
    """Return how far behind the stalled one is, by its broker's word."""
    client = (await found.brokers.status(host))[host.short]["clients"][STALLED]
    return int(client["queue_length"] + client["dropped"])
