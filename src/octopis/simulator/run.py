"""Runs a scenario and leaves its trace, whatever happens on the way."""

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from octopis.errors import LawViolated, OctopisError
from octopis.scenario.folder import Scenario
from octopis.simulator.ledger import Progress
from octopis.simulator.replay import Evidence, write_evidence
from octopis.simulator.simulation import Simulation
from octopis.trace import Level, RunSummary, write_summary
from octopis.trace.summary import State
from octopis.trace.writer import TraceWriter


def run(
    scenario: Scenario,
    folder: Path,
    *,
    level: Level = Level.DELIVERIES,
    real_brokers: bool = False,
    progress: Progress = lambda *_: None,
) -> RunSummary:
    """Run a scenario, leave its trace in `folder`, and return the summary.

    The cheap forms of the routing algorithms decide, or `routing.Broker`s (`real_brokers`); both
    give the same trace. A run that is interrupted, or breaks a law, leaves a valid trace that
    says so, and raises on.
    """
    with TraceWriter(folder, level) as writer, _without_collector():
        try:
            simulation = Simulation(scenario, writer, progress, real_brokers=real_brokers)
        except BaseException:
            writer.discard()
            raise
        try:
            with _interrupted_between_steps(simulation.kernel.interrupt):
                simulation.run()
        except (KeyboardInterrupt, OctopisError) as failure:
            state: State = "violated" if isinstance(failure, LawViolated) else "partial"
            summary = simulation.finish(state, str(failure) or "interrupted")
            writer.close()
            write_summary(folder, summary)
            if isinstance(failure, LawViolated):
                write_evidence(folder, Evidence.of(failure, scenario, real_brokers=real_brokers))
            raise
        summary = simulation.finish("complete", "")
    write_summary(folder, summary)
    return summary


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep Python's cycle collector out: a run makes millions of values and no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _interrupted_between_steps(interrupt: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C stop the run between two steps, where the trace is whole; a second one at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        interrupt()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
