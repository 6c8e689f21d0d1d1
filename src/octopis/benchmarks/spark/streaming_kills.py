"""`octopis bench streaming-kills`: a stream that is read and written back while everything dies.

Numbered notifications go through Spark into a table, and back into the overlay to a durable
subscriber. Meanwhile the driver is killed with all its processes, brokers are killed, and workers
of Python's are, at random moments. In the end both have every number once.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import msgspec
import uvloop

from octopis.benchmarks.kills.brokers import MortalBrokers, mortal_brokers
from octopis.benchmarks.spark.streaming_driver import Options
from octopis.client.client import connect
from octopis.errors import OperationFailed

_TRIGGERS = 3
"""So many batches are made of what is published before each blow."""

_PUBLISHED_AT_ONCE = 2_000
_STARTS_MAX = 5
_WAIT_S = 30.0
Tell = Callable[[str], object]


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


@dataclass(frozen=True)
class Held:
    """What somebody has in the end: how many, how many different ones, and their doubles' sum."""

    rows: int
    different: int
    sum: int


@dataclass(frozen=True)
class Outcome:
    """What was wanted, and what there is."""

    wanted: Held
    table: Held
    written: Held
    blows: str
    took_s: float

    @property
    def is_exact(self) -> bool:
        """Whether nothing is lost, and nothing is there twice."""
        return self.table == self.written == self.wanted


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
        driver = _Driver(options, folder, tell)
        try:
            await _strike(plan, brokers, driver, tell)
            table = await asyncio.to_thread(driver.finish)
        finally:
            driver.end()
        written = await _read(there, plan.notifications)
    numbers = range(plan.notifications)
    wanted = Held(len(numbers), len(numbers), 2 * sum(numbers))
    blows = (
        f"killed: {plan.drivers} drivers, {plan.brokers} brokers, {plan.workers} workers; "
        f"{driver.failures} queries failed besides"
    )
    return Outcome(wanted, table, written, blows, time.monotonic() - begun)


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


async def _strike(plan: Plan, brokers: MortalBrokers, driver: "_Driver", tell: Tell) -> None:
    """Publish all, a part before each blow, so that there is always something under way."""
    chance = Random(plan.seed)  # noqa: S311 - no secret
    blows = ["driver"] * plan.drivers + ["broker"] * plan.brokers + ["worker"] * plan.workers
    chance.shuffle(blows)
    there = brokers.addresses[brokers.scot.brokers[1]]
    step = plan.step
    parts = [range(plan.notifications)[at : at + step] for at in range(0, plan.notifications, step)]
    for blow, part in zip(blows, parts, strict=False):  # the last part comes after all blows
        await asyncio.to_thread(driver.running)
        publishing = asyncio.create_task(_publish(there, part))
        await asyncio.sleep(chance.uniform(0.2, 3.0))
        await _blow(blow, brokers, driver, chance)
        tell(f"killed a {blow}")
        await publishing
    for part in parts[len(blows) :]:
        await _publish(there, part)


async def _blow(blow: str, brokers: MortalBrokers, driver: "_Driver", chance: Random) -> None:
    if blow == "driver":
        driver.kill()
    elif blow == "worker":
        driver.kill_worker(chance)
    else:
        victim = chance.choice(brokers.scot.brokers)
        await brokers.kill(victim)
        await asyncio.sleep(chance.uniform(0.1, 1.5))
        await brokers.start(victim)


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


class _Driver:
    """Spark's driver, started again whenever it has ended."""

    def __init__(self, options: Options, folder: Path, tell: Tell) -> None:
        words = msgspec.json.encode(options).decode()
        self._command = [sys.executable, "-m", "octopis.benchmarks.spark.streaming_driver", words]
        self._folder, self._tell = folder, tell
        self._process: subprocess.Popen[str] | None = None
        self._is_over = False
        self.failures = 0

    def running(self) -> "subprocess.Popen[str]":
        """Return the driver once its queries run."""
        for _ in range(_STARTS_MAX):
            if self._is_over:  # whoever waits in a thread must not start another
                raise OperationFailed("the driver was ended")
            if self._process is not None:
                if self._process.poll() is None:
                    return self._process
                self._failed()  # a query of its has, since it was looked at
            self._process = self._start()
            assert self._process.stdout is not None
            if self._process.stdout.readline():
                return self._process
            self._failed()
        raise OperationFailed(f"Spark does not start: {self._said()}")

    def _start(self) -> "subprocess.Popen[str]":
        (self._folder / "tmp").mkdir(exist_ok=True)
        with (self._folder / "driver.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own command
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "TMPDIR": str(self._folder / "tmp")},
            )

    def finish(self) -> Held:
        """Let the driver take all that is there, and return what the table holds."""
        for _ in range(_STARTS_MAX):
            told, _ = self.running().communicate()
            if told:
                return Held(*msgspec.json.decode(told, type=list[int]))
            self._failed()
        raise OperationFailed(f"Spark does not finish: {self._said()}")

    def _failed(self) -> None:
        self.failures += 1
        self._tell(f"the driver has failed: {self._said()}")
        self.kill()

    def _said(self) -> str:
        lines = (self._folder / "driver.log").read_text(encoding="utf-8").splitlines()
        return lines[-1] if lines else "it says nothing"

    def end(self) -> None:
        """End it for good."""
        self._is_over = True
        self.kill()

    def kill(self) -> None:
        """End it at once, with its Java and all of its workers, as a machine that fails."""
        if self._process is not None:
            for each in [self._process.pid, *_below(self._process.pid)]:
                _end(each)
            self._process.communicate()
            self._process = None

    def kill_worker(self, chance: Random) -> None:
        """End one process of Python's that works for it."""
        assert self._process is not None
        below = _below(self._process.pid)
        parents = {pid for pid in below if "pyspark.daemon" in _words(pid)}
        workers = [pid for pid in parents if _parent(pid) in parents]
        if workers:
            _end(chance.choice(sorted(workers)))


def _end(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return


def _below(process: int) -> list[int]:
    """Return all processes that one has started, and those that these have."""
    parents: dict[int, list[int]] = {}
    for pid in _processes():
        parents.setdefault(_parent(pid), []).append(pid)
    found = [process]
    for each in found:  # it grows meanwhile
        found += parents.get(each, [])
    return found[1:]


def _processes() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _parent(process: int) -> int:
    try:
        about = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(about.rpartition(")")[2].split()[1])


def _words(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
