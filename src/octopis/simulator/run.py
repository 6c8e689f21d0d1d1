"""Runs a scenario and leaves its trace, whatever happens on the way."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from octopis.errors import LawViolated, OctopisError
from octopis.scenario.folder import Scenario
from octopis.signals import first_interrupt_calls
from octopis.simulator.ledger import Progress
from octopis.simulator.replay import Evidence, write_evidence
from octopis.simulator.simulation import Simulation
from octopis.trace import Level, RunSummary, write_summary
from octopis.trace.delays import quantile, read_delays
from octopis.trace.summary import State
from octopis.trace.writer import TraceWriter

_QUANTILES = {"p50": 0.5, "p99": 0.99}


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


def delay_quantiles(folder: Path) -> dict[str, int | None]:
    """Return the median and the 99th percentile of all delays in a trace, exact.

    They are None where nothing was delivered, or where the trace's level does not tell.
    """
    delays = read_delays(folder)
    _, delays_ns = delays if delays is not None else (None, np.zeros(0, np.int64))
    return {f"delay_{name}_ns": quantile(delays_ns, share) for name, share in _QUANTILES.items()}


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
