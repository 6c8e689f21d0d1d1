"""`octopis bench simulator`: how fast overlays run in virtual time, one run on one core."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from octopis.benchmarks.processes import run_child
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import NamedTopology, from_catalogue
from octopis.core.topology.planner import grow
from octopis.report.machine import memory_peak_mb
from octopis.scenario.example import write_example
from octopis.scenario.folder import read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.simulator.run import run as run_scenario
from octopis.trace import Level


@dataclass(frozen=True, slots=True)
class SimulatorCase:
    """A scenario to run; targets are what we set out to reach, at most."""

    name: str
    plan: ScenarioPlan
    level: Level
    seconds_target: float | None = None
    memory_mb_target: float | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run took, with its trace written."""

    read_s: float
    run_s: float
    memory_mb: float
    ims: int
    deliveries: int
    notifications: int = 0

    @property
    def notifications_per_s(self) -> float:
        """Notifications per second of run time, subscriptions and all."""
        return self.notifications / self.run_s

    @property
    def ims_per_s(self) -> float:
        """Inter-broker messages per second of run time."""
        return self.ims / self.run_s


def cases(seed: int, *, large: bool) -> list[SimulatorCase]:
    """Return what is measured; `large` adds an overlay of 2,000 brokers."""
    found = [
        _on_paper_overlay("snr, deliveries", Algorithm.SNR, Level.DELIVERIES, 1_000, seed),
        _on_paper_overlay("tnr, deliveries", Algorithm.TNR, Level.DELIVERIES, 1_000, seed),
        _on_paper_overlay("dnr, deliveries", Algorithm.DNR, Level.DELIVERIES, 100, seed),
        _on_paper_overlay("bid, deliveries", Algorithm.BID, Level.DELIVERIES, 100, seed),
        _on_paper_overlay("snr, full", Algorithm.SNR, Level.FULL, 20, seed),
    ]
    if large:
        topology = NamedTopology("large", "", grow(2_000, clusters=20))
        plan = ScenarioPlan(
            routing=RoutingOptions(Algorithm.SNR),
            topology=topology,
            subscribers=20_000,
            publishers=100,
            notifications_each=50,
            seed=seed,
        )
        found.append(SimulatorCase("2,000 brokers, snr, deliveries", plan, Level.DELIVERIES, 300))
    return found


def _on_paper_overlay(
    name: str, algorithm: Algorithm, level: Level, each: int, seed: int
) -> SimulatorCase:
    plan = ScenarioPlan(
        routing=RoutingOptions(algorithm),
        topology=from_catalogue("paper"),
        subscribers=10_000,
        publishers=100,
        notifications_each=each,
        seed=seed,
    )
    targets = (60.0, 3_000.0) if each == 1_000 and algorithm is Algorithm.SNR else (None, None)
    return SimulatorCase(f"S_e, {name}", plan, level, *targets)


def run(wanted: list[SimulatorCase]) -> Iterator[Figures]:
    """Yield the figures of each case, each measured in a process of its own."""
    for case in wanted:
        with TemporaryDirectory() as parent:
            scenario, trace = Path(parent) / "scenario", Path(parent) / "trace"
            write_example(case.plan, scenario)
            command = [sys.executable, "-m", __name__, str(scenario), str(trace), case.level.value]
            yield msgspec.json.decode(run_child(command, case.name), type=Figures)


def measure(folder: Path, trace: Path, level: Level) -> Figures:
    """Read and run one scenario."""
    start = time.perf_counter()
    scenario = read_scenario(folder)
    read_s = time.perf_counter() - start
    start = time.perf_counter()
    summary = run_scenario(scenario, trace, level=level)
    run_s = time.perf_counter() - start
    ims = summary.subscription_ims + summary.notification_ims
    memory_mb, notifications = memory_peak_mb(), summary.notifications
    return Figures(read_s, run_s, memory_mb, ims, summary.deliveries, notifications)


if __name__ == "__main__":
    found = measure(Path(sys.argv[1]), Path(sys.argv[2]), Level(sys.argv[3]))
    sys.stdout.buffer.write(msgspec.json.encode(found))
