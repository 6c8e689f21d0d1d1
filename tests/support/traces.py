"""Small scenarios and traces for the pipeline, made without Spark."""

from pathlib import Path

import pyarrow.parquet as pq

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.scenario.example import write_example
from octopis.scenario.folder import read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.simulator.run import run
from octopis.trace import Level


def small_plan(seed: int = 1, **changes: int) -> ScenarioPlan:
    sizes = {"subscribers": 40, "publishers": 4, "notifications_each": 10, **changes}
    return ScenarioPlan(routing=RoutingOptions(Algorithm.SNR), seed=seed, **sizes)


def make_scenario(folder: Path, seed: int = 1, **changes: int) -> Path:
    write_example(small_plan(seed, **changes), folder)
    return folder


def make_trace(
    scenario: Path,
    folder: Path,
    algorithm: Algorithm = Algorithm.SNR,
    level: Level = Level.DELIVERIES,
) -> Path:
    run(read_scenario(scenario).with_algorithm(algorithm), folder, level=level)
    return folder


def rewrite(trace: Path, table: str, change) -> None:
    """Put `change` of a table in its place, with the summary's count kept right."""
    path = trace / f"{table}.parquet"
    rows = change(pq.read_table(path))
    pq.write_table(rows, path)
    if table == "deliveries":
        summary = (trace / "run.json").read_text(encoding="utf-8").splitlines()
        counted = [
            f'  "deliveries": {len(rows)},' if line.startswith('  "deliveries":') else line
            for line in summary
        ]
        (trace / "run.json").write_text("\n".join(counted), encoding="utf-8")
