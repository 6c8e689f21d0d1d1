"""Runs a scenario and leaves its trace, whatever happens on the way."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from octopis.errors import LawViolated, OctopisError
from octopis.scenario.folder import Scenario
from octopis.signals import first_interrupt_calls
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
            # Between two steps, where the trace is whole.
            with first_interrupt_calls(simulation.kernel.interrupt):
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
