"""`octopis bench durable`: what it costs that accepted means on disk, and what one gets for it.

One broker, its publishers and its subscribers, each a process of its own over loopback. Next to
what is kept on disk stands what the same costs in memory, in the same run.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from octopis.benchmarks.processes import RoleProcess, free_ports, started_role

UNDER_WAY = 64
PROCESSES = 4
SUBSCRIPTIONS = 50
MEMORY, DISK, DURABLE = "memory", "disk", "disk, with a durable subscription to all"
_ROLES = "octopis.benchmarks.durable.roles"
_SYNCS = 500
_QUOTA_BYTES = 8 * 2**30
_READ_COUNT = 2_500

ACCEPTED = "accepted notifications/s"
ONE_AT_A_TIME = "ms until accepted, one at a time, median"
TARGETS = {
    (f"{UNDER_WAY} under way, 1 process", ACCEPTED): 40_000.0,
    (f"{UNDER_WAY} under way, {PROCESSES} processes", ACCEPTED): 40_000.0,
    ("start to ready", "s"): 15.0,
    ("catching up by a stream", "notifications/s"): 100_000.0,
    ("reading in batches", "notifications/s"): 200_000.0,
}
"""What we set out to reach on disk, on a 2-core machine: rates at least, times at most."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much is published and read."""

    folder: Path
    notifications: int = 200_000
    kept: int = 1_000_000
    """What nobody has acknowledged when the broker starts again."""

    bytes: int = 300
    seed: int = 1


class DurableFigure(msgspec.Struct, frozen=True):
    """One measured figure; `level` is where things are kept."""

    setting: str
    level: str
    value: float
    unit: str

    @property
    def target(self) -> float | None:
        """What it should be: a rate at least, a time at most."""
        return None if self.level == MEMORY else TARGETS.get((self.setting, self.unit))


def run(plan: Plan) -> Iterator[DurableFigure]:
    """Yield the figures as they are measured."""
    for setting, processes, each in (
        (f"{UNDER_WAY} under way, 1 process", 1, UNDER_WAY),
        (f"{UNDER_WAY} under way, {PROCESSES} processes", PROCESSES, UNDER_WAY // PROCESSES),
        ("publish_many", 1, 0),
    ):
        for level in (MEMORY, DISK, DURABLE):
            rate = _accepted(plan, level, processes, each)
            yield DurableFigure(setting, level, rate, ACCEPTED)
    yield from _one_at_a_time(plan)
    yield from _recovery(plan)


def _accepted(plan: Plan, level: str, processes: int, under_way: int) -> float:
    count = plan.notifications // processes
    with ExitStack() as stack:
        address = stack.enter_context(_broker(plan, level)).address
        workload = {"address": address, "seed": plan.seed, "notifications": count}
        reader = {**workload, "subscriptions": SUBSCRIPTIONS}
        stack.enter_context(started_role("subscriber", reader)).hear()
        if level == DURABLE:
            _make_durable(address)
        workload |= {"under_way": under_way, "bytes": plan.bytes}
        writers = [
            stack.enter_context(_client("publisher", workload | {"seed": plan.seed + number}))
            for number in range(processes)
        ]
        for writer in writers:
            writer.go()
        heard = [writer.hear() for writer in writers]
    seconds = max(each["accepted"] for each in heard) - min(each["started"] for each in heard)
    return float(processes * count / seconds)


def _one_at_a_time(plan: Plan) -> Iterator[DurableFigure]:
    setting = "1 publisher"
    rounds = min(2_000, plan.notifications)
    for level in (MEMORY, DISK, DURABLE):
        with _broker(plan, level) as broker:
            if level == DURABLE:
                _make_durable(broker.address)
            options = {"address": broker.address, "seed": plan.seed, "notifications": rounds}
            with _client("pinger", options | {"bytes": plan.bytes}) as pinger:
                yield DurableFigure(setting, level, pinger.first["median_ms"], ONE_AT_A_TIME)
    alone = sync_ms(plan.folder, plan.bytes)
    yield DurableFigure("pwrite and fdatasync alone", DISK, alone, "ms, median")


def sync_ms(folder: Path, size: int) -> float:
    """Return how long a write of so many bytes takes until it is on disk, in the middle."""
    path = folder / "yardstick"
    with path.open("wb") as file:
        file.write(bytes(_SYNCS * 2 * size))
        file.flush()
        os.fsync(file.fileno())
        data, times = os.urandom(size), []
        for number in range(_SYNCS):
            begun = time.perf_counter()
            os.pwrite(file.fileno(), data, number * size)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begun)
    path.unlink()
    return median(times) * 1000


def _recovery(plan: Plan) -> Iterator[DurableFigure]:
    level = f"{plan.kept:,} of {plan.bytes} bytes on disk"
    folder = plan.folder / "kept"
    workload = {"seed": plan.seed, "notifications": plan.kept, "bytes": plan.bytes}
    with _broker(plan, DISK, folder) as broker:
        _make_durable(broker.address)
        options = workload | {"address": broker.address, "under_way": 0}
        with _client("publisher", options) as writer:
            writer.go()
            writer.hear()
        broker.process.kill()
    _forget(folder)
    begun = time.monotonic()
    with _broker(plan, DISK, folder) as broker:
        yield DurableFigure("start to ready", level, time.monotonic() - begun, "s")
        options = {"address": broker.address, "notifications": plan.kept, "batch": _READ_COUNT}
        for setting, role, under_way in (
            ("catching up by a stream", "stream", 0),
            ("reading in batches, one by one", "reader", 1),
            ("reading in batches", "reader", 2),
        ):
            _forget(folder)
            with _client(role, options | {"under_way": under_way}) as reader:
                reader.go()
                heard = reader.hear()
            rate = heard["came"] / (heard["finished"] - heard["started"])
            yield DurableFigure(setting, level, rate, "notifications/s")


def _forget(folder: Path) -> None:
    """Let the kernel forget what it has of these files, so that reading them reads the disk."""
    for path in folder.rglob("*.log"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class _Broker(msgspec.Struct):
    address: str
    process: RoleProcess


@contextmanager
def _broker(plan: Plan, level: str, folder: Path | None = None) -> Iterator[_Broker]:
    """Run a broker, and wait until it takes requests."""
    (port,) = free_ports(1)
    options: dict[str, Any] = {"overlay": "line-1", "algorithm": "tnr", "ports": [port]}
    options["brokers"] = [0]
    with ExitStack() as stack:
        if level != MEMORY:
            where = folder or stack.enter_context(_fresh(plan.folder))
            options["durability"] = {"folder": str(where), "quota_bytes": _QUOTA_BYTES}
        process = stack.enter_context(started_role("brokers", options))
        process.hear()
        yield _Broker(f"octopis://127.0.0.1:{port}", process)


@contextmanager
def _fresh(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=folder) as found:
        yield Path(found)


def _make_durable(address: str) -> None:
    with _client("owner", {"address": address}):
        pass


@contextmanager
def _client(role: str, options: dict[str, Any]) -> Iterator[RoleProcess]:
    """Run a client, and wait until it is ready."""
    with started_role(role, options, _ROLES) as process:
        process.first = process.hear()
        yield process
