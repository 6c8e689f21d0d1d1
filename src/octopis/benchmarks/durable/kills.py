"""Kills every broker of an overlay that keeps things on disk, again and again, under load.

Publishers and durable subscribers are at several brokers, which die as all others do. Now and then
all brokers die at the same moment, one stands still and goes on, or a subscriber is killed. What
publishers were told, and what subscribers have taken, is compared at the end.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec

from octopis.benchmarks.channels.clients import Publisher
from octopis.benchmarks.channels.logs import KINDS, Wants
from octopis.benchmarks.durable.logs import DurableVerdict, judge, read_lives, read_said
from octopis.benchmarks.durable.stage import Stage, Subscriber, stage
from octopis.benchmarks.kills.witnesses import spread
from octopis.benchmarks.live.roles import overlay_named
from octopis.core.model import BrokerId

PUBLISHERS = 6
SUBSCRIBERS = 4
_PATIENCE_S = 60.0
"""What has not come when nothing came for so long, will not come."""

_LOOK_S = 1.0
_BACK_S = 120.0
KILLED, ALL_KILLED, STILL, SUBSCRIBER = "killed", "all killed", "stands still", "subscriber killed"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How the trial is run."""

    overlay: str = "figure-3"
    rounds: int = 20
    """How often each broker is killed."""

    all_kills: int = 5
    """How often all are killed at the same moment."""

    stills: int = 2
    still_s: float = 30.0
    """How often, and how long, one stands still."""

    subscriber_kills: int = 20
    accepted_min: int = 1_000_000
    rate: float = 2_000.0
    """Notifications that are published in a second, in all."""

    pause_s: float = 1.0
    """Between two blows."""

    quota_bytes: int = 256 * 2**20
    limits: dict[str, float] = {}
    seed: int = 1


class KillsFound(msgspec.Struct):
    """What came of it."""

    verdict: DurableVerdict
    seconds: float
    rate: float
    blows: dict[str, int]
    back_s_max: float
    """From the start of a broker until it took requests and had all its links."""

    @property
    def breaches(self) -> list[str]:
        """What should not have been."""
        return self.verdict.breaches


async def run(plan: Plan, folder: Path, tell: Callable[[str], None]) -> KillsFound:
    """Run the trial; logs are left in `folder`, and `tell` is called with what happens."""
    brokers = overlay_named(plan.overlay).brokers
    publishers = [
        Publisher(f"p{number}", at.short, plan.rate / PUBLISHERS, payload=100)
        for number, at in enumerate(spread(brokers, PUBLISHERS, 0))
    ]
    names = tuple(each.name for each in publishers)
    half = KINDS // 2
    subscribers = [
        Subscriber(f"s{number}", at, Wants(names, (number % half, number % half + half)))
        for number, at in enumerate(spread(brokers, SUBSCRIBERS, 2))
    ]
    settings = {
        "durability": {"folder": str(folder / "disk"), "quota_bytes": plan.quota_bytes},
        "limits": plan.limits,
    }
    async with stage(plan.overlay, folder, publishers, subscribers, settings) as found:
        await found.go()
        begun = time.monotonic()
        trial = _Trial(plan, found, tell)
        await trial.run(list(brokers), [each.name for each in subscribers])
        while trial.accepted() < plan.accepted_min:
            await asyncio.sleep(_LOOK_S)
        seconds = time.monotonic() - begun
        await found.stop()
        verdict = await _finished(found, folder, publishers, subscribers)
    return KillsFound(
        verdict=verdict,
        seconds=seconds,
        rate=verdict.accepted / seconds,
        blows=trial.blows,
        back_s_max=trial.back_s_max,
    )


class _Trial:
    """The blows, one after the other."""

    def __init__(self, plan: Plan, found: Stage, tell: Callable[[str], None]) -> None:
        self._plan = plan
        self._found = found
        self._tell = tell
        self._random = Random(plan.seed)  # noqa: S311 - whom it hits next is no secret
        self.blows = dict.fromkeys((KILLED, ALL_KILLED, STILL, SUBSCRIBER), 0)
        self.back_s_max = 0.0

    async def run(self, brokers: list[BrokerId], subscribers: list[str]) -> None:
        """Strike as often as the plan says, the rarer blows between the others."""
        for what, whom in self._agenda(brokers, subscribers):
            self.blows[what] += 1
            await self._strike(what, whom)
            self._tell(
                f"{what}: {', '.join(map(str, whom)) if len(whom) == 1 else len(whom)}; "
                f"{self.accepted():,} accepted so far"
            )
            await asyncio.sleep(self._plan.pause_s)

    def _agenda(
        self, brokers: list[BrokerId], subscribers: list[str]
    ) -> Iterator[tuple[str, Sequence[BrokerId | str]]]:
        plan = self._plan
        singles = []
        for _ in range(plan.rounds):
            self._random.shuffle(brokers)
            singles += brokers
        others: list[tuple[str, Sequence[BrokerId | str]]] = []
        others += [(ALL_KILLED, tuple(brokers))] * plan.all_kills
        others += [(STILL, (self._random.choice(brokers),)) for _ in range(plan.stills)]
        for number in range(plan.subscriber_kills):
            others.append((SUBSCRIBER, (subscribers[number % len(subscribers)],)))
        self._random.shuffle(others)
        every = max(1, len(singles) // (len(others) + 1))
        for number, broker in enumerate(singles, start=1):
            yield KILLED, (broker,)
            if number % every == 0 and others:
                yield others.pop()
        yield from others

    async def _strike(self, what: str, whom: Sequence[BrokerId | str]) -> None:
        found = self._found
        if what == SUBSCRIBER:
            await found.kill_subscriber(str(whom[0]))
            return
        brokers = [each for each in whom if isinstance(each, BrokerId)]
        begun = time.monotonic()
        if what == STILL:
            await found.brokers.stop(brokers[0])
            await asyncio.sleep(self._plan.still_s)
            begun = time.monotonic()
            await found.brokers.go_on(brokers[0])
        else:
            for each in brokers:
                await found.brokers.kill(each)
            for each in brokers:
                await found.brokers.start(each)
        if len(brokers) > 1 or self._random.random() < 0.8:  # else the next one dies meanwhile
            for each in brokers:
                await found.brokers.is_back(each, _BACK_S)
            self.back_s_max = max(self.back_s_max, time.monotonic() - begun)

    def accepted(self) -> int:
        """Return how much was accepted so far."""
        return self._found.accepted()


async def _finished(
    found: Stage,
    folder: Path,
    publishers: Sequence[Publisher],
    subscribers: Sequence[Subscriber],
) -> DurableVerdict:
    """Wait for all that was accepted, not for what does not come; return what the logs say."""
    wants = {each.name: each.wants for each in subscribers}
    said = {each.name: read_said(folder / f"{each.name}.said") for each in publishers}
    moved, before = time.monotonic(), -1
    while True:
        verdict = judge(wants, said, {name: read_lives(folder, name) for name in wants})
        if verdict.lost != before:
            moved, before = time.monotonic(), verdict.lost
        if not verdict.lost or time.monotonic() - moved > _PATIENCE_S:
            verdict.notes = found.notes()
            return verdict
        await asyncio.sleep(_LOOK_S)
