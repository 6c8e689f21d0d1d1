"""`octopis bench streaming-kills`: a stream that is read and written back while everything dies.

Numbered notifications go through Spark into a table, and back into the overlay to a durable
subscriber. Meanwhile the driver is killed with all its processes, brokers are killed, and workers
of Python's are, at random moments: also before a driver that was started again has progressed. In
the end both have every number once.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import uvloop

from octopis.benchmarks.kills.brokers import MortalBrokers, mortal_brokers
from octopis.benchmarks.spark.mortal_driver import Held, MortalDriver, Tell
from octopis.benchmarks.spark.streaming_driver import Options
from octopis.client.client import connect

_TRIGGERS = 3
"""So many batches are made of what is published before each blow."""

_PUBLISHED_AT_ONCE = 2_000
_EARLY = 0.75
"""Of the blows that may come before any progress, so many do."""

_WAIT_S = 30.0


@dataclass(frozen=True)
class Plan:
    """How many notifications, and how often what is killed."""

    notifications: int
    drivers: int
    brokers: int
    workers: int
    seed: int = 1

    @property
    def step(self) -> int:
        """How many are published before each blow, and after the last."""
        return -(-self.notifications // (self.drivers + self.brokers + self.workers + 1))


@dataclass
class Blows:
    """How many blows of a kind have landed.

    An early one came between a start of the driver and the first progress of its queries, as while
    a batch was run again that was not finished. `missed` found nobody to hit.
    """

    early: int = 0
    later: int = 0
    missed: int = 0

    def __str__(self) -> str:
        """Say it in words."""
        missed = f", and {self.missed} found none" if self.missed else ""
        return f"{self.early + self.later} ({self.early} before any progress){missed}"


@dataclass(frozen=True)
class Outcome:
    """What was wanted, and what there is."""

    wanted: Held
    table: Held
    written: Held
    blows: dict[str, Blows]
    failures: int
    took_s: float

    @property
    def is_exact(self) -> bool:
        """Whether nothing is lost, and nothing is there twice."""
        return self.table == self.written == self.wanted

    @property
    def told(self) -> str:
        """What was done to it, in words."""
        blows = ", ".join(f"{kind}s {found}" for kind, found in self.blows.items())
        return f"killed: {blows}; {self.failures} queries failed besides"


def run(plan: Plan, tell: Tell) -> Outcome:
    """Kill as planned, and return what has arrived."""
    with TemporaryDirectory(prefix="octopis-bench-", ignore_cleanup_errors=True) as folder:
        return uvloop.run(_run(plan, Path(folder), tell))


async def _run(plan: Plan, folder: Path, tell: Tell) -> Outcome:
    begun = time.monotonic()
    settings = {"durability": {"folder": str(folder / "disk")}}
    async with mortal_brokers("line-2", "tnr", folder / "brokers.log", settings) as brokers:
        here, there = (brokers.addresses[each] for each in brokers.scot.brokers)
        await _subscribe(here, ("to-sink", "to-table"), "part = 'in'")
        await _subscribe(there, ("written",), "part = 'out'")
        options = Options(here, str(folder), -(-plan.step // _TRIGGERS))
        driver = MortalDriver(options, folder, tell)
        try:
            blows = await _strike(plan, brokers, driver, tell)
            table = await asyncio.to_thread(driver.finish)
        finally:
            driver.end()
        written = await _read(there, plan.notifications)
    numbers = range(plan.notifications)
    wanted = Held(len(numbers), len(numbers), 2 * sum(numbers))
    took_s = time.monotonic() - begun
    return Outcome(wanted, table, written, blows, driver.failures, took_s)


async def _subscribe(address: str, names: tuple[str, ...], condition: str) -> None:
    async with connect(address, retry_s=_WAIT_S) as client:
        for name in names:
            async with client.subscribe(condition, durable=name):
                await client.settled()


async def _publish(address: str, numbers: range) -> None:
    async with connect(address, retry_s=_WAIT_S) as client:
        for first in range(0, len(numbers), _PUBLISHED_AT_ONCE):
            part = numbers[first : first + _PUBLISHED_AT_ONCE]
            await client.publish_many([{"part": "in", "n": number} for number in part])


async def _strike(
    plan: Plan, brokers: MortalBrokers, driver: MortalDriver, tell: Tell
) -> dict[str, Blows]:
    """Publish all, a part with each blow, so that there is always something under way.

    Some blows do not wait until a driver that was started again has progressed. None of these
    follows another: so there is progress, and the run ends.
    """
    chance = Random(plan.seed)  # noqa: S311 - no secret
    landed = {"driver": Blows(), "broker": Blows(), "worker": Blows()}
    blows = ["driver"] * plan.drivers + ["broker"] * plan.brokers + ["worker"] * plan.workers
    chance.shuffle(blows)
    there = brokers.addresses[brokers.scot.brokers[1]]
    step = plan.step
    parts = [range(plan.notifications)[at : at + step] for at in range(0, plan.notifications, step)]
    waits = True
    for blow, part in zip(blows, parts, strict=False):  # the last part comes after all blows
        half = len(part) // 2
        await _publish(there, part[:half])  # so a driver that is started has something to do
        await asyncio.to_thread(driver.running, progressed=waits)
        publishing = asyncio.create_task(_publish(there, part[half:]))
        first_s = 0.0 if driver.has_progressed else driver.first_s
        await asyncio.sleep(chance.uniform(0, first_s) if first_s else chance.uniform(0.2, 3.0))
        has_progressed = driver.has_progressed
        has_landed = await _blow(blow, brokers, driver, chance)
        _count(landed[blow], has_landed=has_landed, has_progressed=has_progressed)
        when = "" if has_progressed else " before any progress"
        tell(f"killed a {blow}{when}" if has_landed else f"found no {blow}{when}")
        await publishing
        waits = not waits or chance.random() >= _EARLY
    for part in parts[len(blows) :]:
        await _publish(there, part)
    return landed


def _count(blows: Blows, *, has_landed: bool, has_progressed: bool) -> None:
    if not has_landed:
        blows.missed += 1
    elif has_progressed:
        blows.later += 1
    else:
        blows.early += 1


async def _blow(blow: str, brokers: MortalBrokers, driver: MortalDriver, chance: Random) -> bool:
    """Hit somebody; tell if there was anybody to hit."""
    if blow == "driver":
        return driver.kill()
    if blow == "worker":
        return await asyncio.to_thread(driver.kill_worker, chance)
    victim = chance.choice(brokers.scot.brokers)
    await brokers.kill(victim)
    await asyncio.sleep(chance.uniform(0.1, 1.5))
    await brokers.start(victim)
    return True


async def _read(address: str, count: int) -> Held:
    """Return what was written back, and wait for all of it, or until nothing more comes."""
    found: list[tuple[int, int]] = []
    async with connect(address, retry_s=_WAIT_S) as client:
        while True:
            wait_s = _WAIT_S if len(found) < count else 1.0
            batch = await client.read("written", len(found), wait_s=wait_s)
            if not batch.notifications:
                break
            rows = [each.attributes for each in batch.notifications]
            found += [(int(row["n"]), int(row["twice"])) for row in rows]
    return Held(len(found), len({number for number, _ in found}), sum(twice for _, twice in found))
