"""Runs a scenario: subscriptions first, and when all is quiet, notifications.

The overlay's decisions come from the cheap forms of the routing algorithms (`fast`), or from real
`routing.Broker`s (`core`). Both give the same trace; where links are cut, real brokers must run.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from octopis.errors import LawViolated, OctopisError
from octopis.simulator.ledger import Progress
from octopis.simulator.simulation import Simulation
from octopis.trace import Level, RunSummary, TraceWriter, write_summary
from octopis.trace.summary import State
from octopis.workload.folder import Scenario


def run(
    scenario: Scenario,
    folder: Path,
    *,
    level: Level = Level.DELIVERIES,
    real_brokers: bool = False,
    progress: Progress = lambda *_: None,
) -> RunSummary:
    """Run a scenario, leave its trace in `folder`, and return the summary.

    A run that is interrupted, or breaks a law, leaves a valid trace that says so, and raises on.
    """
    with TraceWriter(folder, level) as writer, _without_collector():
        simulation = Simulation(scenario, writer, progress, real_brokers=real_brokers)
        try:
            simulation.run()
        except (KeyboardInterrupt, OctopisError) as failure:
            state: State = "violated" if isinstance(failure, LawViolated) else "partial"
            reason = str(failure) or "interrupted"
            summary = simulation.finish(state, reason)
            writer.close()
            write_summary(folder, summary)
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
